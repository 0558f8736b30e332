//! From a network's score vector to the class that it says and the confidence in it.

use serde::{Deserialize, Serialize};

use crate::accuracy::Metric;

/// The scores of one image may miss a sum of 1 by this where they are called probabilities: 16-bit numerics round.
const SUM_TOLERANCE: f32 = 0.02;

/// How scores become numbers between 0 and 1, the largest of which is the confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// They are as the network answered them.
    AsAnswered,
    /// By softmax: the network answered logits of one class.
    Softmax,
    /// Each by the logistic function: the network answered logits of any number of classes.
    Sigmoid,
}

impl Confidence {
    /// What makes numbers between 0 and 1 of these score vectors, as the metric reads them.
    pub fn of<'a>(metric: &Metric, vectors: impl IntoIterator<Item = &'a [f32]>) -> Confidence {
        let one_class = matches!(metric, Metric::TopK { .. });
        let is_answered = |vector: &[f32]| {
            let within = vector
                .iter()
                .filter(|score| score.is_finite())
                .all(|score| (0.0..=1.0).contains(score));
            let sum: f32 = vector.iter().filter(|score| score.is_finite()).sum();
            within && (!one_class || (sum - 1.0).abs() <= SUM_TOLERANCE)
        };
        match (vectors.into_iter().all(is_answered), one_class) {
            (true, _) => Confidence::AsAnswered,
            (false, true) => Confidence::Softmax,
            (false, false) => Confidence::Sigmoid,
        }
    }

    /// The numbers between 0 and 1 of a score vector. What is not finite counts as nothing: overflow is what 16-bit numerics do.
    pub fn probabilities(self, scores: &[f32]) -> Vec<f64> {
        let finite = |score: &f32| score.is_finite();
        let largest = scores
            .iter()
            .copied()
            .filter(finite)
            .fold(f32::MIN, f32::max);
        let exponential = |score: f32| f64::from(score - largest).exp();
        let sum: f64 = scores.iter().copied().filter(finite).map(exponential).sum();
        let one = |&score: &f32| match self {
            _ if !score.is_finite() => 0.0,
            Confidence::AsAnswered => f64::from(score),
            Confidence::Softmax => exponential(score) / sum,
            Confidence::Sigmoid => 1.0 / (1.0 + (-f64::from(score)).exp()),
        };
        scores.iter().map(one).collect()
    }
}

/// The class of the largest finite score, the first of several; none where no score is finite.
pub fn top(scores: &[f32]) -> Option<u32> {
    let mut best: Option<(u32, f32)> = None;
    for (class, &score) in (0..).zip(scores) {
        if score.is_finite() && best.is_none_or(|(_, most)| score > most) {
            best = Some((class, score));
        }
    }
    best.map(|(class, _)| class)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Metric = Metric::TopK { k: 1 };
    const MANY: Metric = Metric::MultiLabel { threshold: 0.5 };

    #[test]
    fn probabilities_stay_and_logits_become_some() {
        let of = |metric, vector: &[f32]| Confidence::of(metric, [vector]);
        assert_eq!(of(&ONE, &[0.25, 0.75]), Confidence::AsAnswered);
        assert_eq!(of(&ONE, &[0.25, 0.25]), Confidence::Softmax);
        assert_eq!(of(&MANY, &[0.25, 0.25]), Confidence::AsAnswered);
        assert_eq!(of(&MANY, &[0.25, 3.0]), Confidence::Sigmoid);
        let soft = Confidence::Softmax.probabilities(&[1000.0, 1000.0, f32::NAN]);
        assert_eq!(soft, [0.5, 0.5, 0.0]);
        assert_eq!(Confidence::Sigmoid.probabilities(&[0.0])[0], 0.5);
    }

    #[test]
    fn the_first_of_equal_scores_is_said_and_what_is_not_finite_is_not() {
        assert_eq!(top(&[1.0, 3.0, 3.0, f32::INFINITY, f32::NAN]), Some(1));
        assert_eq!(top(&[f32::NAN]), None);
        assert_eq!(top(&[]), None);
    }
}

//! Platt calibration: P(right | score) = 1 / (1 + exp(A score + B)) (cbo §III-B).
//!
//! A and B maximise the likelihood of Platt's smoothed targets, (n₊ + 1)/(n₊ + 2) for right answers and 1/(n₋ + 2) for wrong
//! ones, by Newton's method with backtracking (Lin, Lin and Weng, "A note on Platt's probabilistic outputs for support
//! vector machines", Machine Learning 68, 2007, Algorithm 1).

use serde::{Deserialize, Serialize};

use super::answers::refuse_unfit;
use super::error::CalibrationError;

/// Newton converges in ten steps or fewer; more are taken only where scores are all but constant.
const MOST_STEPS: usize = 100;

/// The gradient of the mean loss at which A and B are as good as they get in double precision.
const FLAT: f64 = 1e-12;

/// Keeps the Hessian invertible where all scores are equal.
const RIDGE: f64 = 1e-12;

/// The shortest step that is tried along Newton's direction.
const SHORTEST_STEP: f64 = 1e-10;

/// The share of the promised improvement that a step must bring (Armijo).
const ENOUGH: f64 = 1e-4;

/// A trained logistic curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawPlatt")]
pub struct Platt {
    /// Of the scores divided by `scale`.
    a: f64,
    b: f64,
    /// The largest absolute score, so that scores of any size are as well conditioned.
    scale: f64,
}

/// As somebody wrote it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlatt {
    a: f64,
    b: f64,
    scale: f64,
}

impl TryFrom<RawPlatt> for Platt {
    type Error = &'static str;

    fn try_from(raw: RawPlatt) -> Result<Platt, &'static str> {
        let RawPlatt { a, b, scale } = raw;
        match a.is_finite() && b.is_finite() && scale.is_finite() && scale > 0.0 {
            true => Ok(Platt { a, b, scale }),
            false => Err("a logistic curve needs finite numbers and a scale above 0"),
        }
    }
}

impl Platt {
    /// Trains on `scores`, with whether each was right.
    pub fn train(scores: &[f64], right: &[bool]) -> Result<Platt, CalibrationError> {
        refuse_unfit(scores, right)?;
        let largest = scores
            .iter()
            .fold(0.0, |most: f64, score| most.max(score.abs()));
        let scale = if largest > 0.0 { largest } else { 1.0 };
        let positives = right.iter().filter(|&&right| right).count() as f64;
        let negatives = right.len() as f64 - positives;
        let target = |right| match right {
            true => (positives + 1.0) / (positives + 2.0),
            false => 1.0 / (negatives + 2.0),
        };
        let rows: Vec<(f64, f64)> = scores
            .iter()
            .zip(right)
            .map(|(score, &right)| (score / scale, target(right)))
            .collect();
        let start = (0.0, ((negatives + 1.0) / (positives + 1.0)).ln());
        let (a, b) = newton(&rows, start);
        Ok(Platt { a, b, scale })
    }

    /// A, per unit of score: negative where higher scores are more often right.
    pub fn slope(&self) -> f64 {
        self.a / self.scale
    }

    /// B, the offset.
    pub fn offset(&self) -> f64 {
        self.b
    }

    /// The probability that an answer with the finite `score` is right.
    pub fn probability(&self, score: f64) -> f64 {
        let scaled = (score / self.scale).clamp(f64::MIN, f64::MAX);
        logistic(self.a * scaled + self.b)
    }
}

/// 1 / (1 + exp(z)), without overflow.
fn logistic(z: f64) -> f64 {
    match z >= 0.0 {
        true => (-z).exp() / (1.0 + (-z).exp()),
        false => 1.0 / (1.0 + z.exp()),
    }
}

/// The mean cross-entropy of (score, target) under A and B.
fn mean_loss(rows: &[(f64, f64)], (a, b): (f64, f64)) -> f64 {
    let one = |&(score, target): &(f64, f64)| {
        let z = a * score + b;
        match z >= 0.0 {
            true => target * z + (-z).exp().ln_1p(),
            false => (target - 1.0) * z + z.exp().ln_1p(),
        }
    };
    rows.iter().map(one).sum::<f64>() / rows.len() as f64
}

/// Minimises the mean cross-entropy from `start`.
fn newton(rows: &[(f64, f64)], start: (f64, f64)) -> (f64, f64) {
    let (mut at, mut loss) = (start, mean_loss(rows, start));
    let count = rows.len() as f64;
    for _ in 0..MOST_STEPS {
        let (mut aa, mut ab, mut bb, mut ga, mut gb) = (RIDGE, 0.0, RIDGE, 0.0, 0.0);
        for &(score, target) in rows {
            let p = logistic(at.0 * score + at.1);
            let curvature = p * (1.0 - p) / count;
            aa += score * score * curvature;
            ab += score * curvature;
            bb += curvature;
            ga += score * (target - p) / count;
            gb += (target - p) / count;
        }
        if ga.abs() < FLAT && gb.abs() < FLAT {
            break;
        }
        let determinant = aa * bb - ab * ab;
        let step = (
            -(bb * ga - ab * gb) / determinant,
            -(aa * gb - ab * ga) / determinant,
        );
        let slope = ga * step.0 + gb * step.1;
        let mut length = 1.0;
        loop {
            let next = (at.0 + length * step.0, at.1 + length * step.1);
            let next_loss = mean_loss(rows, next);
            if next_loss < loss + ENOUGH * length * slope {
                (at, loss) = (next, next_loss);
                break;
            }
            length /= 2.0;
            // Also where the direction is no number: no comparison with it holds.
            if length < SHORTEST_STEP {
                return at;
            }
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sided_or_constant_scores_have_the_smoothed_share() {
        let all_right = Platt::train(&[0.5; 8], &[true; 8]).expect("trains");
        assert!((all_right.probability(0.5) - 0.9).abs() < 1e-6);
        let all_wrong = Platt::train(&[0.0, 0.0], &[false; 2]).expect("trains");
        assert!((all_wrong.probability(0.0) - 0.25).abs() < 1e-6);
    }

    #[test]
    fn the_gradient_vanishes_where_training_ends() {
        let scores = [0.1, 0.4, 0.35, 0.8, 0.9, 0.6];
        let right = [false, false, true, true, true, false];
        let platt = Platt::train(&scores, &right).expect("trains");
        let target = |right| if right { 0.8 } else { 0.2 };
        let residuals: Vec<f64> = scores
            .iter()
            .zip(right)
            .map(|(&score, right)| target(right) - platt.probability(score))
            .collect();
        let weighted: f64 = residuals.iter().zip(scores).map(|(r, s)| r * s).sum();
        assert!(residuals.iter().sum::<f64>().abs() < 1e-9 && weighted.abs() < 1e-9);
    }

    #[test]
    fn scores_of_any_size_are_trained_on() {
        for scale in [1e-310, 1e-3, 1.0, 1e6, 1e300] {
            let scores = [0.1, 0.4, 0.7, 0.9].map(|score| score * scale);
            let platt = Platt::train(&scores, &[false, true, false, true]).expect("trains");
            let p = platt.probability(0.9 * scale);
            assert!((p - 0.629).abs() < 0.01, "{scale}: {p}");
            assert!((0.0..=1.0).contains(&platt.probability(f64::MAX)));
        }
    }
}

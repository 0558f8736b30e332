//! Isotonic regression by pool-adjacent-violators: the curve that never falls with the least squared error (cbo §III-B).

use serde::{Deserialize, Serialize};

use super::answers::refuse_unfit;
use super::error::CalibrationError;

/// A trained curve that never falls.
///
/// The paper's function is piecewise constant and leaves open where between two scores a step lies. Here the curve goes
/// straight from one fitted score to the next and is constant outside them, as scikit-learn's does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawIsotonic")]
pub struct Isotonic {
    /// The scores at which the curve bends, ascending, with its value there.
    knots: Vec<(f64, f64)>,
}

/// As somebody wrote it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawIsotonic {
    knots: Vec<(f64, f64)>,
}

impl TryFrom<RawIsotonic> for Isotonic {
    type Error = &'static str;

    fn try_from(raw: RawIsotonic) -> Result<Isotonic, &'static str> {
        let knots = raw.knots;
        let rises = knots.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1);
        let probability = |knot: &(f64, f64)| knot.0.is_finite() && (0.0..=1.0).contains(&knot.1);
        match !knots.is_empty() && rises && knots.iter().all(probability) {
            true => Ok(Isotonic { knots }),
            false => Err(
                "a curve needs knots whose scores rise and whose values never fall, from 0 to 1",
            ),
        }
    }
}

/// Neighbouring scores that share one value.
struct Block {
    first: f64,
    last: f64,
    right: f64,
    count: f64,
}

impl Isotonic {
    /// Trains on `scores`, with whether each was right. Equal scores count as one with their mean.
    pub fn train(scores: &[f64], right: &[bool]) -> Result<Isotonic, CalibrationError> {
        refuse_unfit(scores, right)?;
        let mut rows: Vec<(f64, bool)> =
            scores.iter().copied().zip(right.iter().copied()).collect();
        rows.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut blocks: Vec<Block> = Vec::new();
        for group in rows.chunk_by(|one, other| one.0 == other.0) {
            let mut block = Block {
                first: group[0].0,
                last: group[0].0,
                right: group.iter().filter(|row| row.1).count() as f64,
                count: group.len() as f64,
            };
            // Equal means are pooled, too: fewer knots, the same curve. Counts are whole, so the products are exact.
            while let Some(before) =
                blocks.pop_if(|before| before.right * block.count >= block.right * before.count)
            {
                block.first = before.first;
                block.right += before.right;
                block.count += before.count;
            }
            blocks.push(block);
        }
        let mut knots = Vec::with_capacity(2 * blocks.len());
        for block in blocks {
            let value = block.right / block.count;
            knots.push((block.first, value));
            if block.last > block.first {
                knots.push((block.last, value));
            }
        }
        Ok(Isotonic { knots })
    }

    /// The scores at which the curve bends, ascending, with the probability there.
    pub fn knots(&self) -> &[(f64, f64)] {
        &self.knots
    }

    /// The probability that an answer with the finite `score` is right.
    pub fn probability(&self, score: f64) -> f64 {
        let after = self.knots.partition_point(|knot| knot.0 <= score);
        if after == 0 {
            return self.knots[0].1;
        }
        let (left, low) = self.knots[after - 1];
        match self.knots.get(after) {
            Some(&(right, high)) if score > left => {
                // Halved, so that the distance of scores of any size is finite.
                let share = (score / 2.0 - left / 2.0) / (right / 2.0 - left / 2.0);
                low + (high - low) * share.clamp(0.0, 1.0)
            }
            _ => low,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least squared error of all curves that never fall, by the max-min formula: no pooling.
    fn by_formula(scores: &[f64], right: &[bool], at: f64) -> f64 {
        let mean = |from: f64, to: f64| {
            let within = scores.iter().zip(right);
            let within = within.filter(|(score, _)| (from..=to).contains(score));
            let (sum, count) = within.fold((0.0, 0.0), |(sum, count), (_, &right)| {
                (sum + f64::from(right), count + 1.0)
            });
            sum / count
        };
        let below = scores.iter().filter(|&&score| score <= at);
        let least_of = |&from: &f64| {
            let above = scores.iter().filter(|&&score| score >= at);
            above
                .map(|&to| mean(from, to))
                .fold(f64::INFINITY, f64::min)
        };
        below.map(least_of).fold(f64::NEG_INFINITY, f64::max)
    }

    #[test]
    fn the_curve_is_the_max_min_formula_for_every_labelling_of_eight_scores() {
        let scores = [0.9, 0.1, 0.4, 0.4, 0.2, 0.7, 0.6, 0.7];
        for bits in 0..256_u32 {
            let right: Vec<bool> = (0..8).map(|place| bits >> place & 1 == 1).collect();
            let isotonic = Isotonic::train(&scores, &right).expect("trains");
            for score in scores {
                let expected = by_formula(&scores, &right, score);
                let found = isotonic.probability(score);
                assert!(
                    (found - expected).abs() < 1e-12,
                    "{bits}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_curve_is_straight_between_knots_and_constant_outside() {
        let isotonic = Isotonic::train(&[0.2, 0.6], &[false, true]).expect("trains");
        for (score, p) in [(-1.0, 0.0), (0.2, 0.0), (0.3, 0.25), (0.6, 1.0), (2.0, 1.0)] {
            assert!((isotonic.probability(score) - p).abs() < 1e-12);
        }
    }
}

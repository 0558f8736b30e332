//! Counts of right and wrong answers, and the loss between two ways of answering the same images.

use std::ops::Add;

use serde::{Deserialize, Serialize};

use crate::summary::Z_95;

/// What one answer, or many together, got right and wrong.
///
/// A metric that takes an answer as a whole (top-k, verification) counts a wrong one as a false alarm and a
/// miss: what was said is not there, and what is there was not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct Tally {
    /// Found and there (true positives).
    pub hits: u64,
    /// Found and not there (false positives).
    pub false_alarms: u64,
    /// There and not found (false negatives).
    pub misses: u64,
}

impl Tally {
    /// The F-score (F1) 2h / (2h + f + m), from 0 to 1; 1 when nothing was there and nothing was found.
    /// For answers that are right or wrong as a whole it is the share of right ones.
    pub fn score(self) -> f64 {
        if self.weight() == 0.0 {
            return 1.0;
        }
        2.0 * self.hits as f64 / self.weight()
    }

    /// The denominator of the score.
    fn weight(self) -> f64 {
        2.0 * self.hits as f64 + self.false_alarms as f64 + self.misses as f64
    }
}

impl Add for Tally {
    type Output = Tally;
    /// Saturates: a profile that somebody damaged may count anything.
    fn add(self, other: Tally) -> Tally {
        Tally {
            hits: self.hits.saturating_add(other.hits),
            false_alarms: self.false_alarms.saturating_add(other.false_alarms),
            misses: self.misses.saturating_add(other.misses),
        }
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Tally>>(tallies: I) -> Tally {
        tallies.fold(Tally::default(), Add::add)
    }
}

impl From<(u64, u64, u64)> for Tally {
    fn from((hits, false_alarms, misses): (u64, u64, u64)) -> Tally {
        Tally {
            hits,
            false_alarms,
            misses,
        }
    }
}

impl From<Tally> for (u64, u64, u64) {
    fn from(tally: Tally) -> Self {
        (tally.hits, tally.false_alarms, tally.misses)
    }
}

/// What a placement loses against the baseline: the difference of the two scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Baseline score - placed score; negative when the placement answers better.
    pub value: f64,
    /// The 95 % confidence interval over images that were drawn like these.
    pub ci95: (f64, f64),
}

impl Loss {
    /// Half the width of the interval.
    pub fn half_width(&self) -> f64 {
        (self.ci95.1 - self.ci95.0) / 2.0
    }
}

/// The loss Loss(L) = A(all on CPU) - A(L) (docs/method.md §6, mlmp §4.2.1), from the tallies of the same answers, in
/// the same order. `None` when there are none.
///
/// The interval is paired: answers that both get right or wrong alike cancel. Scores are ratios of sums, so
/// each answer's share of the loss is its linearisation (delta method); two made-up answers, half of one lost
/// and half of one gained, are added as Agresti and Min (2005) do for the difference of paired proportions,
/// without which a loss of nothing would have an interval of nothing.
///
/// # Panics
/// When the two do not have the same length.
pub fn loss(baseline: &[Tally], placed: &[Tally]) -> Option<Loss> {
    assert_eq!(baseline.len(), placed.len(), "tallies of the same answers");
    if baseline.is_empty() {
        return None;
    }
    let answers = baseline.len() as f64;
    let before = Shares::of(baseline);
    let after = Shares::of(placed);
    let flipped = before.flipped().max(after.flipped());
    let squares: f64 = baseline
        .iter()
        .zip(placed)
        .map(|(&b, &p)| before.share(b) - after.share(p))
        .map(|share| share * share)
        .sum();
    let value = before.score - after.score;
    let padded = answers + 2.0;
    let centre = interval_centre(value, baseline.len() as u64);
    // Shares sum to zero around their scores, so that the squares are about the mean already.
    let variance = (squares + flipped * flipped) / padded;
    let half_width = Z_95 * (variance / padded).sqrt();
    Some(Loss {
        value,
        ci95: (centre - half_width, centre + half_width),
    })
}

/// The middle of the interval of a loss of `value` over so many answers: the two made-up answers draw it towards nothing.
pub(crate) fn interval_centre(value: f64, answers: u64) -> f64 {
    let answers = answers as f64;
    value * answers / (answers + 2.0)
}

/// How single answers move a score.
struct Shares {
    score: f64,
    mean_weight: f64,
}

impl Shares {
    fn of(tallies: &[Tally]) -> Shares {
        let total: Tally = tallies.iter().copied().sum();
        Shares {
            score: total.score(),
            mean_weight: total.weight() / tallies.len() as f64,
        }
    }

    /// How far this answer lies from what the score lets expect of it.
    fn share(&self, tally: Tally) -> f64 {
        if self.mean_weight == 0.0 {
            return 0.0;
        }
        (2.0 * tally.hits as f64 - self.score * tally.weight()) / self.mean_weight
    }

    /// What one thing found or not found moves.
    fn flipped(&self) -> f64 {
        if self.mean_weight == 0.0 {
            return 1.0;
        }
        (2.0 / self.mean_weight).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const RIGHT: Tally = Tally {
        hits: 1,
        false_alarms: 0,
        misses: 0,
    };
    const WRONG: Tally = Tally {
        hits: 0,
        false_alarms: 1,
        misses: 1,
    };

    #[test]
    fn the_score_of_whole_answers_is_the_share_of_right_ones() {
        let answers = [RIGHT, RIGHT, WRONG, RIGHT];
        assert_eq!(answers.into_iter().sum::<Tally>().score(), 0.75);
    }

    #[test]
    fn counts_that_nobody_made_do_not_overflow() {
        let tally = Tally {
            hits: u64::MAX,
            false_alarms: u64::MAX,
            misses: u64::MAX,
        };
        assert_eq!([tally, tally].into_iter().sum::<Tally>(), tally);
        assert_eq!(tally.score(), 0.5);
    }

    #[test]
    fn the_f_score_is_the_harmonic_mean_of_precision_and_recall() {
        let tally = Tally {
            hits: 6,
            false_alarms: 2,
            misses: 4,
        };
        let (precision, recall) = (6.0 / 8.0, 6.0 / 10.0);
        let harmonic = 2.0 * precision * recall / (precision + recall);
        assert!((tally.score() - harmonic).abs() < 1e-12);
    }

    #[test]
    fn answering_alike_loses_nothing_within_an_interval_that_is_not_nothing() {
        let answers = [RIGHT; 100];
        let found = loss(&answers, &answers).expect("answers");
        assert_eq!(found.value, 0.0);
        assert!(found.ci95.0 < 0.0 && found.ci95.1 > 0.0);
        assert!(loss(&[], &[]).is_none());
    }

    /// Agresti and Min: b = 8 lost and c = 2 gained of n = 100, half added to each, 2 to n.
    #[test]
    fn the_interval_of_whole_answers_is_that_of_agresti_and_min() {
        let mut baseline = vec![RIGHT; 100];
        let mut placed = vec![RIGHT; 100];
        placed[..8].fill(WRONG);
        baseline[90..92].fill(WRONG);
        let found = loss(&baseline, &placed).expect("answers");
        let centre = 6.0 / 102.0;
        let error = (((11.0 - 36.0 / 102.0) / 102.0) / 102.0_f64).sqrt();
        assert!((found.value - 0.06).abs() < 1e-12);
        assert!(
            (found.ci95.0 - (centre - Z_95 * error)).abs() < 5e-4,
            "{found:?}"
        );
        assert!(
            (found.ci95.1 - (centre + Z_95 * error)).abs() < 5e-4,
            "{found:?}"
        );
    }

    /// Images with one to four objects; the placement misses some that the baseline finds, and finds a few
    /// that it misses. Over many such sets the intervals hold the loss of all images that there are.
    #[test]
    fn intervals_hold_the_true_loss_in_92_to_98_of_100_sets() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for lost in [0.005, 0.05, 0.3] {
            let mut draw = |images: usize| -> (Vec<Tally>, Vec<Tally>) {
                (0..images)
                    .map(|_| {
                        let (mut baseline, mut placed) = (Tally::default(), Tally::default());
                        for _ in 0..random.random_range(1..=4) {
                            let found = random.random_bool(0.85);
                            let changes = random.random_bool(lost);
                            let found_then = if changes {
                                random.random_bool(0.1)
                            } else {
                                found
                            };
                            for (tally, found) in
                                [(&mut baseline, found), (&mut placed, found_then)]
                            {
                                tally.hits += u64::from(found);
                                tally.misses += u64::from(!found);
                            }
                            placed.false_alarms += u64::from(changes && random.random_bool(0.2));
                        }
                        (baseline, placed)
                    })
                    .unzip()
            };
            let (baseline, placed) = draw(400_000);
            let truth = loss(&baseline, &placed).expect("answers").value;
            let holding = (0..1_000)
                .filter(|_| {
                    let (baseline, placed) = draw(500);
                    let (low, high) = loss(&baseline, &placed).expect("answers").ci95;
                    (low..=high).contains(&truth)
                })
                .count();
            assert!((920..=980).contains(&holding), "{holding} at {lost}");
        }
    }
}

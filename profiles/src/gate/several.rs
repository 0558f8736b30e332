//! Several good profiles in the place of one: how far the same number differs between them is what differs between runs, which
//! the samples of one run cannot tell (docs/method.md §8).

use super::{Candidate, Candidates};
use crate::derive::graph::ErrorVariance;

/// So many good profiles tell how far runs differ; of fewer that is a guess, and nothing but changes of several times would be found.
pub const FEWEST_GOOD: usize = 4;

/// How far a number differs between good profiles, as the variance of one run's number.
pub(super) struct BetweenRuns {
    /// The variance between good profiles, their samples' errors included.
    variance: f64,
    /// How many there are.
    count: usize,
    /// By how much worse the new profile's samples tell its number than the good ones' tell theirs.
    more: ErrorVariance,
}

impl BetweenRuns {
    /// The error of the new profile's number less a multiple of the good ones' mean: all of them are runs that differ alike, and
    /// the variance is known from one less than there are good ones.
    pub(super) fn of_difference(&self, factor: f64) -> ErrorVariance {
        let count = self.count as f64;
        let of_runs = ErrorVariance {
            variance: self.variance * (1.0 + factor * factor / count),
            freedom: count - 1.0,
        };
        ErrorVariance::of_difference(of_runs, self.more)
    }
}

/// What can be tested of a new profile against the good ones that it was compared with one by one: what the last of them has,
/// against all that have it, or against the last alone where these are too few. What only earlier ones have is untested.
pub(super) fn merge(mut with: Vec<Candidates>) -> Candidates {
    let Some(mut last) = with.pop() else {
        return Candidates::default();
    };
    let mut tests = Vec::new();
    for test in last.tests {
        let earlier = with.iter_mut().filter_map(|candidates| {
            let mut others = candidates.tests.iter();
            let place = others.position(|other| other.number == test.number)?;
            Some(candidates.tests.swap_remove(place))
        });
        let earlier: Vec<Candidate> = earlier.collect();
        tests.push(match earlier.len() + 1 < FEWEST_GOOD {
            true => test,
            false => merged(earlier, test),
        });
    }
    let left = with.iter().map(|candidates| candidates.tests.len());
    last.untested += left.max().unwrap_or(0);
    Candidates { tests, ..last }
}

/// One number, against all good profiles: their mean, with the errors by samples and by how far they differ.
fn merged(mut all: Vec<Candidate>, last: Candidate) -> Candidate {
    let (number, rounding, new) = (last.number.clone(), last.rounding, last.errors[1]);
    all.push(last);
    let count = all.len() as f64;
    let mean = |of: fn(&Candidate) -> f64| all.iter().map(of).sum::<f64>() / count;
    let worse = mean(|one| one.worse);
    let squares = all.iter().map(|one| (one.worse - worse).powi(2));
    let variance = squares.sum::<f64>() / (count - 1.0);
    let of_samples = mean(|one| one.errors[0].variance);
    let mut good = all.iter().map(|one| one.errors[0]);
    let first = good.next().unwrap_or(new);
    let sum = good.fold(first, ErrorVariance::of_difference);
    Candidate {
        number,
        one: mean(|one| one.one),
        other: mean(|one| one.other),
        worse,
        errors: [sum.times(1.0 / count), new],
        between: Some(BetweenRuns {
            variance,
            count: all.len(),
            more: ErrorVariance {
                variance: (new.variance - of_samples).max(0.0),
                freedom: new.freedom,
            },
        }),
        rounding,
    }
}

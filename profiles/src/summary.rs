//! The order statistics of repeated timings: the median is the headline, never a mean.

use crate::units::{Nanos, SignedNanos};

/// The normal quantile that leaves 2.5 % in each tail.
pub const Z_95: f64 = 1.959_963_984_540_054;

/// What repeated timings of one thing say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many samples there are, at least one.
    pub count: u64,
    /// The middle sample; of an even number, the mean of the middle two rounded down.
    pub median: Nanos,
    /// The median of the distances from the median (not scaled to a standard deviation).
    pub median_absolute_deviation: Nanos,
    /// The 5th percentile, by nearest rank.
    pub p5: Nanos,
    /// The 95th percentile, by nearest rank.
    pub p95: Nanos,
    /// The shortest sample.
    pub min: Nanos,
    /// The longest sample.
    pub max: Nanos,
    /// A 95 % confidence interval of the median, free of any assumption about the distribution.
    /// Absent below six samples, where no two of them enclose the median with that confidence.
    pub median_ci95: Option<(Nanos, Nanos)>,
}

impl Summary {
    /// Summarises `samples`, in any order; `None` when there are none.
    pub fn of(samples: &[Nanos]) -> Option<Summary> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let median = median_of_sorted(&sorted);
        let mut distances: Vec<Nanos> = sorted
            .iter()
            .map(|s| Nanos::from_nanos(s.as_nanos().abs_diff(median.as_nanos())))
            .collect();
        distances.sort_unstable();
        Some(Summary {
            count: sorted.len() as u64,
            median,
            median_absolute_deviation: median_of_sorted(&distances),
            p5: nearest_rank(&sorted, 5),
            p95: nearest_rank(&sorted, 95),
            min,
            max,
            median_ci95: median_rank_ci95(sorted.len())
                .map(|(low, high)| (sorted[low], sorted[high])),
        })
    }

    /// The standard error of the median that a normal interval of the same width would have, in ns.
    pub fn median_standard_error_ns(&self) -> Option<f64> {
        self.median_ci95
            .map(|(low, high)| (high.signed() - low.signed()).as_nanos() as f64 / (2.0 * Z_95))
    }
}

/// A derived quantity with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The best single value.
    pub value: SignedNanos,
    /// The interval's ends; absent when the samples are too few to say.
    pub ci95: Option<(SignedNanos, SignedNanos)>,
}

impl Estimate {
    /// `value` with a normal interval of the given standard error in ns, rounded outwards.
    pub fn normal(value: SignedNanos, standard_error_ns: Option<f64>) -> Estimate {
        let ci95 = standard_error_ns.map(|error| {
            let half_width = SignedNanos::from_nanos((Z_95 * error).ceil() as i64);
            (value - half_width, value + half_width)
        });
        Estimate { value, ci95 }
    }

    /// The whole nanosecond nearest to `value_ns` with the interval of `half_width_ns` on both sides of
    /// the value itself, rounded outwards.
    pub fn around(value_ns: f64, half_width_ns: Option<f64>) -> Estimate {
        let nanos = |nanos: f64| SignedNanos::from_nanos(nanos as i64);
        Estimate {
            value: nanos(value_ns.round()),
            ci95: half_width_ns.map(|half_width| {
                (
                    nanos((value_ns - half_width).floor()),
                    nanos((value_ns + half_width).ceil()),
                )
            }),
        }
    }

    /// Whether the interval contains zero: the measurement cannot tell the quantity from nothing.
    pub fn is_unresolved(&self) -> bool {
        self.ci95
            .is_some_and(|(low, high)| low <= SignedNanos::ZERO && high >= SignedNanos::ZERO)
    }
}

/// The middle one; of an even number, the mean of the middle two rounded down.
pub(crate) fn median_of_sorted(sorted: &[Nanos]) -> Nanos {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        Nanos::from_nanos(
            sorted[middle - 1]
                .as_nanos()
                .midpoint(sorted[middle].as_nanos()),
        )
    }
}

fn nearest_rank(sorted: &[Nanos], percent: usize) -> Nanos {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

/// The zero-based ranks, among `count` samples in order, of the innermost pair that encloses the median with at least 95 %
/// confidence; `None` below six samples. The number of samples below the median is binomial with p = 1/2.
pub fn median_rank_ci95(count: usize) -> Option<(usize, usize)> {
    // The probability mass is accumulated in logarithms, so that any count works.
    let ln_half_to_the_count = count as f64 * 0.5_f64.ln();
    let mut ln_choose = 0.0_f64;
    let mut tail = 0.0_f64;
    let mut low = None;
    for k in 0..count / 2 {
        tail += (ln_choose + ln_half_to_the_count).exp();
        if tail > 0.025 {
            break;
        }
        low = Some(k);
        ln_choose += ((count - k) as f64).ln() - ((k + 1) as f64).ln();
    }
    low.map(|low| (low, count - 1 - low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nanos(values: &[u64]) -> Vec<Nanos> {
        values.iter().copied().map(Nanos::from_nanos).collect()
    }

    #[test]
    fn a_summary_of_known_samples() {
        let summary = Summary::of(&nanos(&[5, 1, 4, 2, 3, 100])).expect("six samples");
        assert_eq!(summary.median, Nanos::from_nanos(3));
        assert_eq!(summary.median_absolute_deviation, Nanos::from_nanos(1));
        assert_eq!(
            (summary.p5, summary.p95),
            (Nanos::from_nanos(1), Nanos::from_nanos(100))
        );
        assert_eq!(
            summary.median_ci95,
            Some((Nanos::from_nanos(1), Nanos::from_nanos(100)))
        );
    }

    #[test]
    fn no_samples_have_no_summary() {
        assert_eq!(Summary::of(&[]), None);
    }

    /// The ranks that tables of the sign test give (one-based there: 1, 2, 10, 40).
    #[test]
    fn the_median_interval_has_the_ranks_of_the_sign_test() {
        assert_eq!(median_rank_ci95(5), None);
        assert_eq!(median_rank_ci95(6), Some((0, 5)));
        assert_eq!(median_rank_ci95(10), Some((1, 8)));
        assert_eq!(median_rank_ci95(30), Some((9, 20)));
        assert_eq!(median_rank_ci95(100), Some((39, 60)));
        assert!(median_rank_ci95(100_000).is_some());
    }

    #[test]
    fn an_interval_around_zero_is_unresolved() {
        let around = |value| Estimate::normal(SignedNanos::from_nanos(value), Some(10.0));
        assert!(around(15).is_unresolved());
        assert!(around(-15).is_unresolved());
        assert!(!around(25).is_unresolved());
    }

    proptest! {
        #[test]
        fn order_statistics_are_ordered(values in prop::collection::vec(0..10_000_000_u64, 1..200)) {
            let s = Summary::of(&nanos(&values)).expect("at least one sample");
            prop_assert!(s.min <= s.p5 && s.p5 <= s.median && s.median <= s.p95 && s.p95 <= s.max);
            if let Some((low, high)) = s.median_ci95 {
                prop_assert!(s.min <= low && low <= s.median && s.median <= high && high <= s.max);
            }
        }
    }
}

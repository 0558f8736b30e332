//! A number that follows from a fit: its value and its error with the degrees of freedom, which an interval does not tell.

use super::observation::ErrorVariance;
use super::quantile::{t_95, t_at_four_sigma};
use crate::summary::Estimate;

/// A number in ns, and how well it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DerivedNumber {
    pub(crate) value_ns: f64,
    /// `None` where no samples scatter.
    pub(crate) error: Option<ErrorVariance>,
}

impl DerivedNumber {
    /// The number with its 95 % interval, by Student's t.
    pub(crate) fn estimate(&self) -> Estimate {
        let half_width = self
            .error
            .map(|error| t_95(error.freedom) * error.variance.sqrt());
        Estimate::around(self.value_ns, half_width)
    }

    /// The same of something that cannot be less than nothing. Where the interval lies below zero by chance, that is by no
    /// more than is said of suspects, it is widened until it ends at zero: of many layers that take next to no time, one in
    /// forty would have such an interval.
    pub(crate) fn estimate_of_no_less_than_nothing(&self) -> Estimate {
        let half_width = self.error.map(|error| {
            let deviation = error.variance.sqrt();
            let by_chance = self.value_ns + t_at_four_sigma(error.freedom) * deviation >= 0.0;
            let least = if by_chance { -self.value_ns } else { 0.0 };
            (t_95(error.freedom) * deviation).max(least)
        });
        Estimate::around(self.value_ns, half_width)
    }
}

/// The times of one layer in the papers' terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LayerNumbers {
    pub(crate) compute: DerivedNumber,
    /// `None` where `compute` contains it.
    pub(crate) to_processor: Option<DerivedNumber>,
    /// Likewise.
    pub(crate) from_processor: Option<DerivedNumber>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_lies_below_zero_by_chance_is_widened_to_zero() {
        let ends = |value_ns| {
            let number = DerivedNumber {
                value_ns,
                error: Some(ErrorVariance {
                    variance: 100.0 * 100.0,
                    freedom: f64::INFINITY,
                }),
            };
            let estimate = number.estimate_of_no_less_than_nothing();
            let (low, high) = estimate.ci95.expect("a known variance");
            (low.as_nanos(), high.as_nanos())
        };
        assert_eq!(ends(1_000.0), (804, 1_196));
        assert_eq!(ends(-100.0), (-296, 96));
        assert_eq!(ends(-390.0), (-780, 0));
        assert_eq!(ends(-410.0), (-606, -214));
    }
}

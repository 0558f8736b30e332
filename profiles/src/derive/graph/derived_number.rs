//! A number that follows from a fit: its value and its error with the degrees of freedom, which an interval does not tell.

use super::observation::ErrorVariance;
use super::quantile::{t_95, t_at_four_sigma};
use crate::summary::Estimate;
use crate::units::SignedNanos;

/// A number in ns, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// more than is said of suspects, it reaches up to zero: of many layers that take next to no time, one in forty would
    /// have such an interval.
    pub(crate) fn estimate_of_no_less_than_nothing(&self) -> Estimate {
        let estimate = self.estimate();
        let by_chance = self.error.is_some_and(|error| {
            self.value_ns + t_at_four_sigma(error.freedom) * error.variance.sqrt() >= 0.0
        });
        let ci95 = estimate.ci95.map(|(low, high)| match by_chance {
            true => (low, high.max(SignedNanos::ZERO)),
            false => (low, high),
        });
        Estimate { ci95, ..estimate }
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

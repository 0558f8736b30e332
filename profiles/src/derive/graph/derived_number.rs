//! A number that follows from a fit: its value and its error with the degrees of freedom, which an interval does not tell.

use super::observation::ErrorVariance;
use super::quantile::t_95;
use crate::summary::Estimate;

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

//! Does the whole contradict its parts? The whole model's own time against what all other segments make of it.

use std::collections::BTreeSet;

use super::fit::Fit;
use super::observation::{ErrorVariance, Observations};
use super::quantile::two_sided_p_student;
use crate::segment::Segment;

/// The whole, timed, against the sum of its parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WholeAgainstParts {
    /// How much longer the whole takes than its parts, as a share of the parts' sum; negative where less.
    pub longer: f64,
    /// How probable a difference at least as large, either way, is by chance.
    pub p_value: f64,
}

impl WholeAgainstParts {
    /// From a difference, as a share, and its error.
    pub fn new(longer: f64, error: ErrorVariance) -> WholeAgainstParts {
        let p_value = match error.variance > 0.0 {
            true => two_sided_p_student(longer / error.variance.sqrt(), error.freedom),
            false => f64::from(u8::from(longer == 0.0)),
        };
        WholeAgainstParts { longer, p_value }
    }
}

/// The time of the whole model of `layers` layers, or of the longest segment `whole` that memory holds of it, as its own
/// samples have it, against what a fit without them and without the segments in `held_back` predicts. `None` where one of
/// the two is not known or there are no intervals.
pub fn whole_against_parts(
    layers: u32,
    whole: Segment,
    observations: &Observations,
    held_back: &BTreeSet<Segment>,
) -> Option<WholeAgainstParts> {
    let own = observations.of(whole).filter(|_| observations.has_spread)?;
    let mut without = held_back.clone();
    without.insert(whole);
    let fit = Fit::new(layers, observations, &without).ok()?;
    let parts = fit.derive_segment(whole);
    // That visits were faster or slower than they are on average is the same for both.
    let errors = [
        ErrorVariance {
            variance: observations.variance(own, parts.value_ns),
            freedom: own.freedom,
        },
        ErrorVariance {
            variance: parts.variance,
            freedom: parts.freedom,
        },
    ];
    let sum = ErrorVariance::sum(errors);
    let relative = ErrorVariance {
        variance: sum.variance / (parts.value_ns * parts.value_ns),
        ..sum
    };
    let longer = (own.time_ns - parts.value_ns) / parts.value_ns;
    Some(WholeAgainstParts::new(longer, relative))
}

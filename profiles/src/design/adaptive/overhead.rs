//! What measuring costs beside the inferences.

use std::collections::BTreeMap;

use crate::segment::Segment;
use crate::units::Nanos;

/// Device time beside the timed inferences, by the device's own clock. The planner weighs what a segment would
/// tell per nanosecond of device time: that of its timed inferences, of the gaps before them, and of loading it.
/// Warm-up and sentinels are not part of that; the budget pays for them all the same, since it counts all time that
/// passes from the first sample on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overhead {
    /// For each sample: the idle gap before it.
    pub per_sample: Nanos,
    /// For each segment of a block: loading it.
    pub per_segment: Nanos,
    /// For each block: loading the whole model, its sentinel.
    pub per_block: Nanos,
}

impl Overhead {
    /// The same gap, with what loading cost so far: of each segment of a model of `layers` layers that was
    /// loaded, how long that took. Until others were, loading one is taken to cost what the whole model did.
    #[must_use]
    pub fn with_loads(self, layers: u32, loads: &BTreeMap<Segment, Nanos>) -> Overhead {
        let (whole, others): (Vec<_>, Vec<_>) = loads
            .iter()
            .partition(|(segment, _)| segment.layers() == layers);
        let whole = whole.first().map(|&(_, &load)| load);
        let sum: Nanos = others.iter().map(|&(_, &load)| load).sum();
        let count = others.len() as u64;
        let mean = (count > 0).then(|| Nanos::from_nanos(sum.as_nanos() / count));
        Overhead {
            per_sample: self.per_sample,
            per_segment: mean.or(whole).unwrap_or_default(),
            per_block: whole.unwrap_or_default(),
        }
    }
}

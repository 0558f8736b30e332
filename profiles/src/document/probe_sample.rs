//! `probes.csv`: every inference of a probe that was timed (docs/method.md §10).

use super::{Header, Rejected};
use crate::probe::Probe;
use crate::units::Nanos;

/// One inference of one layer of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSample {
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The network that it is a layer of.
    pub probe: Probe,
    /// Which of its layers ran, counted from 1.
    pub layer: u32,
    /// The order in which the agent measured it.
    pub order: u32,
    /// The block of that order, counted from 0.
    pub block: u32,
    /// The sample's number in its order, counted from 0.
    pub index: u64,
    /// When the inference started, since the start of the device's monotonic clock.
    pub started: Nanos,
    /// How long it took.
    pub duration: Nanos,
    /// Why its block does not count, and so neither does it; absent where it does.
    pub rejection: Option<Rejected>,
}

impl ProbeSample {
    /// What rows are sorted by, after the processor's place in the header.
    pub(crate) fn place(&self) -> (Probe, u32, u32, u64, u32) {
        (self.probe, self.layer, self.order, self.index, self.block)
    }
}

/// Sorts by processor in the header's order, then probe, layer, order, index and block.
pub(super) fn sort(header: &Header, samples: &mut [ProbeSample]) {
    let places = header.places();
    samples.sort_by_cached_key(|one| {
        let place = places.get(one.processor.as_str()).copied();
        (place, one.place(), one.started, one.duration)
    });
}

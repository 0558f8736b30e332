//! The samples of one processor, by the visits in which they were taken.

use std::collections::BTreeMap;

use crate::segment::Segment;
use crate::units::Nanos;

/// From two visits nobody can say how far visits differ.
pub const FEWEST_VISITS: usize = 3;

/// One loading of a set of segments, and the samples taken until they were unloaded: an accepted block of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Visit {
    /// The number of the order.
    pub order: u32,
    /// The number of the block in it.
    pub block: u32,
}

/// The samples of one processor, by the visits in which they were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisitSamples {
    /// The samples of each segment in each of its visits.
    pub segments: BTreeMap<Segment, BTreeMap<Visit, Vec<Nanos>>>,
    /// The sentinel's times at the two ends of visits, each the median of a few inferences.
    pub sentinels: BTreeMap<Visit, [Nanos; 2]>,
    /// Which segments had turns in each visit, in the order of time.
    pub(super) turns: BTreeMap<Visit, Vec<Segment>>,
}

impl VisitSamples {
    /// Adds one sample of a segment, after those of the visit that were taken before it.
    pub fn push(&mut self, segment: Segment, visit: Visit, duration: Nanos) {
        let visits = self.segments.entry(segment).or_default();
        visits.entry(visit).or_default().push(duration);
        self.turns.entry(visit).or_default().push(segment);
    }

    /// Forgets what was sampled in a visit.
    pub fn forget(&mut self, visit: Visit) {
        self.sentinels.remove(&visit);
        self.turns.remove(&visit);
        for visits in self.segments.values_mut() {
            visits.remove(&visit);
        }
        self.segments.retain(|_, visits| !visits.is_empty());
    }

    /// The samples of each segment, whatever visits they are from.
    pub fn pooled(&self) -> BTreeMap<Segment, Vec<Nanos>> {
        let segments = self.segments.iter();
        segments
            .map(|(&segment, visits)| (segment, visits.values().flatten().copied().collect()))
            .collect()
    }
}

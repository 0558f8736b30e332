//! `placements.csv`: the proof that a segment ran on the processor that it was loaded on.

use std::collections::BTreeSet;

use super::{Header, Profile};
use crate::segment::Segment;

/// What one provider of a runtime runs of a loaded segment, in the runtime's own words. A segment whose nodes are on
/// several providers has one of these for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvedPlacement {
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The layers that were loaded as one unit.
    pub segment: Segment,
    /// The runtime's provider that runs the nodes.
    pub provider: String,
    /// The file name of the library that computes, where the provider has one of its own.
    pub backend: Option<String>,
    /// Whether the runtime was told to fail rather than run a node elsewhere.
    pub fallback_refused: bool,
    /// How many nodes of the segment the provider runs.
    pub nodes: u64,
    /// Their distinct operators.
    pub operators: BTreeSet<String>,
}

impl Profile {
    /// The profile with proofs of more segments, such as the layers that answered images. Of a segment that was proved
    /// before, that proof stays.
    pub fn with_placements(mut self, placements: Vec<ProvedPlacement>) -> Profile {
        self.placements.extend(placements);
        sort(&self.header, &mut self.placements);
        self
    }
}

/// Sorts by processor in the header's order, then segment, then provider, and keeps the first of each.
pub(super) fn sort(header: &Header, placements: &mut Vec<ProvedPlacement>) {
    let places = header.places();
    let place = |row: &ProvedPlacement| places.get(row.processor.as_str()).copied();
    // Stable, so that of several loads of a segment the one that came first stays first.
    placements.sort_by(|a, b| {
        let key = |row: &ProvedPlacement| (place(row), row.segment);
        key(a)
            .cmp(&key(b))
            .then_with(|| a.provider.cmp(&b.provider))
    });
    placements.dedup_by(|a, b| {
        (&a.processor, a.segment, &a.provider) == (&b.processor, b.segment, &b.provider)
    });
}

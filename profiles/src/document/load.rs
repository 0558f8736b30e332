//! `loads.csv`: what it took to load segments.

use super::Header;
use crate::segment::Segment;
use crate::units::{Bytes, Nanos};

/// What it took to load a segment on a processor, the first time: a run that was interrupted loads some again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The layers that were loaded as one unit.
    pub segment: Segment,
    /// How long loading took.
    pub duration: Nanos,
    /// The processor's memory that the loaded segment takes.
    pub memory: Bytes,
    /// Whether it was compiled for this load, rather than read from the compile cache; `None` where nothing is compiled.
    pub compiled: Option<bool>,
}

/// Sorts by processor in the header's order, then segment, and keeps the first load of each.
pub(super) fn sort(header: &Header, loads: &mut Vec<Load>) {
    let places = header.places();
    let key = |load: &Load| (places.get(load.processor.as_str()).copied(), load.segment);
    // Stable, so that of several loads the one that came first stays first.
    loads.sort_by_key(key);
    loads.dedup_by_key(|load| key(load));
}

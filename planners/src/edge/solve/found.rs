//! What a search comes back with.

use layerlab_profiles::Segment;

use crate::edge::cost::SplitCost;
use crate::edge::placed_group::PlacedGroup;
use crate::edge::side::Side;

/// A split and its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundSplit {
    pub(super) cost: SplitCost,
    pub(super) groups: Vec<PlacedGroup>,
}

/// Layers `first..=last` on a side; the caller has `1 <= first <= last`, and no more layers than a network may have.
pub(super) fn placed((first, last): (usize, usize), side: Side) -> PlacedGroup {
    let segment = Segment::new(first as u32, last as u32);
    let segment = segment.expect("a search goes from a layer to one after it");
    PlacedGroup { segment, side }
}

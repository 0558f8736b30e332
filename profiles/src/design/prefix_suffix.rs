//! The papers' design: S(1,l) and S(l,n) for every layer l (mlmp §4.2.2).

use crate::segment::Segment;

/// Every prefix and every suffix of a model of `layers` layers, the whole model once.
pub(super) fn segments(layers: u32) -> impl Iterator<Item = Segment> {
    let prefixes = (1..=layers).map(Segment::whole);
    let suffixes = (2..=layers).filter_map(move |first| Segment::new(first, layers).ok());
    prefixes.chain(suffixes)
}

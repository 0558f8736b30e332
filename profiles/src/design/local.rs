//! The local design: every layer alone, every pair of neighbours, and the whole model (docs/method.md §4).
//!
//! Noise grows with duration, so that short segments say more per second than long ones. Layers alone and
//! pairs connect all times that can be known at all; the whole model closes the one cycle there is, which
//! makes the sum of the parts testable.

use crate::segment::Segment;

/// Singles, neighbours and the whole of a model of `layers` layers, ascending, each once.
pub(super) fn segments(layers: u32) -> impl Iterator<Item = Segment> {
    (1..=layers).flat_map(move |first| {
        let pair = (first < layers).then_some(first + 1);
        // With two layers the pair is the whole model.
        let whole = (first == 1 && layers > 2).then_some(layers);
        std::iter::once(first)
            .chain(pair)
            .chain(whole)
            .filter_map(move |last| Segment::new(first, last).ok())
    })
}

/// Whether `segment` of a model of `layers` layers is one of them.
pub(super) fn contains(layers: u32, segment: Segment) -> bool {
    segment.layers() <= 2 || segment.layers() == layers
}

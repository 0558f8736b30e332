//! What a processor cannot run: a limit that every plan keeps.

use layerlab_profiles::Segment;

use crate::placement::PackedPlacement;

/// Layers that a processor cannot run as one unit, and why. A single layer is one that it cannot run at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedSegment {
    /// The layers.
    pub segment: Segment,
    /// Why the processor cannot run them, as its runtime says.
    pub reason: String,
}

impl UnsupportedSegment {
    /// Whether it is the layer at `index`, counted from 0, by itself.
    pub fn is_layer(&self, index: usize) -> bool {
        self.segment == Segment::single(index as u32 + 1)
    }

    /// Whether the placement has all these layers on `processor`, counted from 0, which would run them as one unit.
    pub fn is_on(&self, placement: &PackedPlacement, processor: usize) -> bool {
        indices(self.segment).all(|index| placement.processor(index) == processor)
    }
}

/// The layers of a segment, counted from 0.
pub(crate) fn indices(segment: Segment) -> std::ops::Range<usize> {
    segment.first() as usize - 1..segment.last() as usize
}

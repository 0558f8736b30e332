//! JointDNN's design: every segment, because separately timed layers do not add up to grouped ones.

use crate::segment::Segment;

/// Every segment of a model of `layers` layers.
pub(super) fn segments(layers: u32) -> impl Iterator<Item = Segment> {
    (1..=layers).flat_map(move |first| {
        (first..=layers).filter_map(move |last| Segment::new(first, last).ok())
    })
}

//! The segments that may be measured beside the start set.

use crate::segment::Segment;

/// Longer ones are hardly ever worth their time. Planners that weighed all segments of 26 and of 54 layers spent at most
/// 0.4 % of their samples on segments of five and six layers and none on longer ones beside the start set, and as much
/// device time to ±2 % and ±1 % as planners that weighed these alone.
const LONGEST: u32 = 8;

/// Every segment of up to eight layers: their number grows with that of the layers.
pub(super) fn candidates(layers: u32) -> impl Iterator<Item = Segment> {
    (1..=layers.min(LONGEST)).flat_map(move |length| {
        let first = 1..=layers - length + 1;
        first.filter_map(move |first| Segment::new(first, first + length - 1).ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_segments_are_listed_once() {
        assert_eq!(candidates(4).count(), 10);
        assert_eq!(candidates(1000).count(), 8 * 1000 - 28);
        assert!(candidates(1000).all(|segment| segment.layers() <= 8 && segment.last() <= 1000));
    }
}

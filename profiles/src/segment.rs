//! Segments: layers i..=j run as one unit.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Layers `first..=last` of a model, numbered from 1, run on one processor as one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u32, u32)", into = "(u32, u32)")]
pub struct Segment {
    first: u32,
    last: u32,
}

/// Layer numbers that are no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "layers {first}..={last} are no segment: layers are numbered from 1 and the first cannot come after the last"
)]
pub struct SegmentError {
    first: u32,
    last: u32,
}

impl Segment {
    /// Layers `first..=last`, or an error unless `1 <= first <= last`.
    pub const fn new(first: u32, last: u32) -> Result<Self, SegmentError> {
        if first >= 1 && first <= last {
            Ok(Segment { first, last })
        } else {
            Err(SegmentError { first, last })
        }
    }

    /// The segment of one layer.
    ///
    /// # Panics
    /// When `layer` is 0: layers are numbered from 1.
    pub const fn single(layer: u32) -> Self {
        assert!(layer >= 1, "layers are numbered from 1");
        Segment {
            first: layer,
            last: layer,
        }
    }

    /// All layers of a model of `layers` layers.
    ///
    /// # Panics
    /// When `layers` is 0: a model has at least one layer.
    pub const fn whole(layers: u32) -> Self {
        assert!(layers >= 1, "a model has at least one layer");
        Segment {
            first: 1,
            last: layers,
        }
    }

    /// The number of the first layer, counted from 1.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// The number of the last layer, counted from 1.
    pub const fn last(self) -> u32 {
        self.last
    }

    /// How many layers the segment has.
    pub const fn layers(self) -> u32 {
        self.last - self.first + 1
    }

    /// How many layers these cover if each begins where the one before ends, the first with layer 1; nothing if they do not.
    pub fn chained(segments: impl IntoIterator<Item = Segment>) -> Option<u32> {
        let mut segments = segments.into_iter();
        segments.try_fold(0, |covered, segment| {
            (segment.first - 1 == covered).then_some(segment.last)
        })
    }

    /// Whether all its layers are layers of `stretch`.
    pub const fn is_within(self, stretch: Segment) -> bool {
        stretch.first <= self.first && self.last <= stretch.last
    }

    /// The segment as one of a model that begins with the first layer of `stretch`; `None` unless it lies within it.
    pub fn numbered_from(self, stretch: Segment) -> Option<Segment> {
        let before = stretch.first - 1;
        self.is_within(stretch).then(|| Segment {
            first: self.first - before,
            last: self.last - before,
        })
    }

    /// A segment of a model that begins with the first layer of `stretch`, as one of the whole model.
    pub const fn moved_into(self, stretch: Segment) -> Segment {
        let before = stretch.first - 1;
        Segment {
            first: self.first + before,
            last: self.last + before,
        }
    }
}

impl TryFrom<(u32, u32)> for Segment {
    type Error = SegmentError;
    fn try_from((first, last): (u32, u32)) -> Result<Self, SegmentError> {
        Segment::new(first, last)
    }
}

impl From<Segment> for (u32, u32) {
    fn from(segment: Segment) -> Self {
        (segment.first, segment.last)
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}..={}", self.first, self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_starts_at_one_and_does_not_run_backwards() {
        assert!(Segment::new(0, 3).is_err());
        assert!(Segment::new(3, 2).is_err());
        assert_eq!(Segment::new(2, 4).map(Segment::layers), Ok(3));
    }

    #[test]
    fn a_chain_begins_with_layer_1_and_has_no_gaps() {
        let chained = |ends: &[(u32, u32)]| {
            let segments = ends.iter().map(|&(first, last)| Segment { first, last });
            Segment::chained(segments)
        };
        assert_eq!(chained(&[]), Some(0));
        assert_eq!(chained(&[(1, 4), (5, 5), (6, 11)]), Some(11));
        for broken in [
            &[(2, 4)][..],
            &[(1, 4), (6, 8)],
            &[(1, 4), (4, 8)],
            &[(1, u32::MAX), (1, 2)],
        ] {
            assert_eq!(chained(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn a_segment_of_a_stretch_is_numbered_from_its_first_layer_and_back() {
        let segment = |first, last| Segment::new(first, last).expect("ascending");
        let stretch = segment(4, 7);
        assert_eq!(segment(5, 7).numbered_from(stretch), Some(segment(2, 4)));
        assert_eq!(segment(2, 4).moved_into(stretch), segment(5, 7));
        assert_eq!(segment(3, 5).numbered_from(stretch), None);
        assert_eq!(segment(5, 8).numbered_from(stretch), None);
    }
}

//! Tensors that pass through segments: those that a layer gives and that layers beyond the next one read, such as the shortcut of
//! a residual block. A segment between the two takes such a tensor and gives it again, which costs something else than moving
//! it in where it is used and out where it is made (docs/method.md §3).

use crate::layer::{Layer, Shortcut};
use crate::segment::Segment;
use crate::units::Bytes;

/// All shortcuts of a model, or of a stretch of its layers that is measured as a model of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortcuts(Vec<Life>);

/// Between which layers tensors are needed, numbered as in the stretch: those around it count as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Life {
    given_by: i64,
    last_read_by: i64,
    bytes: Bytes,
}

impl Shortcuts {
    /// Those of a model.
    pub fn of(layers: &[Layer]) -> Shortcuts {
        let of_layer = |layer: &'_ Layer| {
            let number = layer.number;
            let shortcuts = layer.shortcuts.clone().into_iter();
            shortcuts.map(move |shortcut| (number, shortcut))
        };
        layers.iter().flat_map(of_layer).collect()
    }

    /// Whether nothing passes through any segment.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What passes through a segment: the bytes that are given before it and read after it.
    pub fn passing(&self, segment: Segment) -> Bytes {
        let (first, last) = (i64::from(segment.first()), i64::from(segment.last()));
        let through = |life: &&Life| life.given_by < first && last < life.last_read_by;
        self.0.iter().filter(through).map(|life| life.bytes).sum()
    }

    /// What crosses the cut after a layer and is read behind the next one, from this layer and those before it.
    pub(crate) fn crossing(&self, layer: u32) -> Bytes {
        let cut = i64::from(layer);
        let across = |life: &&Life| life.given_by <= cut && cut + 1 < life.last_read_by;
        self.0.iter().filter(across).map(|life| life.bytes).sum()
    }

    /// The same, of a stretch of the layers as a model of its own.
    pub fn within(&self, stretch: Segment) -> Shortcuts {
        let before = i64::from(stretch.first()) - 1;
        let moved = |life: &Life| Life {
            given_by: life.given_by - before,
            last_read_by: life.last_read_by - before,
            ..*life
        };
        Shortcuts(self.0.iter().map(moved).collect())
    }
}

/// Each with the layer that gives it.
impl FromIterator<(u32, Shortcut)> for Shortcuts {
    fn from_iter<I: IntoIterator<Item = (u32, Shortcut)>>(shortcuts: I) -> Shortcuts {
        let life = |(layer, shortcut): (u32, Shortcut)| Life {
            given_by: i64::from(layer),
            last_read_by: i64::from(shortcut.to_layer),
            bytes: shortcut.bytes,
        };
        Shortcuts(shortcuts.into_iter().map(life).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(first: u32, last: u32) -> Segment {
        Segment::new(first, last).expect("in order")
    }

    /// Layer 2 gives 100 bytes that layer 5 reads.
    fn block() -> Shortcuts {
        let shortcut = Shortcut {
            to_layer: 5,
            bytes: Bytes::from_bytes(100),
        };
        Shortcuts::from_iter([(2, shortcut)])
    }

    #[test]
    fn a_tensor_passes_through_what_lies_between_its_giver_and_its_last_reader() {
        let shortcuts = block();
        let passes = |first, last| shortcuts.passing(segment(first, last)).as_bytes();
        assert_eq!([passes(3, 3), passes(3, 4), passes(4, 4)], [100; 3]);
        let ends = [passes(2, 3), passes(2, 2), passes(4, 5), passes(5, 5)];
        assert_eq!(ends, [0; 4]);
        assert_eq!([passes(1, 1), passes(6, 6), passes(1, 6)], [0; 3]);
        let crosses = [1, 2, 3, 4, 5].map(|layer| shortcuts.crossing(layer).as_bytes());
        assert_eq!(crosses, [0, 100, 100, 0, 0]);
    }

    #[test]
    fn a_stretch_has_those_that_pass_over_its_ends() {
        let stretch = block().within(segment(3, 4));
        assert_eq!(stretch.passing(segment(1, 2)).as_bytes(), 100);
        let after = block().within(segment(5, 6));
        assert_eq!(after.passing(segment(1, 1)).as_bytes(), 0);
    }
}

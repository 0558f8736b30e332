//! Which layers of a model a processor can run: what it cannot run cuts the model into stretches, and the times of
//! each stretch are derived as those of a model of its own.

use std::collections::BTreeSet;

use crate::segment::Segment;

/// The layers of one model that one processor can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportedLayers {
    layers: u32,
    stretches: Vec<Segment>,
}

impl SupportedLayers {
    /// All layers of a model of `layers` layers.
    pub fn all(layers: u32) -> SupportedLayers {
        SupportedLayers::without(layers, [])
    }

    /// All layers but those that are a segment of `unsupported` by themselves. A longer segment says only that these
    /// layers cannot run as one unit.
    pub fn without(layers: u32, unsupported: impl IntoIterator<Item = Segment>) -> SupportedLayers {
        let singles = unsupported
            .into_iter()
            .filter(|segment| segment.layers() == 1 && segment.last() <= layers);
        let gaps: BTreeSet<u32> = singles.map(Segment::first).collect();
        let firsts = std::iter::once(0).chain(gaps.iter().copied());
        let lasts = gaps
            .iter()
            .map(|gap| gap - 1)
            .chain(std::iter::once(layers));
        // Between neighbouring gaps there may be no layer.
        let stretches = firsts
            .zip(lasts)
            .filter_map(|(gap, last)| Segment::new(gap.checked_add(1)?, last).ok())
            .collect();
        SupportedLayers { layers, stretches }
    }

    /// How many layers the model has.
    pub fn layers(&self) -> u32 {
        self.layers
    }

    /// Whether the processor can run every layer.
    pub fn is_all(&self) -> bool {
        self.layers == 0 || self.stretches == [Segment::whole(self.layers)]
    }

    /// The longest runs of neighbouring layers that the processor can run, ascending.
    pub fn stretches(&self) -> &[Segment] {
        &self.stretches
    }

    /// The longest stretch, and of equally long ones the first; `None` where the processor can run no layer.
    pub fn longest(&self) -> Option<Segment> {
        let stretches = self.stretches.iter().copied();
        stretches.reduce(|longest, next| match next.layers() > longest.layers() {
            true => next,
            false => longest,
        })
    }

    /// The stretch of which `segment` is a part.
    pub fn stretch_of(&self, segment: Segment) -> Option<Segment> {
        let mut stretches = self.stretches.iter().copied();
        stretches.find(|stretch| segment.is_within(*stretch))
    }

    /// Whether the processor can run `layer`, which is counted from 1.
    pub fn has(&self, layer: u32) -> bool {
        let mut stretches = self.stretches.iter();
        stretches.any(|stretch| (stretch.first()..=stretch.last()).contains(&layer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(first: u32, last: u32) -> Segment {
        Segment::new(first, last).expect("ascending")
    }

    #[test]
    fn layers_that_cannot_run_cut_the_model_into_stretches() {
        let gaps = [Segment::single(3), Segment::single(7), segment(4, 6)];
        let supported = SupportedLayers::without(7, gaps);
        assert_eq!(supported.stretches(), [segment(1, 2), segment(4, 6)]);
        assert_eq!(supported.longest(), Some(segment(4, 6)));
        assert_eq!(supported.stretch_of(segment(5, 6)), Some(segment(4, 6)));
        assert_eq!(supported.stretch_of(segment(2, 4)), None);
        let there: Vec<u32> = (0..9).filter(|&layer| supported.has(layer)).collect();
        assert_eq!(there, [1, 2, 4, 5, 6]);
        assert!(!supported.is_all());
    }

    #[test]
    fn the_first_of_equally_long_stretches_is_the_longest() {
        let supported = SupportedLayers::without(5, [Segment::single(3)]);
        assert_eq!(supported.longest(), Some(segment(1, 2)));
    }

    #[test]
    fn a_processor_that_can_run_nothing_has_no_stretch() {
        let none = SupportedLayers::without(2, [Segment::single(1), Segment::single(2)]);
        assert_eq!((none.stretches(), none.longest()), (&[][..], None));
        assert!(SupportedLayers::all(4).is_all());
        assert_eq!(SupportedLayers::all(4).longest(), Some(Segment::whole(4)));
    }
}

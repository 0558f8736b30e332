//! Which layers of a model a processor can run, and which segments its memory holds: what it cannot run cuts the model
//! into stretches, and the times of each stretch are derived as those of a model of its own.

use std::collections::BTreeSet;

use crate::segment::Segment;

/// The layers of one model that one processor can run, and the segments of them that its memory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportedLayers {
    layers: u32,
    stretches: Vec<Segment>,
    /// The last layer of the longest segment that begins with each layer; 0 where the processor cannot run that layer.
    reach: Vec<u32>,
}

impl SupportedLayers {
    /// All layers of a model of `layers` layers.
    pub fn all(layers: u32) -> SupportedLayers {
        SupportedLayers::without(layers, [])
    }

    /// All layers but those that are a segment of `unsupported` by themselves. A longer segment says only that these
    /// layers cannot run as one unit.
    pub fn without(layers: u32, unsupported: impl IntoIterator<Item = Segment>) -> SupportedLayers {
        SupportedLayers::in_memory(layers, unsupported, [])
    }

    /// The same where the processor's memory holds none of the `too_large` segments, and so nothing that contains one:
    /// a layer that is too large is one that cannot run, and neighbours that are too large together are of two stretches.
    pub fn in_memory(
        layers: u32,
        unsupported: impl IntoIterator<Item = Segment>,
        too_large: impl IntoIterator<Item = Segment>,
    ) -> SupportedLayers {
        let is_known = |segment: &Segment| segment.last() <= layers;
        let too_large: BTreeSet<Segment> = too_large.into_iter().filter(is_known).collect();
        let singles = unsupported
            .into_iter()
            .filter(is_known)
            .chain(too_large.iter().copied())
            .filter(|segment| segment.layers() == 1);
        let gaps: BTreeSet<u32> = singles.map(Segment::first).collect();
        let mut parted: BTreeSet<u32> = gaps.iter().flat_map(|&gap| [gap - 1, gap]).collect();
        let pairs = too_large.iter().filter(|one| one.layers() == 2);
        parted.extend(pairs.map(|pair| pair.first()));
        parted.extend([0, layers]);
        // Between neighbouring cuts there are layers, but for the end of a model of none.
        let cuts: Vec<u32> = parted.into_iter().filter(|&cut| cut <= layers).collect();
        let stretches: Vec<Segment> = cuts
            .windows(2)
            .filter_map(|ends| Segment::new(ends[0] + 1, ends[1]).ok())
            .filter(|stretch| !gaps.contains(&stretch.first()))
            .collect();
        let mut reach = vec![0; layers as usize];
        for stretch in &stretches {
            let mut last = stretch.last();
            for first in (stretch.first()..=stretch.last()).rev() {
                let beginning = too_large.range(Segment::single(first)..);
                let mut beginning = beginning.take_while(|one| one.first() == first);
                let shortest = beginning.next();
                last = shortest.map_or(last, |one| last.min(one.last() - 1));
                reach[first as usize - 1] = last;
            }
        }
        SupportedLayers {
            layers,
            stretches,
            reach,
        }
    }

    /// How many layers the model has.
    pub fn layers(&self) -> u32 {
        self.layers
    }

    /// Whether the processor can run every layer, and no two neighbours are too large for its memory together.
    pub fn is_all(&self) -> bool {
        self.layers == 0 || self.stretches == [Segment::whole(self.layers)]
    }

    /// Whether the processor can run the whole model as one segment.
    pub fn holds_whole(&self) -> bool {
        self.layers == 0 || self.holds(Segment::whole(self.layers))
    }

    /// Whether the processor can run `segment` as one: it can run its layers, and its memory holds them.
    pub fn holds(&self, segment: Segment) -> bool {
        let reach = self.reach.get(segment.first() as usize - 1);
        reach.is_some_and(|&last| segment.last() <= last)
    }

    /// The longest segment that the processor can run as one, and of equally long ones the first; `None` where it can run
    /// no layer.
    pub fn largest(&self) -> Option<Segment> {
        longest(&self.reach)
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

    /// The layers of one of the stretches as those of a model of their own.
    pub fn stretch(&self, stretch: Segment) -> StretchLayers {
        let before = stretch.first() - 1;
        let reach = self.reach.iter().copied();
        let within = reach
            .skip(before as usize)
            .take(stretch.layers() as usize)
            .map(|last| last.saturating_sub(before));
        StretchLayers {
            reach: within.collect(),
        }
    }

    /// Whether the processor can run `layer`, which is counted from 1.
    pub fn has(&self, layer: u32) -> bool {
        let mut stretches = self.stretches.iter();
        stretches.any(|stretch| (stretch.first()..=stretch.last()).contains(&layer))
    }
}

/// The layers of one stretch, numbered from 1, and which of its segments the processor's memory holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StretchLayers {
    /// The last layer of the longest segment that begins with each layer.
    reach: Vec<u32>,
}

impl StretchLayers {
    /// A stretch of `layers` layers that memory holds as one.
    pub fn held(layers: u32) -> StretchLayers {
        StretchLayers {
            reach: vec![layers; layers as usize],
        }
    }

    /// How many layers it has.
    pub fn layers(&self) -> u32 {
        self.reach.len() as u32
    }

    /// Whether memory holds all of it as one segment.
    pub fn is_held(&self) -> bool {
        self.reach.first().is_none_or(|&last| last == self.layers())
    }

    /// Whether memory holds `segment` as one.
    pub fn holds(&self, segment: Segment) -> bool {
        let reach = self.reach.get(segment.first() as usize - 1);
        reach.is_some_and(|&last| segment.last() <= last)
    }

    /// The longest segment that memory holds, and of equally long ones the first: all of the stretch, where that fits;
    /// `None` where it has no layer.
    pub fn longest(&self) -> Option<Segment> {
        longest(&self.reach)
    }
}

/// The first of the longest segments that begin with layer 1, 2 and so on, and end with these layers.
fn longest(reach: &[u32]) -> Option<Segment> {
    let all = (1..).zip(reach);
    let all = all.filter_map(|(first, &last)| Segment::new(first, last).ok());
    all.reduce(|longest, next| match next.layers() > longest.layers() {
        true => next,
        false => longest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Design;

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

    #[test]
    fn what_memory_does_not_hold_is_part_of_no_segment() {
        let too_large = [
            segment(1, 4),
            segment(3, 5),
            segment(6, 7),
            Segment::single(9),
        ];
        let supported = SupportedLayers::in_memory(10, [Segment::single(2)], too_large);
        let stretches = [
            Segment::single(1),
            segment(3, 6),
            segment(7, 8),
            Segment::single(10),
        ];
        assert_eq!(supported.stretches(), stretches);
        let held = Design::Grouped.segments(10);
        let held: Vec<Segment> = held
            .into_iter()
            .filter(|&one| supported.holds(one))
            .collect();
        let is_possible = |one: &Segment| {
            let has_none = too_large.iter().all(|large| !large.is_within(*one));
            has_none && !Segment::single(2).is_within(*one)
        };
        let all = Design::Grouped.segments(10);
        let expected: Vec<Segment> = all.into_iter().filter(is_possible).collect();
        assert_eq!(held, expected);
        assert_eq!(supported.largest(), Some(segment(4, 6)));
        let stretch = supported.stretch(segment(3, 6));
        assert_eq!(
            (stretch.layers(), stretch.longest()),
            (4, Some(segment(2, 4)))
        );
        assert!(stretch.holds(segment(1, 2)) && !stretch.holds(segment(1, 3)));
        assert!(!stretch.is_held() && supported.stretch(segment(7, 8)).is_held());
        assert!(!supported.holds_whole() && SupportedLayers::all(3).holds_whole());
        assert_eq!(
            StretchLayers::held(3),
            SupportedLayers::all(3).stretch(Segment::whole(3))
        );
    }
}

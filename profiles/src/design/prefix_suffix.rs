//! The papers' design: S(1,l) and S(l,n) for every layer l (mlmp §4.2.2). They are just enough to determine the
//! times and leave nothing to test.

use rand_chacha::ChaCha8Rng;

use super::agenda::{Agenda, DesignTask};
use super::rules::DesignRules;
use crate::method::Method;
use crate::segment::Segment;
use crate::supported::StretchLayers;

pub(super) struct PrefixSuffix;

impl DesignRules for PrefixSuffix {
    fn name(&self) -> &'static str {
        "prefix-suffix"
    }

    /// Every prefix and every suffix, the whole model once.
    fn segments(&self, layers: u32) -> Box<dyn Iterator<Item = Segment>> {
        let prefixes = (1..=layers).map(Segment::whole);
        let suffixes = (2..=layers).filter_map(move |first| Segment::new(first, layers).ok());
        Box::new(prefixes.chain(suffixes))
    }

    fn methods(&self) -> &'static [Method] {
        &[Method::Differencing, Method::Graph, Method::Probed]
    }

    fn may_measure(&self, stretch: &StretchLayers, segment: Segment) -> bool {
        segment.first() == 1 || segment.last() == stretch.layers()
    }

    /// Prefixes beside the prefixes of one layer less and more, and suffixes likewise: what a layer takes is half of how much longer
    /// it makes a prefix, and half of how much longer a suffix. They are as long as half of the model on average, so that a few
    /// per cent between the speeds of two visits would be as much as the layer.
    fn agenda(&self, task: &DesignTask, random: &mut ChaCha8Rng) -> Agenda {
        let segments = self.segments_in(&task.stretch).collect();
        Agenda::in_order(task.stretch.layers(), segments, random)
    }

    /// Every difference has the whole in it.
    fn needs_whole(&self) -> bool {
        true
    }
}

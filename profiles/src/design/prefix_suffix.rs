//! The papers' design: S(1,l) and S(l,n) for every layer l (mlmp §4.2.2). They are just enough to determine the
//! times and leave nothing to test.

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

    /// Every difference has the whole in it.
    fn needs_whole(&self) -> bool {
        true
    }
}

//! JointDNN's design: every segment, because separately timed layers do not add up to grouped ones.

use std::collections::BTreeSet;

use super::adaptive;
use super::rules::DesignRules;
use crate::method::Method;
use crate::segment::Segment;
use crate::supported::StretchLayers;

pub(super) struct Grouped;

impl DesignRules for Grouped {
    fn name(&self) -> &'static str {
        "grouped"
    }

    fn segments(&self, layers: u32) -> Box<dyn Iterator<Item = Segment>> {
        Box::new((1..=layers).flat_map(move |first| {
            (first..=layers).filter_map(move |last| Segment::new(first, last).ok())
        }))
    }

    fn methods(&self) -> &'static [Method] {
        &[Method::Differencing, Method::Graph, Method::Probed]
    }

    fn may_measure(&self, _stretch: &StretchLayers, _segment: Segment) -> bool {
        true
    }

    /// The same long segments as the adaptive design's; the published fit is of all segments.
    fn tested(&self, stretch: &StretchLayers, seed: u64) -> BTreeSet<Segment> {
        adaptive::held_back_in(stretch, seed)
    }
}

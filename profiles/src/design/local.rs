//! The local design: every layer alone, every pair of neighbours, and the whole model (docs/method.md §4).
//!
//! Noise grows with duration, so that short segments say more per second than long ones. Layers alone and
//! pairs connect all times that can be known at all; the whole model closes the one cycle there is, which
//! makes the sum of the parts testable. Where memory does not hold the whole, the longest segment that it holds does.

use std::collections::BTreeSet;

use super::rules::DesignRules;
use crate::method::Method;
use crate::segment::Segment;
use crate::supported::StretchLayers;

pub(super) struct Local;

impl DesignRules for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    /// Singles, neighbours and the whole, ascending, each once.
    fn segments(&self, layers: u32) -> Box<dyn Iterator<Item = Segment>> {
        Box::new((1..=layers).flat_map(move |first| {
            let pair = (first < layers).then_some(first + 1);
            // With two layers the pair is the whole model.
            let whole = (first == 1 && layers > 2).then_some(layers);
            std::iter::once(first)
                .chain(pair)
                .chain(whole)
                .filter_map(move |last| Segment::new(first, last).ok())
        }))
    }

    fn methods(&self) -> &'static [Method] {
        &[Method::Graph, Method::Probed]
    }

    fn may_measure(&self, stretch: &StretchLayers, segment: Segment) -> bool {
        segment.layers() <= 2 || Some(segment) == stretch.longest()
    }

    fn tested(&self, stretch: &StretchLayers, _seed: u64) -> BTreeSet<Segment> {
        // With two layers the whole model is a pair of neighbours, which the fit cannot do without.
        let longest = stretch.longest().filter(|longest| longest.layers() > 2);
        longest.into_iter().collect()
    }
}

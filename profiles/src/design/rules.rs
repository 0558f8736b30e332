//! What a design says of itself: all that layerlab has to know to measure by it and to derive layer times from it.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;

use super::agenda::{Agenda, DesignTask};
use crate::method::Method;
use crate::segment::Segment;
use crate::supported::StretchLayers;

/// A design as a value. What most designs have in common is said here.
pub(super) trait DesignRules: Sync {
    /// The name users write.
    fn name(&self) -> &'static str;

    /// The segments that are measured in any case on a model of `layers` layers, ascending, each once.
    fn segments(&self, layers: u32) -> Box<dyn Iterator<Item = Segment>>;

    /// The same on a stretch of layers: where memory does not hold all of it as one, those that it holds, and the longest
    /// of them in place of the whole.
    fn segments_in<'a>(
        &self,
        stretch: &'a StretchLayers,
    ) -> Box<dyn Iterator<Item = Segment> + 'a> {
        let all = self.segments(stretch.layers());
        if stretch.is_held() {
            return all;
        }
        let held = all.filter(|segment| stretch.holds(*segment));
        let held: BTreeSet<Segment> = held.chain(stretch.longest()).collect();
        Box::new(held.into_iter())
    }

    /// Whether layer times follow only where the processor's memory holds all layers as one segment.
    fn needs_whole(&self) -> bool {
        false
    }

    /// How layer times follow from them: the first unless a user asks for another one.
    fn methods(&self) -> &'static [Method];

    /// Whether `segment`, which lies within the stretch, may be measured.
    fn may_measure(&self, stretch: &StretchLayers, segment: Segment) -> bool {
        self.segments_in(stretch).any(|listed| listed == segment)
    }

    /// Whether it shows what moving data costs, as an accelerator's must.
    fn shows_transfers(&self) -> bool {
        true
    }

    /// Whether it chooses further segments and samples while it measures.
    fn chooses_as_it_goes(&self) -> bool {
        false
    }

    /// How many samples each segment has, at least, where the user asks for `asked`.
    fn samples_per_segment(&self, asked: u64) -> u64 {
        asked
    }

    /// In how many visits each segment is timed, at least, where the user asks for `asked`.
    fn visits(&self, asked: u64) -> u64 {
        asked
    }

    /// The segments that never take part in a least squares fit, so that they can test it.
    fn held_back(&self, _stretch: &StretchLayers, _seed: u64) -> BTreeSet<Segment> {
        BTreeSet::new()
    }

    /// The segments with which additivity is tested, each against a fit without any of them.
    fn tested(&self, stretch: &StretchLayers, seed: u64) -> BTreeSet<Segment> {
        self.held_back(stretch, seed)
    }

    /// What is measured when; `random` is the run's own.
    fn agenda(&self, task: &DesignTask, random: &mut ChaCha8Rng) -> Agenda {
        let segments = self.segments_in(&task.stretch).collect();
        Agenda::mixed(task.stretch.layers(), segments, random)
    }
}

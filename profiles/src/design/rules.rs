//! What a design says of itself: all that layerlab has to know to measure by it and to derive layer times from it.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;

use super::agenda::{Agenda, DesignTask};
use crate::method::Method;
use crate::segment::Segment;

/// A design as a value. What most designs have in common is said here.
pub(super) trait DesignRules: Sync {
    /// The name users write.
    fn name(&self) -> &'static str;

    /// The segments that are measured in any case on a model of `layers` layers, ascending, each once.
    fn segments(&self, layers: u32) -> Box<dyn Iterator<Item = Segment>>;

    /// How layer times follow from them: the first unless a user asks for another one.
    fn methods(&self) -> &'static [Method];

    /// Whether `segment`, which lies within a model of `layers` layers, may be measured.
    fn may_measure(&self, layers: u32, segment: Segment) -> bool {
        self.segments(layers).any(|listed| listed == segment)
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
    fn held_back(&self, _layers: u32, _seed: u64) -> BTreeSet<Segment> {
        BTreeSet::new()
    }

    /// The segments with which additivity is tested, each against a fit without any of them.
    fn tested(&self, layers: u32, seed: u64) -> BTreeSet<Segment> {
        self.held_back(layers, seed)
    }

    /// What is measured when; `random` is the run's own.
    fn agenda(&self, task: &DesignTask, random: &mut ChaCha8Rng) -> Agenda {
        Agenda::mixed(self.segments(task.layers).collect(), random)
    }
}

//! Every layer by itself, in order, each fed by the one before: how a processor that computes in main memory is
//! read layer by layer.

use rand_chacha::ChaCha8Rng;

use super::agenda::{Agenda, DesignTask, FixedBlock};
use super::rules::DesignRules;
use crate::method::Method;
use crate::segment::Segment;
use crate::supported::StretchLayers;

pub(super) struct LayerPass;

impl DesignRules for LayerPass {
    fn name(&self) -> &'static str {
        "layer-pass"
    }

    fn segments(&self, layers: u32) -> Box<dyn Iterator<Item = Segment>> {
        Box::new((1..=layers).map(Segment::single))
    }

    fn methods(&self) -> &'static [Method] {
        &[Method::Robust, Method::Median]
    }

    fn may_measure(&self, _stretch: &StretchLayers, segment: Segment) -> bool {
        segment.layers() == 1
    }

    fn shows_transfers(&self) -> bool {
        false
    }

    fn agenda(&self, _task: &DesignTask, _random: &mut ChaCha8Rng) -> Agenda {
        Agenda::Fixed(vec![FixedBlock::LayerPass])
    }
}

//! What a design has measured on one processor, block by block: known from the start, or planned while the device
//! measures.

use std::collections::BTreeMap;

use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::over_budget::OverBudget;
use super::planned_block::Next;
use crate::derive::graph::{GraphError, Observations};
use crate::segment::Segment;
use crate::supported::StretchLayers;
use crate::units::Nanos;

/// The segments of a block of a small network. Segments of one block take turns, which spreads drift over them; a block
/// that is lost with a phone is measured again, which should not cost much.
const FEWEST_SEGMENTS: usize = 16;

/// A block has a segment for each so many layers of a larger network. The sentinels of a block take as long as the whole network
/// some six times: with as many segments for all networks, their share would grow with the layers.
const LAYERS_PER_SEGMENT: usize = 3;

/// How many segments a block of a network of so many layers has, at most.
pub fn segments_per_block(layers: u32) -> usize {
    FEWEST_SEGMENTS.max(layers as usize / LAYERS_PER_SEGMENT)
}

/// What a design is to do on one processor.
#[derive(Clone, Debug, PartialEq)]
pub struct DesignTask {
    /// The layers to measure, as of a model of their own, and which of their segments memory holds.
    pub stretch: StretchLayers,
    /// The seed of the measurement.
    pub seed: u64,
    /// The idle time before each inference.
    pub gap: Nanos,
    /// For designs that choose as they go: the half width that every interval should have, as a share.
    pub target: f64,
    /// For designs that choose as they go: how much device time there is.
    pub budget: Nanos,
    /// For designs that choose as they go: what is done where that is not enough to derive layer times.
    pub over_budget: OverBudget,
}

/// What a design has measured on one processor.
pub enum Agenda {
    /// These blocks, known from the start.
    Fixed(Vec<FixedBlock>),
    /// Blocks that follow from what was observed.
    Planned(Box<dyn BlockPlanner>),
}

/// A block that is known from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixedBlock {
    /// The whole model, layer by layer, each fed by the one before.
    LayerPass,
    /// Segments that take turns.
    Segments(Vec<Segment>),
}

/// Says what to measure next while the device measures. A pure function of what it is told.
pub trait BlockPlanner: Send {
    /// Takes in how long it took to load each segment, of those that were loaded so far.
    fn learn_loads(&mut self, loads: &BTreeMap<Segment, Nanos>);

    /// Takes in that the processor cannot run a segment as one unit, which turned out when it was to be loaded. It is not
    /// asked for again.
    fn refuse(&mut self, segment: Segment);

    /// The next block, given all that was observed so far and the device time that it took. Fails only on
    /// observations of another model, and where what was refused leaves too little to derive layer times from.
    fn next(&self, observations: &Observations, spent: Nanos) -> Result<Next, GraphError>;
}

impl Agenda {
    /// Blocks of a few segments each, mixed, so that none has only long or only short ones.
    pub(super) fn mixed(
        layers: u32,
        mut segments: Vec<Segment>,
        random: &mut ChaCha8Rng,
    ) -> Agenda {
        segments.shuffle(random);
        Agenda::divided(&segments, segments_per_block(layers))
    }

    /// Blocks of a few segments each that follow each other in `segments`, from a random one on, the first after the last: what a
    /// visit does to all of its segments alike goes out of the differences of neighbours, and each visit has other ends of blocks.
    pub(super) fn in_order(
        layers: u32,
        mut segments: Vec<Segment>,
        random: &mut ChaCha8Rng,
    ) -> Agenda {
        let blocks = segments.len().div_ceil(segments_per_block(layers)).max(1);
        let first = random.random_range(0..segments.len().max(1));
        segments.rotate_left(first);
        // None of the blocks is much shorter than the others.
        Agenda::divided(&segments, segments.len().div_ceil(blocks).max(1))
    }

    fn divided(segments: &[Segment], length: usize) -> Agenda {
        let blocks = segments.chunks(length);
        Agenda::Fixed(
            blocks
                .map(|block| FixedBlock::Segments(block.to_vec()))
                .collect(),
        )
    }
}

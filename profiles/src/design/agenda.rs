//! What a design has measured on one processor, block by block: known from the start, or planned while the device
//! measures.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::over_budget::OverBudget;
use super::planned_block::Next;
use crate::derive::graph::{GraphError, Observations};
use crate::segment::Segment;
use crate::supported::StretchLayers;
use crate::units::Nanos;

/// Segments per block, at most. Segments of one block take turns, which spreads drift over them; a block
/// that is lost with a phone is measured again, which should not cost much.
pub const SEGMENTS_PER_BLOCK: usize = 16;

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
    pub(super) fn mixed(mut segments: Vec<Segment>, random: &mut ChaCha8Rng) -> Agenda {
        segments.shuffle(random);
        let blocks = segments.chunks(SEGMENTS_PER_BLOCK);
        Agenda::Fixed(
            blocks
                .map(|block| FixedBlock::Segments(block.to_vec()))
                .collect(),
        )
    }
}

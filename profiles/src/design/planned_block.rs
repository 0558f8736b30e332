//! What a planner answers: a block to measure next, or why nothing more is measured.

use crate::segment::Segment;
use crate::units::Nanos;

/// What to measure next.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedBlock {
    /// The segments, ascending, each once.
    pub segments: Vec<Segment>,
    /// How often each is to be timed.
    pub repetitions: u64,
    /// A long segment that is none of them, which has a turn in one of [so many](ROUNDS_BESIDE_LONG) rounds beside them.
    pub long: Option<Segment>,
    /// The device time that the planner expects it to take; zero for the very first, of which nothing
    /// can be known.
    pub expected: Nanos,
    /// What the block is measured for.
    pub purpose: Purpose,
}

/// Of so many rounds of a block one has a turn of the long segment beside its others.
pub const ROUNDS_BESIDE_LONG: u64 = 8;

impl PlannedBlock {
    /// How many samples of this segment the block has.
    pub fn samples_of(&self, segment: Segment) -> u64 {
        match self.long == Some(segment) {
            true => samples_of_long(self.repetitions),
            false => self.repetitions,
        }
    }

    /// All segments, the long one last, each with the number of its samples.
    pub fn counts(&self) -> impl Iterator<Item = (Segment, u64)> {
        let segments = self.segments.iter().chain(&self.long);
        segments.map(|&segment| (segment, self.samples_of(segment)))
    }

    /// How many samples of all segments it has.
    pub fn samples(&self) -> u64 {
        self.counts().map(|(_, samples)| samples).sum()
    }
}

/// How many samples a long segment has beside others that have so many.
pub(super) fn samples_of_long(repetitions: u64) -> u64 {
    repetitions.div_ceil(ROUNDS_BESIDE_LONG)
}

/// Why a block is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Purpose {
    /// The whole model alone, or the longest segment that the processor runs, which says how long anything can take.
    Gauge,
    /// Segments that layer times follow from. They are measured beyond the budget, too, unless it is to be kept.
    Start {
        /// About the device time that all of them take, with what was spent so far.
        needed: Nanos,
    },
    /// Long segments, which check the others and test whether times add up.
    Test,
    /// Segments that narrow the widest interval most per second; its relative half width before.
    Narrow {
        /// The widest relative half width before the block.
        widest: f64,
    },
}

/// The planner's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Measure this, then ask again.
    Measure(PlannedBlock),
    /// Measure no more.
    Done(Reason),
}

/// Why nothing more is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// Every interval is as narrow as wanted.
    TargetReached {
        /// The widest relative half width.
        widest: f64,
    },
    /// What is left of the budget is enough for no block.
    BudgetSpent {
        /// The widest relative half width; `None` if nothing could be measured, so that layer times cannot be derived.
        widest: Option<f64>,
    },
    /// The budget is not enough for the segments that layer times follow from, and is to be kept.
    BudgetTooSmall {
        /// About the device time that these segments take, with what was spent so far.
        needed: Nanos,
    },
}

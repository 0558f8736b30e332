//! Why an algorithm has no plan.

use crate::memory::MemoryUse;
use layerlab_profiles::{Placement, Segment, SignedNanos};

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// Proven: not even the fastest of all placements is fast enough.
    FastestTooSlow {
        /// The fastest placement.
        fastest: Placement,
        /// Its T(L).
        time: SignedNanos,
        /// The fastest placement whatever it needs of memories, where one of them does not hold it.
        without_limit: Option<Box<TooLargePlacement>>,
    },
    /// The one placement that the algorithm considers does not meet the limit; others may.
    OnlyOne {
        /// The one placement that was considered.
        combination: Placement,
        /// Its T(L).
        time: SignedNanos,
        /// Its A(L).
        accuracy: f64,
    },
    /// No placement that the algorithm reaches meets the limit; others may.
    NothingReached {
        /// Where the algorithm starts.
        start: Placement,
    },
    /// A processor cannot run the one placement that the algorithm considers; others may be possible.
    Unsupported {
        /// The one placement that was considered.
        combination: Placement,
        /// What plans call the processor.
        processor: String,
        /// The layers that it cannot run.
        segment: Segment,
        /// Why it cannot run them.
        reason: String,
    },
    /// The memory of an accelerator does not hold the one placement that the algorithm considers; others may fit.
    TooLarge(Box<TooLargePlacement>),
}

/// A placement that the memory of an accelerator does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLargePlacement {
    /// The placement.
    pub combination: Placement,
    /// What its T(L) would be.
    pub time: SignedNanos,
    /// What it needs of the memory.
    pub shortage: MemoryUse,
}

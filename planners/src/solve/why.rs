//! Why an algorithm has no plan.

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
}

//! The placements from which every limit is answered.

use crate::placement::PackedPlacement;
use serde::{Deserialize, Serialize};

/// The placements that no other one of a search beats at any limit: for each time the most accurate, and for each
/// accuracy the fastest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Front {
    /// The placements, each once, in their order.
    pub placements: Vec<PackedPlacement>,
    /// How many placements' accuracies were predicted to find them.
    pub evaluated: u64,
}

//! A group of layers on one side: a step of a plan.

use std::fmt;

use layerlab_profiles::Segment;

use super::side::Side;

/// A group of layers on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlacedGroup {
    /// The layers, which run as one unit.
    pub segment: Segment,
    /// Where they run.
    pub side: Side,
}

impl fmt::Display for PlacedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on the {}", self.segment, self.side)
    }
}

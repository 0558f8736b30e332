//! A measured segment as an edge of the segment graph, from the node before its first layer to the one after its last.

use super::observation::Observation;

/// One measured segment in the adjustment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) observation: Observation,
    pub(super) begin: usize,
    pub(super) end: usize,
    /// What passes through the segment.
    pub(super) passing_bytes: f64,
    /// Of the segment's time, in ns².
    pub(super) variance: f64,
    /// By what the variance was multiplied because the time contradicts the others.
    pub(super) inflation: f64,
}

//! A measured segment as an edge of the segment graph, from the node before its first layer to the one after its last.

use super::observation::Observation;

/// One measured segment in the adjustment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) observation: Observation,
    pub(super) begin: usize,
    pub(super) end: usize,
    /// Of the segment's time, in ns².
    pub(super) variance: f64,
    /// By what the variance was multiplied because the time contradicts the others.
    pub(super) inflation: f64,
}

impl Edge {
    pub(super) fn residual(&self, values: &[f64]) -> f64 {
        self.observation.time_ns - values[self.begin] - values[self.end]
    }
}

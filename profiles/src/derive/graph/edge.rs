//! A measured segment as an edge of the segment graph, from the node before its first layer to the one after its last.

use nalgebra::DMatrix;

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

    /// The variance of the fitted time.
    pub(super) fn fitted_variance(&self, covariance: &DMatrix<f64>) -> f64 {
        let fixed = covariance.ncols();
        let alone = covariance[(self.begin, self.begin)];
        if self.end == fixed {
            return alone;
        }
        alone + 2.0 * covariance[(self.begin, self.end)] + covariance[(self.end, self.end)]
    }
}

//! What all segments together say: a, b and what bytes cost that pass, with their errors.

use std::sync::OnceLock;

use super::connected::GraphError;
use super::contrast::Nodes;
use super::edge::Edge;
use super::normal::{NodeCovariance, Normal};
use super::passing::Passing;

/// What all segments together say.
#[derive(Clone, Debug)]
pub(super) struct Adjusted {
    /// a and b in ns, b_n being 0.
    pub(super) values: Vec<f64>,
    pub(super) normal: Normal,
    /// Of a and b, were the cost of passing known; calculated when it is first asked for.
    covariance: OnceLock<NodeCovariance>,
    /// What bytes cost that pass; `None` where none do, or it cannot be told.
    pub(super) passing: Option<Passing>,
}

impl Adjusted {
    pub(super) fn of(nodes: Nodes, edges: &[Edge]) -> Result<Adjusted, GraphError> {
        let normal = Normal::new(nodes, edges)?;
        let mut values = normal.solve(edges, |edge| edge.observation.time_ns)?;
        let passing = Passing::of(&normal, edges, &values)?;
        if let Some(passing) = &passing {
            passing.taken_out_of(&mut values);
        }
        Ok(Adjusted {
            values,
            normal,
            covariance: OnceLock::new(),
            passing,
        })
    }

    /// The time of a segment as all together have it, in ns.
    pub(super) fn fitted(&self, edge: &Edge) -> f64 {
        let nodes = self.values[edge.begin] + self.values[edge.end];
        nodes + self.cost_of_passing(edge.passing_bytes)
    }

    /// The variance of that, in ns².
    pub(super) fn variance_of_fitted(&self, edge: &Edge) -> f64 {
        let by_passing = self
            .passing
            .as_ref()
            .map_or(0.0, |passing| passing.left(edge).powi(2) * passing.variance);
        self.covariance().of_fitted_time(edge) + by_passing
    }

    pub(super) fn covariance(&self) -> &NodeCovariance {
        self.covariance.get_or_init(|| self.normal.covariance())
    }

    pub(super) fn cost_of_passing(&self, bytes: f64) -> f64 {
        let ns_per_byte = self.passing.as_ref().map_or(0.0, |one| one.ns_per_byte);
        ns_per_byte * bytes
    }
}

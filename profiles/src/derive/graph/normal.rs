//! The normal equations of the adjustment: the graph's weighted Laplacian without b_n, which is fixed at 0.

use std::ops::Range;

use super::connected::GraphError;
use super::contrast::{Contrast, Nodes};
use super::edge::Edge;
use super::skyline::{Envelope, Factor, Scalar, Symmetric};

/// Entries beside the diagonal that are kept in any case: the covariances of all that the times of two layers and the
/// cuts around them consist of.
const BAND: usize = 9;

/// The normal equations, factored.
#[derive(Clone, Debug)]
pub(super) struct Normal {
    nodes: Nodes,
    factor: Factor<f64>,
    /// The smallest variance: in units of it the arithmetic stays in range whatever the unit of time.
    unit: f64,
}

/// The covariances of the nodes that share segments or stand close together, in ns².
#[derive(Clone, Debug)]
pub(super) struct NodeCovariance {
    inverse: Symmetric<f64>,
    unit: f64,
}

impl Normal {
    pub(super) fn new(nodes: Nodes, edges: &[Edge]) -> Result<Normal, GraphError> {
        let unit = smallest_variance(edges);
        let factor = laplacian::<f64>(nodes, edges, unit, []).factor();
        let is_sound = |&pivot: &f64| pivot > 0.0 && pivot.is_finite();
        if !factor.pivots().iter().all(is_sound) {
            return Err(GraphError::Singular);
        }
        Ok(Normal {
            nodes,
            factor,
            unit,
        })
    }

    /// The a and b whose sums come closest to what each edge has `of` it, such as its time.
    pub(super) fn solve(
        &self,
        edges: &[Edge],
        of: impl Fn(&Edge) -> f64,
    ) -> Result<Vec<f64>, GraphError> {
        let fixed = self.nodes.count() - 1;
        let mut values = vec![0.0; self.nodes.count()];
        // The second pass adjusts what rounding has left of the first: times of 100 ms to the nanosecond.
        for _ in 0..2 {
            let mut moments = vec![0.0; self.nodes.count()];
            for edge in edges {
                let left = of(edge) - values[edge.begin] - values[edge.end];
                let moment = self.unit / edge.variance * left;
                moments[edge.begin] += moment;
                moments[edge.end] += moment;
            }
            self.factor.solve(&mut moments[..fixed]);
            for (value, correction) in values[..fixed].iter_mut().zip(&moments) {
                *value += correction;
            }
        }
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(GraphError::Singular)
        }
    }

    /// The covariance of each of these nodes with the contrast, in ns², if the nodes after them were known; 0 for b_n, which is
    /// fixed. The contrast is of these nodes alone.
    pub(super) fn lever(&self, contrast: &Contrast, nodes: Range<usize>) -> Vec<f64> {
        let mut lever = vec![0.0; nodes.len()];
        for &(node, factor) in &contrast.0 {
            lever[node - nodes.start] += factor * self.unit;
        }
        let fixed = self.nodes.count() - 1;
        if nodes.contains(&fixed) {
            lever[fixed - nodes.start] = 0.0;
        }
        let rows = nodes.start..nodes.end.min(fixed);
        self.factor
            .solve_within(rows.clone(), &mut lever[..rows.len()]);
        lever
    }

    pub(super) fn covariance(&self) -> NodeCovariance {
        NodeCovariance {
            inverse: self.factor.selected_inverse(),
            unit: self.unit,
        }
    }
}

impl NodeCovariance {
    /// Of two nodes that share a segment or stand close together; 0 for b_n, which is fixed.
    pub(super) fn get(&self, one: usize, other: usize) -> Option<f64> {
        if one.max(other) == self.inverse.size() {
            return Some(0.0);
        }
        Some(self.unit * self.inverse.get(one, other)?)
    }

    /// The variance of the fitted time of a segment that takes part in the fit, in ns².
    pub(super) fn of_fitted_time(&self, edge: &Edge) -> f64 {
        let entry = |one, other| {
            let entry = self.get(one, other);
            entry.expect("there is room for the ends of each segment of the fit")
        };
        entry(edge.begin, edge.begin)
            + 2.0 * entry(edge.begin, edge.end)
            + entry(edge.end, edge.end)
    }
}

/// The smallest variance of all edges, in ns².
pub(super) fn smallest_variance(edges: &[Edge]) -> f64 {
    edges
        .iter()
        .map(|edge| edge.variance)
        .fold(f64::INFINITY, f64::min)
}

/// The matrix of the normal equations in units of 1 / `unit`, with room for the covariances of the pairs of nodes in
/// `also`.
pub(super) fn laplacian<T: Scalar>(
    nodes: Nodes,
    edges: &[Edge],
    unit: f64,
    also: impl IntoIterator<Item = (usize, usize)>,
) -> Symmetric<T> {
    let fixed = nodes.count() - 1;
    let measured = edges.iter().map(|edge| (edge.begin, edge.end));
    let pairs = measured.chain(also);
    let unknown = pairs.filter(|&(one, other)| one.max(other) < fixed);
    let mut matrix = Symmetric::zero(Envelope::new(fixed, BAND, unknown));
    for edge in edges {
        let weight = T::from(unit / edge.variance);
        matrix.add(edge.begin, edge.begin, weight);
        if edge.end < fixed {
            matrix.add(edge.end, edge.end, weight);
            matrix.add(edge.begin, edge.end, weight);
        }
    }
    matrix
}

//! What a byte costs that passes through a segment, beside moving in and out: S(i,j) = a_i + b_j + γ p(i,j), where p(i,j) is what
//! layers before i give to layers after j (docs/method.md §3).
//!
//! The sum of the a and b that comes closest to p is taken out of p first (Frisch and Waugh, Econometrica 1, 1933): what is left
//! tells γ, whose error is then independent of those of the a and b without it.

use super::connected::GraphError;
use super::contrast::Contrast;
use super::edge::Edge;
use super::normal::Normal;

/// Where less of the squares of p is left, nothing but rounding is, and γ cannot be told from the a and b.
const LEAST_LEFT: f64 = 1e-9;

/// γ, and how all that is derived depends on it.
#[derive(Clone, Debug)]
pub(super) struct Passing {
    pub(super) ns_per_byte: f64,
    pub(super) variance: f64,
    /// The a and b whose sums come closest to p, in bytes.
    nodes: Vec<f64>,
}

impl Passing {
    /// γ from these segments, whose a and b without it are `values`; `None` where nothing passes through them, or they do not
    /// tell γ.
    pub(super) fn of(
        normal: &Normal,
        edges: &[Edge],
        values: &[f64],
    ) -> Result<Option<Passing>, GraphError> {
        if edges.iter().all(|edge| edge.passing_bytes == 0.0) {
            return Ok(None);
        }
        let nodes = normal.solve(edges, |edge| edge.passing_bytes)?;
        let (mut all, mut left_over, mut moment) = (0.0, 0.0, 0.0);
        for edge in edges {
            let left = edge.passing_bytes - nodes[edge.begin] - nodes[edge.end];
            let time_left = edge.observation.time_ns - values[edge.begin] - values[edge.end];
            all += edge.passing_bytes * edge.passing_bytes / edge.variance;
            left_over += left * left / edge.variance;
            moment += left * time_left / edge.variance;
        }
        Ok((left_over > LEAST_LEFT * all).then(|| Passing {
            ns_per_byte: moment / left_over,
            variance: 1.0 / left_over,
            nodes,
        }))
    }

    /// The a and b that go with γ, from those without.
    pub(super) fn taken_out_of(&self, values: &mut [f64]) {
        for (value, bytes) in values.iter_mut().zip(&self.nodes) {
            *value -= self.ns_per_byte * bytes;
        }
    }

    /// How much a combination of a and b and of so many bytes that pass grows with γ, beside what it would be without.
    pub(super) fn grows(&self, contrast: &Contrast, passing_bytes: f64) -> f64 {
        passing_bytes - contrast.of(&self.nodes)
    }

    /// What is left of an edge's p.
    pub(super) fn left(&self, edge: &Edge) -> f64 {
        edge.passing_bytes - self.nodes[edge.begin] - self.nodes[edge.end]
    }
}

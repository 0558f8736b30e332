//! Weighted least squares for a and b, with their covariance, and what follows from them.

use std::collections::BTreeSet;

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

use super::connected::{GraphError, refuse_unless_connected};
use super::contrast::{Contrast, Nodes};
use super::edge::Edge;
use super::observation::{Observation, Observations};
use super::quantile::t_95;
use super::snooping;
use crate::layer_time::{Includes, LayerTime};
use crate::placement::Placement;
use crate::segment::Segment;
use crate::summary::{Estimate, Z_95};
use crate::time_model::TimeModelError;

/// Weights depend on the times and the times on the weights; each round shrinks what is left by the
/// relative noise, a few per cent.
const ROUNDS: usize = 3;

/// The times of all segments of one model on one accelerator, measured or not.
#[derive(Clone, Debug)]
pub struct Fit {
    nodes: Nodes,
    /// a and b in ns, b_n being 0.
    values: Vec<f64>,
    /// Of all nodes but b_n.
    covariance: DMatrix<f64>,
    edges: Vec<Edge>,
    has_spread: bool,
    suspects: Vec<Segment>,
}

/// A linear combination of times with what is known about its error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Derived {
    pub(super) value_ns: f64,
    pub(super) variance: f64,
    pub(super) freedom: f64,
}

impl Fit {
    /// Adjusts the times of all observed segments but those in `held_back` to each other.
    pub fn new(
        layers: u32,
        observations: &Observations,
        held_back: &BTreeSet<Segment>,
    ) -> Result<Fit, GraphError> {
        let used = || {
            let segments = observations.segments.iter();
            segments.filter(|observation| !held_back.contains(&observation.segment))
        };
        refuse_unless_connected(layers, used().map(|observation| observation.segment))?;
        let nodes = Nodes::of(layers);
        let mut edges: Vec<Edge> = used()
            .map(|&observation| {
                let (begin, end) = nodes.ends(observation.segment);
                Edge {
                    observation,
                    begin,
                    end,
                    variance: weighable(observations, &observation, observation.time_ns),
                    inflation: 1.0,
                }
            })
            .collect();
        let mut values = Normal::new(nodes, &edges)?.solve(&edges)?;
        for _ in 2..ROUNDS {
            reweigh(observations, &mut edges, &values);
            values = Normal::new(nodes, &edges)?.solve(&edges)?;
        }
        let (mut values, mut covariance) = adjust(observations, nodes, &mut edges, &values)?;
        let mut suspects = Vec::new();
        if observations.has_spread {
            // Each round removes one segment from influence; there are no more rounds than segments.
            for _ in 0..edges.len() {
                let Some(suspect) = snooping::most_contradictory(&edges, &values, &covariance)
                else {
                    break;
                };
                edges[suspect.place].inflation *= suspect.inflation;
                suspects.push(edges[suspect.place].observation.segment);
                (values, covariance) = adjust(observations, nodes, &mut edges, &values)?;
            }
        }
        suspects.sort_unstable();
        suspects.dedup();
        Ok(Fit {
            nodes,
            values,
            covariance,
            edges,
            has_spread: observations.has_spread,
            suspects,
        })
    }

    /// How many layers the model has.
    pub fn layers(&self) -> u32 {
        self.nodes.layers()
    }

    /// Segments whose times contradict the others by more than noise explains, and which therefore have
    /// lost their weight.
    pub fn suspects(&self) -> &[Segment] {
        &self.suspects
    }

    /// S(i,j), whether it was measured or not.
    ///
    /// # Panics
    /// When the model has fewer layers than the segment.
    pub fn segment(&self, segment: Segment) -> Estimate {
        self.estimate(&self.nodes.segment(segment))
    }

    /// The times of the layers in the papers' terms, layer 1 first, under the assumption that they make:
    /// a cut costs the same both ways, t_d(l) = t_r(l-1) (docs/method.md §3).
    pub fn layer_times(&self) -> Vec<LayerTime> {
        let layers = self.layers();
        let transfer = |cut: u32| self.estimate(&self.nodes.transfer_after(cut));
        (1..=layers)
            .map(|layer| {
                let (first, last) = (layer == 1, layer == layers);
                LayerTime {
                    compute: self.estimate(&self.nodes.compute(layer)),
                    compute_includes: Includes {
                        to_processor: first,
                        from_processor: last,
                    },
                    to_processor: (!first).then(|| transfer(layer - 1)),
                    from_processor: (!last).then(|| transfer(layer)),
                }
            })
            .collect()
    }

    /// What cutting between neighbours costs, layers 1 and 2 first: leaving after one and entering before
    /// the next, and what they would have saved by running together. Needs no assumption (docs/method.md §3).
    pub fn cuts(&self) -> Vec<Estimate> {
        (1..self.layers())
            .map(|layer| self.estimate(&self.nodes.cut_after(layer)))
            .collect()
    }

    /// T(L) with its interval: the runs of ones on this accelerator, the zeros on the CPU whose layer
    /// times are `cpu`; a placement on more processors is refused. Needs no assumption about transfers.
    /// There is no interval where a CPU time that it contains has none.
    pub fn combination(
        &self,
        cpu: &[LayerTime],
        placement: &Placement,
    ) -> Result<Estimate, TimeModelError> {
        let layers = self.layers() as usize;
        if cpu.len() != layers {
            return Err(TimeModelError::LayerCounts {
                cpu: cpu.len(),
                npu: layers,
            });
        }
        if placement.layers() != layers {
            return Err(TimeModelError::CombinationLength {
                given: placement.layers(),
                expected: layers,
            });
        }
        if let Some(&processor) = placement.processors().iter().find(|&&on| on > 1) {
            return Err(TimeModelError::NoSuchProcessor { processor });
        }
        let npu = self.derive(&self.nodes.npu_part(placement));
        let on_cpu = || {
            let places = placement.processors().iter().zip(cpu);
            places
                .filter(|(processor, _)| **processor == 0)
                .map(|(_, time)| time.compute)
        };
        let value = npu.value_ns + on_cpu().map(|t| t.value.as_nanos() as f64).sum::<f64>();
        let cpu_variance: Option<f64> = on_cpu().map(variance_of_interval).sum();
        let any_npu = !placement.is_all_on(0);
        let half_width = match cpu_variance {
            Some(cpu_variance) if self.has_spread || !any_npu => {
                // Student's quantile matters for the NPU's part alone: the CPU's intervals have theirs.
                let t = if any_npu { t_95(npu.freedom) } else { Z_95 };
                Some((t * t * npu.variance + Z_95 * Z_95 * cpu_variance).sqrt())
            }
            _ => None,
        };
        Ok(Estimate::around(value, half_width))
    }

    /// Any linear combination of the nodes, with its interval.
    fn estimate(&self, contrast: &Contrast) -> Estimate {
        let derived = self.derive(contrast);
        let half_width = self
            .has_spread
            .then(|| t_95(derived.freedom) * derived.variance.sqrt());
        Estimate::around(derived.value_ns, half_width)
    }

    pub(super) fn derive(&self, contrast: &Contrast) -> Derived {
        let lever = self.lever(contrast);
        let (mut variance, mut squares) = (0.0, 0.0);
        let mut most = 0.0_f64;
        for edge in &self.edges {
            // How much of the edge's error reaches the result.
            let factor = (lever[edge.begin] + lever[edge.end]) / edge.variance;
            let part = factor * factor * edge.variance;
            let freedom = edge.observation.freedom.max(f64::MIN_POSITIVE);
            variance += part;
            squares += part * part / freedom;
            most = most.max(edge.observation.freedom);
        }
        // Welch and Satterthwaite: the degrees of freedom of a sum of variances. Variances that were
        // moderated by one another are not known better together than the best of them.
        let freedom = if squares > 0.0 {
            (variance * variance / squares).min(most)
        } else {
            most
        };
        Derived {
            value_ns: contrast.of(&self.values),
            variance,
            freedom: freedom.max(1.0),
        }
    }

    /// The covariance of every node with the contrast; 0 for b_n, which is fixed.
    pub(super) fn lever(&self, contrast: &Contrast) -> Vec<f64> {
        let mut lever = vec![0.0; self.nodes.count()];
        let unknowns = self.covariance.ncols();
        for &(node, factor) in &contrast.0 {
            if node < unknowns {
                let column = self.covariance.column(node);
                for (sum, &covariance) in lever.iter_mut().zip(column.iter()) {
                    *sum += factor * covariance;
                }
            }
        }
        lever
    }

    pub(super) fn nodes(&self) -> Nodes {
        self.nodes
    }

    pub(super) fn has_spread(&self) -> bool {
        self.has_spread
    }

    /// The covariance of all nodes but b_n.
    pub(crate) fn state(&self) -> (Nodes, &DMatrix<f64>) {
        (self.nodes, &self.covariance)
    }
}

/// The variance by which an observation is weighed, were its true time `time_ns`. Without any spread to
/// go by, noise is taken to be proportional, which is what it mostly is.
fn weighable(observations: &Observations, observation: &Observation, time_ns: f64) -> f64 {
    if observations.has_spread {
        observations.variance(observation, time_ns)
    } else {
        (0.01 * time_ns).powi(2).max(1.0) / observation.count
    }
}

/// Weighs every edge by the time that all edges together give it: by its own, an edge that came out short
/// would count as more certain than one that came out long.
fn reweigh(observations: &Observations, edges: &mut [Edge], values: &[f64]) {
    for edge in edges {
        let fitted = values[edge.begin] + values[edge.end];
        // Where noise drives a short segment's fitted time far down, its own time is the better guess.
        let time_ns = fitted.max(edge.observation.time_ns / 2.0);
        edge.variance = weighable(observations, &edge.observation, time_ns) * edge.inflation;
    }
}

/// New weights from `values`, and a, b and the covariance that follow from them.
fn adjust(
    observations: &Observations,
    nodes: Nodes,
    edges: &mut [Edge],
    values: &[f64],
) -> Result<(Vec<f64>, DMatrix<f64>), GraphError> {
    reweigh(observations, edges, values);
    let normal = Normal::new(nodes, edges)?;
    Ok((normal.solve(edges)?, normal.covariance()))
}

/// The normal equations of the adjustment, factored, without b_n, which is fixed at 0.
struct Normal {
    nodes: Nodes,
    factor: Cholesky<f64, Dyn>,
    /// The smallest variance: in units of it the arithmetic stays in range whatever the unit of time.
    unit: f64,
}

impl Normal {
    fn new(nodes: Nodes, edges: &[Edge]) -> Result<Normal, GraphError> {
        let unknowns = nodes.count() - 1;
        let unit = edges
            .iter()
            .map(|edge| edge.variance)
            .fold(f64::INFINITY, f64::min);
        let mut normal = DMatrix::<f64>::zeros(unknowns, unknowns);
        for edge in edges {
            let weight = unit / edge.variance;
            normal[(edge.begin, edge.begin)] += weight;
            if edge.end < unknowns {
                normal[(edge.end, edge.end)] += weight;
                normal[(edge.begin, edge.end)] += weight;
                normal[(edge.end, edge.begin)] += weight;
            }
        }
        let factor = Cholesky::new(normal).ok_or(GraphError::Singular)?;
        Ok(Normal {
            nodes,
            factor,
            unit,
        })
    }

    /// a and b.
    fn solve(&self, edges: &[Edge]) -> Result<Vec<f64>, GraphError> {
        let unknowns = self.nodes.count() - 1;
        let mut values = vec![0.0; self.nodes.count()];
        // The second pass adjusts what rounding has left of the first: times of 100 ms to the nanosecond.
        for _ in 0..2 {
            let mut moments = DVector::<f64>::zeros(unknowns);
            for edge in edges {
                let moment = self.unit / edge.variance * edge.residual(&values);
                moments[edge.begin] += moment;
                if edge.end < unknowns {
                    moments[edge.end] += moment;
                }
            }
            let correction = self.factor.solve(&moments);
            for (value, correction) in values.iter_mut().zip(correction.iter()) {
                *value += correction;
            }
        }
        if values.iter().all(|value| value.is_finite()) {
            Ok(values)
        } else {
            Err(GraphError::Singular)
        }
    }

    fn covariance(&self) -> DMatrix<f64> {
        self.factor.inverse() * self.unit
    }
}

/// The variance that a normal interval as wide as this estimate's stands for.
fn variance_of_interval(estimate: Estimate) -> Option<f64> {
    let (low, high) = estimate.ci95?;
    let width = high.as_nanos().saturating_sub(low.as_nanos()) as f64;
    Some((width / (2.0 * Z_95)).powi(2))
}

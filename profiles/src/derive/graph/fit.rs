//! Weighted least squares for a and b, with their covariance, and what follows from them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::adjusted::Adjusted;
use super::connected::{GraphError, refuse_unless_connected};
use super::contrast::{Contrast, Nodes};
use super::derived_number::DerivedNumber;
use super::edge::Edge;
use super::moving::MovingTerm;
use super::observation::{ErrorVariance, Observations};
use super::prospect::{PassingProspect, Prospect, prospects};
use super::quantile::t_95;
use super::snooping;
use crate::layer_time::LayerTime;
use crate::placement::Placement;
use crate::segment::Segment;
use crate::shortcuts::Shortcuts;
use crate::summary::{Estimate, Z_95};
use crate::time_model::TimeModelError;
use crate::units::Bytes;

/// Weights depend on the times and the times on the weights; each round shrinks what is left by the
/// relative noise, a few per cent.
const ROUNDS: usize = 3;

/// How far from a combination of nodes segments begin that tell most of its variance: two layers.
const REACH: usize = 4;

/// The times of all segments of one model on one accelerator, measured or not.
#[derive(Clone, Debug)]
pub struct Fit {
    nodes: Nodes,
    adjusted: Adjusted,
    /// Ascending by segment.
    edges: Vec<Edge>,
    shortcuts: Shortcuts,
    has_spread: bool,
    /// The relative error that all times have in common.
    common: ErrorVariance,
    suspects: Vec<Segment>,
}

/// A linear combination of times with what is known about its error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Derived {
    pub(super) value_ns: f64,
    pub(super) variance: f64,
    pub(super) freedom: f64,
}

impl Derived {
    /// The same for others to use; nothing is known of its error where no samples scatter.
    pub(super) fn known(self, has_spread: bool) -> DerivedNumber {
        DerivedNumber {
            value_ns: self.value_ns,
            error: has_spread.then_some(ErrorVariance {
                variance: self.variance,
                freedom: self.freedom,
            }),
        }
    }
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
                    passing_bytes: bytes(observations.shortcuts.passing(observation.segment)),
                    variance: observations.weighable(&observation, observation.time_ns),
                    inflation: 1.0,
                }
            })
            .collect();
        let mut adjusted = Adjusted::of(nodes, &edges)?;
        for _ in 1..ROUNDS {
            reweigh(observations, &mut edges, &adjusted);
            adjusted = Adjusted::of(nodes, &edges)?;
        }
        let mut suspects = Vec::new();
        if observations.has_spread {
            // Each round removes one segment from influence; there are no more rounds than segments.
            for _ in 0..edges.len() {
                let Some(suspect) = snooping::most_contradictory(&edges, &adjusted) else {
                    break;
                };
                edges[suspect.place].inflation *= suspect.inflation;
                suspects.push(edges[suspect.place].observation.segment);
                reweigh(observations, &mut edges, &adjusted);
                adjusted = Adjusted::of(nodes, &edges)?;
            }
        }
        suspects.sort_unstable();
        suspects.dedup();
        Ok(Fit {
            nodes,
            adjusted,
            edges,
            shortcuts: observations.shortcuts.clone(),
            has_spread: observations.has_spread,
            common: observations.visits.of_times,
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
        let number = self.with_common(self.derive_segment(segment));
        number.known(self.has_spread).estimate()
    }

    /// What cutting between neighbours costs, layers 1 and 2 first: leaving after one and entering before
    /// the next, and what they would have saved by running together. Needs no assumption (docs/method.md §3).
    pub fn cuts(&self) -> Vec<Estimate> {
        let numbers = self.cut_numbers().into_iter();
        numbers.map(|number| number.estimate()).collect()
    }

    /// The same with the degrees of freedom of their errors.
    pub(crate) fn cut_numbers(&self) -> Vec<DerivedNumber> {
        (1..self.layers())
            .map(|layer| self.number(&self.nodes.cut_after(layer)))
            .collect()
    }

    /// S(1,n) with the degrees of freedom of its error.
    pub(crate) fn whole_number(&self) -> DerivedNumber {
        self.number(&self.nodes.segment(Segment::whole(self.layers())))
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
        let npu = self.with_common(self.derive(&self.nodes.npu_part(placement)));
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

    /// A derived number with the error that all times have in common on top: it errs in proportion to itself.
    pub(super) fn with_common(&self, derived: Derived) -> Derived {
        let own = ErrorVariance {
            variance: derived.variance,
            freedom: derived.freedom,
        };
        let common = ErrorVariance {
            variance: self.common.variance * derived.value_ns * derived.value_ns,
            ..self.common
        };
        let sum = ErrorVariance::sum([own, common]);
        Derived {
            variance: sum.variance,
            freedom: sum.freedom.max(1.0),
            ..derived
        }
    }

    fn number(&self, contrast: &Contrast) -> DerivedNumber {
        self.with_common(self.derive(contrast))
            .known(self.has_spread)
    }

    /// Any combination of a and b.
    pub(super) fn derive(&self, contrast: &Contrast) -> Derived {
        self.derive_with(contrast, 0.0)
    }

    /// S(i,j), with what passes through.
    pub(super) fn derive_segment(&self, segment: Segment) -> Derived {
        let passing = self.passing_bytes(segment);
        self.derive_with(&self.nodes.segment(segment), passing)
    }

    /// A combination of a and b and of what so many bytes cost that pass.
    pub(super) fn derive_with(&self, contrast: &Contrast, passing_bytes: f64) -> Derived {
        let lever = self.lever(contrast);
        let passing = self.adjusted.passing.as_ref();
        let by_passing = passing.map_or(0.0, |passing| {
            passing.grows(contrast, passing_bytes) * passing.variance
        });
        let (mut variance, mut squares) = (0.0, 0.0);
        let mut most = 0.0_f64;
        for edge in &self.edges {
            // How much of the edge's error reaches the result.
            let left = passing.map_or(0.0, |passing| passing.left(edge));
            let reach = lever[edge.begin] + lever[edge.end] + by_passing * left;
            let factor = reach / edge.variance;
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
            value_ns: self.value_ns(contrast) + self.cost_of_passing(passing_bytes),
            variance,
            freedom: freedom.max(1.0),
        }
    }

    /// Half the 95 % interval of a combination of neighbouring nodes, in ns, from the segments around it alone: what
    /// others add to its degrees of freedom is taken to be known as badly as anything. `None` without any spread.
    pub(crate) fn half_width_from_nearby(&self, contrast: &Contrast) -> Option<f64> {
        let variance = self.variance_of_neighbours(contrast);
        let nodes = || contrast.0.iter().map(|&(node, _)| node);
        let (low, high) = (nodes().min()?, nodes().max()?);
        let from = self.edges.partition_point(|edge| edge.begin + REACH < low);
        let to = self
            .edges
            .partition_point(|edge| edge.begin <= high + REACH);
        let (mut known, mut squares) = (0.0, 0.0);
        let (mut most, mut least) = (0.0_f64, f64::INFINITY);
        for edge in &self.edges[from..to] {
            let freedom = edge.observation.freedom.max(f64::MIN_POSITIVE);
            (most, least) = (most.max(freedom), least.min(freedom));
            let lever = |end| self.covariance_with(contrast, end);
            if let (Some(begin), Some(end)) = (lever(edge.begin), lever(edge.end)) {
                let part = (begin + end).powi(2) / edge.variance;
                known += part;
                squares += part * part / freedom;
            }
        }
        squares += (variance - known).max(0.0).powi(2) / least;
        let derived = self.with_common(Derived {
            value_ns: self.value_ns(contrast),
            variance,
            freedom: (variance * variance / squares).min(most).max(1.0),
        });
        self.has_spread
            .then(|| t_95(derived.freedom) * derived.variance.sqrt())
    }

    /// The variance of a combination of neighbouring nodes, in ns².
    pub(crate) fn variance_of_neighbours(&self, contrast: &Contrast) -> f64 {
        let terms = contrast.0.iter();
        let parts = terms.map(|&(node, factor)| {
            let covariance = self.covariance_with(contrast, node);
            factor * covariance.expect("neighbouring nodes")
        });
        parts.sum::<f64>() + self.error_by_passing(contrast, 0.0).powi(2)
    }

    /// The covariance of a node with a combination of nodes that are close to it.
    fn covariance_with(&self, contrast: &Contrast, node: usize) -> Option<f64> {
        let terms = contrast.0.iter();
        let parts =
            terms.map(|&(one, factor)| Some(factor * self.adjusted.covariance().get(one, node)?));
        parts.sum()
    }

    /// What measuring each of these segments would bring for the weighted sum of the variances of `wanted`,
    /// combinations of neighbouring nodes.
    pub(crate) fn prospects(
        &self,
        wanted: &[(&Contrast, f64)],
        segments: &[Segment],
    ) -> Vec<Prospect> {
        let mut prospects = prospects(self.nodes, &self.edges, wanted, segments);
        if self.adjusted.passing.is_some() {
            let errors = wanted.iter().flat_map(|&(contrast, weight)| {
                let error = weight * self.error_by_passing(contrast, 0.0);
                let terms = contrast.0.iter();
                terms.map(move |&(node, factor)| (node, factor * error))
            });
            let shared = self.lever(&Contrast(errors.collect()));
            for (prospect, &segment) in prospects.iter_mut().zip(segments) {
                let (begin, end) = self.nodes.ends(segment);
                prospect.passing = PassingProspect {
                    error_ns: self.segment_error_by_passing(segment),
                    shared: shared[begin] + shared[end],
                };
            }
        }
        prospects
    }

    /// The value of a segment's time in ns, measured or not.
    pub(crate) fn time_ns(&self, segment: Segment) -> f64 {
        let passing = self.cost_of_passing(self.passing_bytes(segment));
        self.value_ns(&self.nodes.segment(segment)) + passing
    }

    /// The value of a combination of nodes, in ns.
    pub(crate) fn value_ns(&self, contrast: &Contrast) -> f64 {
        contrast.of(&self.adjusted.values)
    }

    /// What each byte costs that passes through a segment, beside moving in and out; `None` where nothing passes, or the
    /// segments do not tell it.
    pub fn ns_per_passing_byte(&self) -> Option<MovingTerm> {
        let passing = self.adjusted.passing.as_ref()?;
        let derived = self.with_common(self.derive_with(&Contrast(Vec::new()), 1.0));
        let half_width = || t_95(derived.freedom) * derived.variance.sqrt();
        Some(MovingTerm {
            value: passing.ns_per_byte,
            half_width: self.has_spread.then(half_width),
        })
    }

    /// By how much S(i,j) errs where the cost of passing errs by its standard deviation, in ns.
    pub(super) fn segment_error_by_passing(&self, segment: Segment) -> f64 {
        self.error_by_passing(&self.nodes.segment(segment), self.passing_bytes(segment))
    }

    /// The same of a combination of a and b and of so many bytes that pass.
    pub(crate) fn error_by_passing(&self, contrast: &Contrast, passing_bytes: f64) -> f64 {
        self.adjusted.passing.as_ref().map_or(0.0, |passing| {
            passing.grows(contrast, passing_bytes) * passing.variance.sqrt()
        })
    }

    fn passing_bytes(&self, segment: Segment) -> f64 {
        bytes(self.shortcuts.passing(segment))
    }

    fn cost_of_passing(&self, bytes: f64) -> f64 {
        self.adjusted.cost_of_passing(bytes)
    }

    /// The covariance of every node with the contrast, were the cost of passing known; 0 for b_n, which is fixed.
    pub(super) fn lever(&self, contrast: &Contrast) -> Vec<f64> {
        self.adjusted.normal.lever(contrast, 0..self.nodes.count())
    }

    /// The covariance of each of these nodes with the contrast, which is of them alone, if the nodes after them were known.
    pub(crate) fn lever_within(&self, contrast: &Contrast, nodes: Range<usize>) -> Vec<f64> {
        self.adjusted.normal.lever(contrast, nodes)
    }

    pub(crate) fn nodes(&self) -> Nodes {
        self.nodes
    }

    pub(super) fn has_spread(&self) -> bool {
        self.has_spread
    }
}

/// Weighs every edge by the time that all edges together give it: by its own, an edge that came out short
/// would count as more certain than one that came out long.
fn reweigh(observations: &Observations, edges: &mut [Edge], adjusted: &Adjusted) {
    for edge in edges {
        let fitted = adjusted.fitted(edge);
        // Where noise drives a short segment's fitted time far down, its own time is the better guess.
        let time_ns = fitted.max(edge.observation.time_ns / 2.0);
        edge.variance = observations.weighable(&edge.observation, time_ns) * edge.inflation;
    }
}

fn bytes(bytes: Bytes) -> f64 {
    bytes.as_bytes() as f64
}

/// The variance that a normal interval as wide as this estimate's stands for.
fn variance_of_interval(estimate: Estimate) -> Option<f64> {
    let (low, high) = estimate.ci95?;
    let width = high.as_nanos().saturating_sub(low.as_nanos()) as f64;
    Some((width / (2.0 * Z_95)).powi(2))
}

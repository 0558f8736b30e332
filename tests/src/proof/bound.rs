//! What no unbiased estimator can beat (Cramér and Rao), given how often each segment was timed; and what
//! no design can beat either, given the device time.
//!
//! Of a log-normal sample of T with known sigma the Fisher information about T is 1 / (sigma T)². The
//! information about all a_i and b_j is the sum over samples; the smallest possible variance of anything
//! linear in them follows from its inverse. Written apart from the estimator that it judges.

use layerlab_profiles::Segment;
use layerlab_profiles::design::Design;
use nalgebra::DMatrix;

use super::{Measured, SimulatedProcessor};

/// Rounds of the search for the best design; it improves by less than a thousandth after half of them.
const ROUNDS: usize = 400;

/// The smallest possible mean square errors of layer times, in ns².
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Of the compute times.
    pub compute: f64,
    /// Of the transfers, each half a cut.
    pub transfer: f64,
}

impl Bound {
    /// Of these samples of `processor` with noise of this sigma.
    ///
    /// # Panics
    /// When the samples do not determine the layer times.
    pub fn of(processor: &SimulatedProcessor, measured: &Measured, sigma: f64) -> Bound {
        let counts: Vec<(Segment, f64)> = measured
            .iter()
            .map(|(segment, samples)| (*segment, samples.len() as f64))
            .collect();
        let geometry = Geometry::of(processor, sigma);
        geometry.bound(&geometry.covariance(&counts))
    }

    /// Of the design that makes the mean square over all numbers the smallest, among all segments and all
    /// ways to divide `timed_ns` between them: A-optimality by the multiplicative algorithm (Silvey,
    /// Titterington and Torsney 1978). It knows the planted times, which no planner does.
    pub fn of_best_design(processor: &SimulatedProcessor, timed_ns: f64, sigma: f64) -> Bound {
        let geometry = Geometry::of(processor, sigma);
        let segments = Design::Grouped.segments(processor.layers());
        let spend = |counts: &mut Vec<(Segment, f64)>| {
            let spent: f64 = counts
                .iter()
                .map(|&(segment, count)| count * geometry.time(segment))
                .sum();
            for (_, count) in counts.iter_mut() {
                *count *= timed_ns / spent;
            }
        };
        let mut counts: Vec<(Segment, f64)> = segments.into_iter().map(|s| (s, 1.0)).collect();
        spend(&mut counts);
        for _ in 0..ROUNDS {
            let levers = &geometry.numbers * geometry.covariance(&counts);
            for (segment, count) in &mut counts {
                let (begin, end) = geometry.ends(*segment);
                let mut moved = levers.column(begin).clone_owned();
                if end < levers.ncols() {
                    moved += levers.column(end);
                }
                let time = geometry.time(*segment);
                // What a second more of this segment would bring.
                *count *= (moved.norm_squared() / (time * time * time)).sqrt();
            }
            spend(&mut counts);
        }
        geometry.bound(&geometry.covariance(&counts))
    }
}

/// Which numbers are asked for, in terms of a and b; b of the last layer is fixed, because a constant can be
/// divided at will between all a and all b.
struct Geometry<'a> {
    processor: &'a SimulatedProcessor,
    sigma: f64,
    layers: usize,
    /// One row for each compute time, then one for each transfer.
    numbers: DMatrix<f64>,
}

impl Geometry<'_> {
    fn of(processor: &SimulatedProcessor, sigma: f64) -> Geometry<'_> {
        let layers = processor.layers() as usize;
        let mut numbers = DMatrix::zeros(2 * layers - 1, 2 * layers);
        let half_cut = |after: usize| [(after + 1, 0.5), (layers + after, 0.5)];
        for layer in 0..layers {
            numbers[(layer, layer)] += 1.0;
            numbers[(layer, layers + layer)] += 1.0;
            let cuts = [layer.checked_sub(1), (layer + 1 < layers).then_some(layer)];
            for (node, factor) in cuts.into_iter().flatten().flat_map(half_cut) {
                numbers[(layer, node)] -= factor;
            }
        }
        for after in 0..layers - 1 {
            for (node, factor) in half_cut(after) {
                numbers[(layers + after, node)] += factor;
            }
        }
        Geometry {
            processor,
            sigma,
            layers,
            numbers: numbers.remove_column(2 * layers - 1),
        }
    }

    fn time(&self, segment: Segment) -> f64 {
        self.processor.times.segment(segment).as_nanos() as f64
    }

    fn ends(&self, segment: Segment) -> (usize, usize) {
        let (first, last) = (segment.first() as usize - 1, segment.last() as usize - 1);
        (first, self.layers + last)
    }

    fn covariance(&self, counts: &[(Segment, f64)]) -> DMatrix<f64> {
        let unknowns = 2 * self.layers - 1;
        let mut information = DMatrix::<f64>::zeros(unknowns, unknowns);
        for &(segment, count) in counts {
            let (begin, end) = self.ends(segment);
            let weight = count / (self.sigma * self.time(segment)).powi(2);
            information[(begin, begin)] += weight;
            if end < unknowns {
                information[(end, end)] += weight;
                information[(begin, end)] += weight;
                information[(end, begin)] += weight;
            }
        }
        information
            .cholesky()
            .expect("a connected design")
            .inverse()
    }

    fn bound(&self, covariance: &DMatrix<f64>) -> Bound {
        let levers = &self.numbers * covariance;
        let variance = |row: usize| levers.row(row).dot(&self.numbers.row(row));
        let mean = |rows: std::ops::Range<usize>| {
            let count = rows.len() as f64;
            rows.map(variance).sum::<f64>() / count
        };
        Bound {
            compute: mean(0..self.layers),
            transfer: mean(self.layers..2 * self.layers - 1),
        }
    }
}

//! What no unbiased estimator can beat (Cramér and Rao), given how often each segment was timed.
//!
//! Of a log-normal sample of T with known sigma the Fisher information about T is 1 / (sigma T)². The
//! information about all a_i and b_j is the sum over samples; the smallest possible variance of anything
//! linear in them follows from its inverse. Written apart from the estimator that it judges.

use nalgebra::{DMatrix, DVector};

use super::{Measured, SimulatedProcessor};

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
        let layers = processor.layers() as usize;
        // b of the last layer is fixed: a constant can be divided at will between all a and all b.
        let unknowns = 2 * layers - 1;
        let vector = |terms: &[(usize, f64)]| {
            let mut vector = DVector::<f64>::zeros(unknowns);
            for &(node, factor) in terms {
                if node < unknowns {
                    vector[node] += factor;
                }
            }
            vector
        };
        let mut information = DMatrix::<f64>::zeros(unknowns, unknowns);
        for (segment, samples) in measured {
            let (first, last) = (segment.first() as usize - 1, segment.last() as usize - 1);
            let edge = vector(&[(first, 1.0), (layers + last, 1.0)]);
            let deviation = sigma * processor.times.segment(*segment).as_nanos() as f64;
            let weight = samples.len() as f64 / (deviation * deviation);
            information.ger(weight, &edge, &edge, 1.0);
        }
        let inverse = information
            .cholesky()
            .expect("a connected design")
            .inverse();
        let variance = |terms: &[(usize, f64)]| {
            let vector = vector(terms);
            vector.dot(&(&inverse * &vector))
        };
        let half_cut =
            |after: usize, sign: f64| [(after + 1, sign / 2.0), (layers + after, sign / 2.0)];
        let mut compute = 0.0;
        for layer in 0..layers {
            let mut terms = vec![(layer, 1.0), (layers + layer, 1.0)];
            if layer > 0 {
                terms.extend(half_cut(layer - 1, -1.0));
            }
            if layer + 1 < layers {
                terms.extend(half_cut(layer, -1.0));
            }
            compute += variance(&terms);
        }
        let transfer: f64 = (0..layers - 1)
            .map(|after| variance(&half_cut(after, 1.0)))
            .sum();
        Bound {
            compute: compute / layers as f64,
            transfer: transfer / (layers - 1) as f64,
        }
    }
}

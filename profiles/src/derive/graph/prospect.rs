//! What measuring a segment would bring: how far a weighted sum of variances falls with it.
//!
//! With Z the covariance of the nodes, c the contrasts and w their weights, a segment e lowers the sum of w times the
//! variance of c by e' G e / (its own variance + e' Z e), where G = Z (Σ w c c') Z (Sherman and Morrison). G is what
//! the inverse loses when the normal equations gain Σ w c c', so that it follows for all segments at once from a
//! derivative of the sparse inverse. That is taken by a complex step, which is exact to rounding (Squire and Trapp,
//! Using Complex Variables to Estimate Derivatives of Real Functions, SIAM Review 40, 1998).

use nalgebra::Complex;

use super::contrast::{Contrast, Nodes};
use super::edge::Edge;
use super::normal::{laplacian, smallest_variance};
use super::skyline::Symmetric;
use crate::segment::Segment;

/// The size of the step: its square vanishes beside any number, and nothing underflows.
const STEP: f64 = 1e-80;

/// What is known of a segment, and what it would tell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prospect {
    /// The variance of the segment's fitted time, e' Z e, in ns².
    pub(crate) fitted_variance: f64,
    /// e' G e: in ns⁴ times the unit of the weights.
    pub(crate) moved: f64,
    /// What passes through the segment, whose cost is known less well than that of its ends: nothing of it is in the two above.
    pub(crate) passing: PassingProspect,
}

/// What a segment has to do with the cost of passing, whose error is independent of those of the nodes without it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PassingProspect {
    /// By how much the segment's time errs where that cost errs by its standard deviation, in ns.
    pub(crate) error_ns: f64,
    /// The same of the contrasts, each times its weight and its covariance with the segment's time: in ns³ times the unit of the
    /// weights.
    pub(crate) shared: f64,
}

/// The prospects of each of these segments; `wanted` are contrasts of neighbouring nodes with their weights.
pub(super) fn prospects(
    nodes: Nodes,
    edges: &[Edge],
    wanted: &[(&Contrast, f64)],
    segments: &[Segment],
) -> Vec<Prospect> {
    let unit = smallest_variance(edges);
    let fixed = nodes.count() - 1;
    let ends = segments.iter().map(|&segment| nodes.ends(segment));
    let mut matrix: Symmetric<Complex<f64>> = laplacian(nodes, edges, unit, ends.clone());
    for (contrast, weight) in wanted {
        let terms = || contrast.0.iter().filter(|(node, _)| *node < fixed);
        for &(one, factor) in terms() {
            for &(other, by) in terms().filter(|(other, _)| *other <= one) {
                // Terms may name a node twice; each pair of different nodes stands for both of its entries.
                matrix.add(
                    one,
                    other,
                    Complex::new(0.0, STEP * unit * weight * factor * by),
                );
            }
        }
    }
    let inverse = matrix.factor().selected_inverse();
    let entry = |one: usize, other: usize| {
        if one.max(other) == fixed {
            return Complex::new(0.0, 0.0);
        }
        let entry = inverse.get(one, other);
        entry.expect("there is room for the ends of each segment")
    };
    ends.map(|(begin, end)| {
        let sum = entry(begin, begin) + entry(begin, end) * 2.0 + entry(end, end);
        Prospect {
            fitted_variance: unit * sum.re,
            moved: -unit * sum.im / STEP,
            passing: PassingProspect::default(),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use nalgebra::{DMatrix, DVector};
    use proptest::prelude::*;

    use super::*;
    use crate::derive::graph::observation::Observations;
    use crate::derive::graph::{Fit, observe};
    use crate::design::Design;
    use crate::layer::Shortcut;
    use crate::shortcuts::Shortcuts;
    use crate::units::{Bytes, Nanos};

    fn observations(layers: u32, design: Design, seed: u64) -> Observations {
        let sample = |segment: Segment, index: u64| {
            let mixed = seed
                .wrapping_mul(31)
                .wrapping_add(u64::from(segment.first()) * 17 + index * 7);
            Nanos::from_nanos(1_000_000 * u64::from(segment.layers()) + 7_919 * (mixed % 13))
        };
        let samples: BTreeMap<Segment, Vec<Nanos>> = design
            .iter(layers)
            .map(|segment| {
                (
                    segment,
                    (0..5).map(|index| sample(segment, index)).collect(),
                )
            })
            .collect();
        observe(&samples)
    }

    /// A segment as a combination of all nodes.
    fn dense(count: usize, contrast: &Contrast) -> DVector<f64> {
        let mut vector = DVector::zeros(count);
        for &(node, factor) in &contrast.0 {
            vector[node] += factor;
        }
        vector
    }

    proptest! {
        /// What a segment would bring is what the dense covariance says.
        #[test]
        fn prospects_are_those_of_the_dense_covariance(
            layers in 1_u32..20,
            seed in any::<u64>(),
            design in prop::sample::select(vec![Design::Local, Design::PrefixSuffix, Design::Grouped]),
        ) {
            let observed = observations(layers, design, seed);
            let fit = Fit::new(layers, &observed, &Default::default()).expect("connected");
            let nodes = Nodes::of(layers);
            let count = nodes.count();
            let mut covariance = DMatrix::zeros(count, count);
            for node in 0..count {
                let lever = fit.lever(&Contrast(vec![(node, 1.0)]));
                covariance.set_column(node, &DVector::from_vec(lever));
            }
            let contrasts: Vec<Contrast> = (1..=layers).map(|layer| nodes.compute(layer)).collect();
            let wanted: Vec<(&Contrast, f64)> = contrasts.iter().zip((1..).map(f64::from)).collect();
            let mut sum = DMatrix::zeros(count, count);
            for (contrast, weight) in &wanted {
                let contrast = dense(count, contrast);
                sum += &contrast * contrast.transpose() * *weight;
            }
            let gains = &covariance * sum * &covariance;
            let segments = Design::Grouped.segments(layers);
            for (segment, found) in segments.iter().zip(fit.prospects(&wanted, &segments)) {
                let one = dense(count, &nodes.segment(*segment));
                let fitted = one.dot(&(&covariance * &one));
                let moved = one.dot(&(&gains * &one));
                let most = gains.diagonal().max();
                prop_assert!((found.fitted_variance / fitted - 1.0).abs() < 1e-9, "{segment}");
                prop_assert!((found.moved - moved).abs() < 1e-9 * most, "{segment}: {} {moved}", found.moved);
            }
        }

        /// What it would bring where bytes pass, too: by how the variances of a sum and of a difference differ.
        #[test]
        fn what_passes_is_part_of_what_a_segment_tells(
            layers in 6_u32..16,
            seed in any::<u64>(),
            lives in prop::collection::vec((1_u32..14, 2_u32..5, 1_u64..1_000_000), 1..4),
        ) {
            let shortcut = |(from, length, bytes): (u32, u32, u64)| {
                let (to_layer, bytes) = (from + length, Bytes::from_bytes(bytes));
                (from, Shortcut { to_layer, bytes })
            };
            let shortcuts: Shortcuts = lives.into_iter().map(shortcut).collect();
            let observed = observations(layers, Design::Grouped, seed);
            let observed = observed.with_shortcuts(shortcuts.clone());
            let fit = Fit::new(layers, &observed, &Default::default()).expect("connected");
            let nodes = Nodes::of(layers);
            let contrasts: Vec<Contrast> = (1..=layers).map(|layer| nodes.compute(layer)).collect();
            let wanted: Vec<(&Contrast, f64)> = contrasts.iter().zip((1..).map(f64::from)).collect();
            let errors = wanted.iter().map(|(one, weight)| weight * fit.error_by_passing(one, 0.0).powi(2));
            let weight: f64 = errors.sum();
            let segments = Design::Grouped.segments(layers);
            for (&segment, found) in segments.iter().zip(fit.prospects(&wanted, &segments)) {
                let bytes = shortcuts.passing(segment).as_bytes() as f64;
                let one = nodes.segment(segment);
                let variance = |contrast: &Contrast, bytes| fit.derive_with(contrast, bytes).variance;
                let fitted = variance(&one, bytes);
                // The contrast is scaled to the segment first: where γ makes its variance a hundred million times the segment's, a
                // plain sum would keep nothing of the segment's but rounding.
                let moved: f64 = wanted.iter().map(|(contrast, weight)| {
                    let scale = (fitted / variance(contrast, 0.0)).sqrt();
                    let with = |factor: f64| {
                        let scaled = contrast.0.iter().map(|(node, by)| (*node, by * factor));
                        variance(&Contrast(one.0.iter().copied().chain(scaled).collect()), bytes)
                    };
                    let covariance = (with(scale) - with(-scale)) / (4.0 * scale);
                    weight * covariance.powi(2)
                }).sum();
                let PassingProspect { error_ns, shared } = found.passing;
                let expected = found.fitted_variance + error_ns * error_ns;
                prop_assert!((expected / fitted - 1.0).abs() < 1e-6, "{segment}");
                let by_passing = [2.0 * error_ns * shared, error_ns * error_ns * weight];
                let expected = found.moved + by_passing[0] + by_passing[1];
                let parts = found.moved + by_passing[0].abs() + by_passing[1];
                prop_assert!((expected - moved).abs() < 1e-6 * parts, "{segment}: {expected} {moved}");
            }
        }
    }
}

//! Is S(i,j) = a_i + b_j true on this device? Segments that were kept out of the fit are compared with
//! what it predicts for them (docs/method.md §3).

use std::collections::BTreeSet;

use nalgebra::{Cholesky, DMatrix, DVector};

use super::connected::GraphError;
use super::fit::Fit;
use super::moving::MovingTerm;
use super::observation::{Observation, Observations};
use super::quantile::f_tail;
use crate::segment::Segment;
use crate::summary::Estimate;
use crate::units::Nanos;

/// How well segment times add up.
#[derive(Clone, Debug, PartialEq)]
pub struct AdditivityTest {
    /// The segments that were kept out of the fit, ascending.
    pub held_back: Vec<HeldBack>,
    /// How probable a misfit at least as large is if times do add up. `None` when samples are too few to
    /// say.
    pub p_value: Option<f64>,
    /// The root mean square of the deviations of prediction from measurement, in per cent of the measured
    /// time.
    pub misfit_percent: f64,
    /// What each byte costs that passes through a segment, beside moving in and out, in ns; `None` where nothing passes, or the
    /// segments do not tell it.
    pub ns_per_passing_byte: Option<MovingTerm>,
}

/// One segment that was kept out of the fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldBack {
    /// The segment that was tested.
    pub segment: Segment,
    /// Its time, from its own samples.
    pub measured: Nanos,
    /// Its time, from all others.
    pub predicted: Estimate,
}

/// Compares the observed segments in `held_back` with what the others predict for them. `None` when none
/// of them was observed.
pub fn additivity(
    layers: u32,
    observations: &Observations,
    held_back: &BTreeSet<Segment>,
) -> Result<Option<AdditivityTest>, GraphError> {
    let tested: Vec<&Observation> = observations
        .segments
        .iter()
        .filter(|observation| held_back.contains(&observation.segment))
        .collect();
    if tested.is_empty() {
        return Ok(None);
    }
    let fit = Fit::new(layers, observations, held_back)?;
    let (nodes, count) = (fit.nodes(), tested.len());
    let predictions: Vec<_> = tested
        .iter()
        .map(|observation| fit.derive_segment(observation.segment))
        .collect();
    let misfits = DVector::from_iterator(
        count,
        tested
            .iter()
            .zip(&predictions)
            .map(|(o, p)| o.time_ns - p.value_ns),
    );
    let mean_square_percent = misfits
        .iter()
        .zip(&tested)
        .map(|(misfit, measured)| (100.0 * misfit / measured.time_ns.max(1.0)).powi(2))
        .sum::<f64>()
        / count as f64;
    // Predictions share segments, so their errors are correlated.
    let mut covariance = DMatrix::<f64>::zeros(count, count);
    for (row, observation) in tested.iter().enumerate() {
        let lever = fit.lever(&nodes.segment(observation.segment));
        let by_passing = fit.segment_error_by_passing(observation.segment);
        for (column, other) in tested.iter().enumerate() {
            let (begin, end) = nodes.ends(other.segment);
            covariance[(row, column)] = lever[begin]
                + lever[end]
                + by_passing * fit.segment_error_by_passing(other.segment);
        }
        covariance[(row, row)] += observations.variance(observation, predictions[row].value_ns);
    }
    let freedom = predictions
        .iter()
        .map(|predicted| predicted.freedom)
        .chain(
            tested
                .iter()
                .map(|observation| observation.freedom.max(1.0)),
        )
        .fold(f64::INFINITY, f64::min);
    let p_value = fit
        .has_spread()
        .then(|| Cholesky::new(covariance))
        .flatten()
        .map(|factor| {
            let mean_square = misfits.dot(&factor.solve(&misfits)) / count as f64;
            f_tail(mean_square, count as f64, freedom)
        });
    let held_back = tested
        .iter()
        .map(|observation| HeldBack {
            segment: observation.segment,
            measured: Nanos::from_nanos(observation.time_ns.round() as u64),
            predicted: fit.segment(observation.segment),
        })
        .collect();
    Ok(Some(AdditivityTest {
        held_back,
        p_value,
        misfit_percent: mean_square_percent.sqrt(),
        ns_per_passing_byte: fit.ns_per_passing_byte(),
    }))
}

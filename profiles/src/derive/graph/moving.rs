//! What moving data to and from a processor costs, from the times of probes (docs/method.md §10):
//! S = f + bytes_in / B_in + bytes_out / B_out + w x operations, by weighted least squares.
//!
//! A probe's layers differ in what they take in and what they give out, as no cut of a network does; so they tell apart what
//! the segments of one network never do.

use nalgebra::{DMatrix, DVector, Matrix4, Vector4};

use super::observation::{Observation, Observations};
use super::quantile::{f_tail, t_95};
use crate::probe::ProbeLayer;
use crate::summary::Estimate;
use crate::units::Bytes;

/// How many numbers the times of probes say: f, 1 / B_in, 1 / B_out and w.
pub const MOVING_TERMS: usize = 4;

/// Weights depend on the times and the times on the weights; each round shrinks what is left by the relative noise.
const ROUNDS: usize = 3;

/// A bend of so many per cent is no line, whatever a line through it says: a number that is off by more could not be told
/// from a wrong assumption.
pub const LARGEST_BEND_PERCENT: f64 = 5.0;

/// A misfit that chance explains less often than once in a hundred profiles is no chance.
pub const IMPROBABLE_BEND: f64 = 0.01;

/// What moving data costs on one processor.
#[derive(Clone, Debug, PartialEq)]
pub struct MovingModel {
    /// f in ns, 1 / B_in and 1 / B_out in ns per byte, w in ns per operation.
    values: Vector4<f64>,
    /// Of `values`.
    covariance: Matrix4<f64>,
    freedom: f64,
    has_spread: bool,
    /// The root mean square of what is left of the probes' times, in per cent of each.
    pub misfit_percent: f64,
    /// How probable a misfit at least as large is if the model is true; `None` when samples are too few to say.
    pub p_value: Option<f64>,
}

/// One of the four numbers, with the half width of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MovingTerm {
    /// In ns, for one byte or operation if it is not the fixed cost.
    pub value: f64,
    /// Half of the width of its 95 % interval; `None` when samples are too few to say.
    pub half_width: Option<f64>,
}

/// One probe's layer, as it was timed.
#[derive(Clone, Copy, Debug)]
struct Timed {
    layer: ProbeLayer,
    observation: Observation,
    /// Of the time, in ns².
    variance: f64,
}

impl MovingModel {
    /// Fits the model to what was observed of layers of probes; `layer_of` says which layer each observed segment is.
    /// `None` unless the layers tell all four numbers apart, with at least one time to spare.
    pub fn fit(
        observations: &Observations,
        layer_of: impl Fn(crate::Segment) -> Option<ProbeLayer>,
    ) -> Option<MovingModel> {
        let mut timed: Vec<Timed> = observations
            .segments
            .iter()
            .filter_map(|&observation| {
                Some(Timed {
                    layer: layer_of(observation.segment)?,
                    observation,
                    variance: observations.weighable(&observation, observation.time_ns),
                })
            })
            .collect();
        if timed.len() <= MOVING_TERMS {
            return None;
        }
        let (mut values, mut covariance) = adjust(&timed)?;
        for _ in 1..ROUNDS {
            for one in &mut timed {
                let fitted = of(&values, one.layer).max(one.observation.time_ns / 2.0);
                one.variance = observations.weighable(&one.observation, fitted);
            }
            (values, covariance) = adjust(&timed)?;
        }
        let spare = (timed.len() - MOVING_TERMS) as f64;
        let residual = |one: &Timed| one.observation.time_ns - of(&values, one.layer);
        let squares = timed.iter().map(|one| residual(one).powi(2) / one.variance);
        let mean_square = squares.sum::<f64>() / spare;
        let shares = timed
            .iter()
            .map(|one| (100.0 * residual(one) / one.observation.time_ns.max(1.0)).powi(2));
        let misfit_percent = (shares.sum::<f64>() / timed.len() as f64).sqrt();
        let known = timed.iter().map(|one| one.observation.freedom);
        let freedom = known.fold(1.0, f64::max);
        let p_value = observations
            .has_spread
            .then(|| f_tail(mean_square, spare, freedom));
        // Times that lie farther from the line than their own samples say differ from visit to visit, or bend a little:
        // the intervals hold that, too.
        let (widening, freedom) = match mean_square > 1.0 {
            true => (mean_square, spare),
            false => (1.0, freedom),
        };
        Some(MovingModel {
            values,
            covariance: covariance * widening,
            freedom,
            has_spread: observations.has_spread,
            misfit_percent,
            p_value,
        })
    }

    /// Whether the probes' times lie on no line: the misfit is large, and chance does not explain it.
    pub fn bends(&self) -> bool {
        self.misfit_percent >= LARGEST_BEND_PERCENT
            && self.p_value.is_none_or(|p| p < IMPROBABLE_BEND)
    }

    /// f, 1 / B_in, 1 / B_out and w.
    pub fn terms(&self) -> [MovingTerm; MOVING_TERMS] {
        let quantile = t_95(self.freedom);
        std::array::from_fn(|place| MovingTerm {
            value: self.values[place],
            half_width: self
                .has_spread
                .then(|| quantile * self.covariance[(place, place)].max(0.0).sqrt()),
        })
    }

    /// What moving so many bytes in costs, and what moving them out does: each with half of the fixed cost, which belongs
    /// to both and which nothing divides. Without what neighbours save by running together.
    pub fn moving(&self, bytes: Bytes) -> [Estimate; 2] {
        let parts = Parts::of(bytes);
        [parts.inward, parts.outward].map(|part| {
            let half_width = self
                .has_spread
                .then(|| t_95(self.freedom) * self.variance(&part).sqrt());
            Estimate::around(part.dot(&self.values), half_width)
        })
    }

    pub(super) fn variance(&self, of: &Vector4<f64>) -> f64 {
        (of.transpose() * self.covariance * of)[(0, 0)].max(0.0)
    }

    pub(super) fn values(&self) -> &Vector4<f64> {
        &self.values
    }

    pub(super) fn covariance(&self) -> &Matrix4<f64> {
        &self.covariance
    }

    pub(super) fn freedom(&self) -> f64 {
        self.freedom
    }

    pub(super) fn has_spread(&self) -> bool {
        self.has_spread
    }
}

/// How the cost of a cut follows from the four numbers: linear combinations of them.
pub(super) struct Parts {
    pub(super) inward: Vector4<f64>,
    pub(super) outward: Vector4<f64>,
}

impl Parts {
    /// Of a cut that so many bytes cross.
    pub(super) fn of(bytes: Bytes) -> Parts {
        let bytes = bytes.as_bytes() as f64;
        Parts {
            inward: Vector4::new(0.5, bytes, 0.0, 0.0),
            outward: Vector4::new(0.5, 0.0, bytes, 0.0),
        }
    }
}

/// The factors of f, 1 / B_in, 1 / B_out and w in the time of a probe's layer.
fn factors(layer: ProbeLayer) -> Vector4<f64> {
    Vector4::new(
        1.0,
        layer.input.as_bytes() as f64,
        layer.output.as_bytes() as f64,
        layer.operations as f64,
    )
}

fn of(values: &Vector4<f64>, layer: ProbeLayer) -> f64 {
    factors(layer).dot(values)
}

/// Weighted least squares by singular values, each column in units of its own largest so that bytes and nanoseconds are of
/// one size. `None` where the layers do not tell the four numbers apart.
fn adjust(timed: &[Timed]) -> Option<(Vector4<f64>, Matrix4<f64>)> {
    let mut units = Vector4::from_element(0.0_f64);
    for one in timed {
        units = units.sup(&factors(one.layer));
    }
    if units.min() <= 0.0 {
        return None;
    }
    let deviations: Vec<f64> = timed.iter().map(|one| one.variance.sqrt()).collect();
    let unit = deviations.iter().copied().fold(f64::INFINITY, f64::min);
    let design = DMatrix::from_fn(timed.len(), MOVING_TERMS, |row, column| {
        factors(timed[row].layer)[column] / units[column] * unit / deviations[row]
    });
    let decomposed = design.svd(true, true);
    /// Below this share of the largest a singular value is rounding.
    const ROUNDING: f64 = 1e-9;
    if decomposed.singular_values.min() <= ROUNDING * decomposed.singular_values.max() {
        return None;
    }
    let mut scaled = DVector::zeros(MOVING_TERMS);
    // The second pass adjusts what rounding has left of the first.
    for _ in 0..2 {
        let residuals = DVector::from_fn(timed.len(), |row, _| {
            let one = &timed[row];
            let found: f64 = (0..MOVING_TERMS)
                .map(|column| factors(one.layer)[column] / units[column] * scaled[column])
                .sum();
            (one.observation.time_ns - found) * unit / deviations[row]
        });
        scaled += decomposed.solve(&residuals, 0.0).ok()?;
    }
    let right = decomposed.v_t.as_ref()?;
    let inverse = DMatrix::from_diagonal(
        &decomposed
            .singular_values
            .map(|value| (unit / value).powi(2)),
    );
    let covariance = right.transpose() * inverse * right;
    let values = Vector4::from_fn(|place, _| scaled[place] / units[place]);
    let covariance =
        Matrix4::from_fn(|row, column| covariance[(row, column)] / (units[row] * units[column]));
    values
        .iter()
        .all(|value| value.is_finite())
        .then_some((values, covariance))
}

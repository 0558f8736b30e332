//! What moving data to and from a processor costs, from the times of probes (docs/method.md §10):
//! S = f + bytes_in / B_in + bytes_out / B_out + w x operations, by weighted least squares.
//!
//! A probe's layers differ in what they take in and what they give out, as no cut of a network does; so they tell apart what
//! the segments of one network never do.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn, Matrix4, Vector4};

use super::observation::{ErrorVariance, Observation, Observations};
use super::quantile::{f_tail, t_95};
use crate::probe::{Probe, ProbeLayer};
use crate::segment::Segment;
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

/// Two variances are taken for one unless chance explains that they differ so far less often than once in four: where they
/// are pooled more readily intervals are too narrow, and where the larger one counts whenever it is larger, too wide (Bozivich,
/// Bancroft and Hartley, Power of Analysis of Variance Test Procedures for Certain Incompletely Specified Models, 1956).
const SELDOM: f64 = 0.25;

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

/// One part of what moving costs, with the half width of its 95 % interval.
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
    probe: Probe,
    layer: ProbeLayer,
    observation: Observation,
    /// What it is taken to take where its error is judged.
    expected_ns: f64,
}

impl MovingModel {
    /// Fits the model to what was observed of layers of probes; `layer_of` says which layer of which probe each observed
    /// segment is. The layers of one probe share their visits, and no visit has layers of two. `None` unless the layers
    /// tell all four numbers apart, with at least one time to spare.
    pub fn fit(
        observations: &Observations,
        layer_of: impl Fn(Segment) -> Option<(Probe, u32)>,
    ) -> Option<MovingModel> {
        let mut timed: Vec<Timed> = observations
            .segments
            .iter()
            .filter_map(|&observation| {
                let (probe, layer) = layer_of(observation.segment)?;
                Some(Timed {
                    probe,
                    layer: probe.layer(layer)?,
                    observation,
                    expected_ns: observation.time_ns,
                })
            })
            .collect();
        if timed.len() <= MOVING_TERMS {
            return None;
        }
        let mut adjusted = adjust(&timed, &errors(observations, &timed)?)?;
        for _ in 1..ROUNDS {
            for one in &mut timed {
                let fitted = of(&adjusted.values, one.layer);
                one.expected_ns = fitted.max(one.observation.time_ns / 2.0);
            }
            adjusted = adjust(&timed, &errors(observations, &timed)?)?;
        }
        let Adjusted {
            values,
            covariance,
            squares,
        } = adjusted;
        let spare = (timed.len() - MOVING_TERMS) as f64;
        let mean_square = squares / spare;
        let shares = timed.iter().map(|one| {
            let residual = one.observation.time_ns - of(&values, one.layer);
            (100.0 * residual / one.observation.time_ns.max(1.0)).powi(2)
        });
        let misfit_percent = (shares.sum::<f64>() / timed.len() as f64).sqrt();
        let freedom = freedom(observations, &timed);
        let p_value = observations
            .has_spread
            .then(|| f_tail(mean_square, spare, freedom));
        let (widening, freedom) = pooled(mean_square, spare, freedom);
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

    /// The same, were its numbers known exactly.
    pub(crate) fn without_error(mut self) -> MovingModel {
        self.covariance = Matrix4::zeros();
        self
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

/// The covariance of the times' errors, in ns²: each has its own, and those of one probe share that its visits were faster
/// or slower than visits are on average. `None` where that cannot be told from a singular matrix.
fn errors(observations: &Observations, timed: &[Timed]) -> Option<Cholesky<f64, Dyn>> {
    let shared = observations.visits.of_times.variance;
    let covariance = DMatrix::from_fn(timed.len(), timed.len(), |row, column| {
        let (one, other) = (&timed[row], &timed[column]);
        let own = match row == column {
            true => observations.weighable(&one.observation, one.expected_ns),
            false => 0.0,
        };
        let in_common = match one.probe == other.probe {
            true => shared * one.expected_ns * other.expected_ns,
            false => 0.0,
        };
        own + in_common
    });
    Cholesky::new(covariance)
}

/// From how many independent differences the errors of the times are known, their own and those of visits together.
fn freedom(observations: &Observations, timed: &[Timed]) -> f64 {
    let own = timed.iter().map(|one| {
        observations.weighable(&one.observation, one.expected_ns) / one.expected_ns.powi(2)
    });
    let known = timed.iter().map(|one| one.observation.freedom);
    let own = ErrorVariance {
        variance: own.sum::<f64>() / timed.len() as f64,
        freedom: known.fold(1.0, f64::max),
    };
    let both = ErrorVariance::sum([own, observations.visits.of_times]);
    both.freedom.max(1.0)
}

/// By how much the variances of the times grow, and how well they are known then. What is left of the times about the line
/// and the spread of their samples both say how far they err, and are pooled; where chance explains seldom that the former is
/// larger, the line bends a little, and it alone counts.
fn pooled(mean_square: f64, spare: f64, freedom: f64) -> (f64, f64) {
    if f_tail(mean_square, spare, freedom) < SELDOM {
        return (mean_square, spare);
    }
    let both = spare + freedom;
    ((spare * mean_square + freedom) / both, both)
}

/// What least squares makes of the times.
struct Adjusted {
    values: Vector4<f64>,
    covariance: Matrix4<f64>,
    /// The sum of the squares of what is left, in units of what is expected of it.
    squares: f64,
}

/// Generalised least squares by singular values, each column in units of its own largest so that bytes and nanoseconds are
/// of one size. `None` where the layers do not tell the four numbers apart.
fn adjust(timed: &[Timed], errors: &Cholesky<f64, Dyn>) -> Option<Adjusted> {
    let mut units = Vector4::from_element(0.0_f64);
    for one in timed {
        units = units.sup(&factors(one.layer));
    }
    if units.min() <= 0.0 {
        return None;
    }
    // Multiplied by the inverse of this, errors are independent and of one size.
    let root = errors.l();
    let design = DMatrix::from_fn(timed.len(), MOVING_TERMS, |row, column| {
        factors(timed[row].layer)[column] / units[column]
    });
    let decomposed = root.solve_lower_triangular(&design)?.svd(true, true);
    /// Below this share of the largest a singular value is rounding.
    const ROUNDING: f64 = 1e-9;
    if decomposed.singular_values.min() <= ROUNDING * decomposed.singular_values.max() {
        return None;
    }
    let times = DVector::from_fn(timed.len(), |row, _| timed[row].observation.time_ns);
    let left = |scaled: &DVector<f64>| root.solve_lower_triangular(&(&times - &design * scaled));
    let mut scaled = DVector::zeros(MOVING_TERMS);
    // The second pass adjusts what rounding has left of the first.
    for _ in 0..2 {
        scaled += decomposed.solve(&left(&scaled)?, 0.0).ok()?;
    }
    let right = decomposed.v_t.as_ref()?;
    let inverse = DMatrix::from_diagonal(&decomposed.singular_values.map(|value| value.powi(-2)));
    let covariance = right.transpose() * inverse * right;
    let values = Vector4::from_fn(|place, _| scaled[place] / units[place]);
    let covariance =
        Matrix4::from_fn(|row, column| covariance[(row, column)] / (units[row] * units[column]));
    let squares = left(&scaled)?.norm_squared();
    values
        .iter()
        .all(|value| value.is_finite())
        .then_some(Adjusted {
            values,
            covariance,
            squares,
        })
}

//! Has a model become slower or less accurate on a device, by more than is put up with?
//!
//! Numbers that two profiles of one model have in common are tested one by one: is the second worse than the first by more
//! than a tolerated share? Tested are the compute time of each layer, the cost of each cut, the whole model, the energy of each
//! layer and of the whole model where both were measured by meters of one kind, and the accuracy with all layers on one
//! processor and with each layer alone elsewhere. Tests are one-sided, by Student's t with
//! the errors that the profiles' samples give, and adjusted by Holm's method over all numbers of both profiles: where nothing
//! became worse by more than is tolerated, the chance that anything is said to is no more than alpha in all, as far as the
//! errors hold what differs between the two runs (docs/method.md §8).

mod accuracy;
mod energy;
mod power;
mod share;
mod subject;
mod times;
mod words;

use crate::compare::{CompareError, RunsInOne, refuse_different_models, runs_in_one};
use crate::derive::graph::{ErrorVariance, upper_p_student};
use crate::document::Profile;
use crate::holm;
use crate::placement::Placement;
use crate::summary::Z_95;

pub use power::{GateSight, POWER};
pub use share::share_ci95;
pub use subject::{ProfileSubject, known_changes};

/// What is put up with, and how sure a refusal is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateSettings {
    /// By how much a number may become worse, as a share of itself: 0.05 is 5 %.
    pub tolerance: f64,
    /// The chance that anything is said to be worse by more where nothing is.
    pub alpha: f64,
}

impl GateSettings {
    /// The chance of a false alarm unless another is chosen.
    pub const ALPHA: f64 = 0.01;
}

/// A number that both profiles have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatedNumber {
    /// The compute time of a layer.
    Layer {
        /// The processor, by its name.
        processor: String,
        /// The layer, counted from 1.
        layer: u32,
    },
    /// The cost of cutting after a layer.
    Cut {
        /// The processor, by its name.
        processor: String,
        /// The layer before the cut, counted from 1.
        after_layer: u32,
    },
    /// The time of the whole model on a processor.
    Whole {
        /// The processor, by its name.
        processor: String,
    },
    /// What computing a layer draws, or the whole model.
    Energy {
        /// The processor, by its name.
        processor: String,
        /// The layer, counted from 1; nothing of the whole model.
        layer: Option<u32>,
    },
    /// The accuracy of a placement.
    Accuracy {
        /// The processors of the placement's digits, by their names.
        processors: Vec<String>,
        /// Which layer runs on which of them.
        placement: Placement,
    },
}

/// A number of two profiles: is the second worse?
#[derive(Clone, Debug, PartialEq)]
pub struct Gated {
    /// Which number.
    pub number: GatedNumber,
    /// The first profile's: in ns, in nJ, or an accuracy as a share.
    pub one: f64,
    /// The second profile's.
    pub other: f64,
    /// By how much it is worse, in the same unit: longer, or less accurate. Negative where it is better.
    pub worse: f64,
    /// Half the width of the 95 % interval of that.
    pub half_width: f64,
    /// How probable so large a worsening is where there is none beyond the tolerated, adjusted for the number of tests (Holm).
    pub p_value: f64,
    /// By how much it would have to be worse, in the same unit and all in all, to be named nineteen times in twenty.
    pub detectable: f64,
    /// Whether it is worse by more than is tolerated.
    pub is_worse: bool,
    /// Whether it may be, for all that is known: the interval reaches beyond the tolerated.
    pub may_be_worse: bool,
    /// What is put up with, in the same unit.
    tolerated: f64,
    /// The errors of the first profile's number, with what is tolerated added to it, and of the second's.
    errors: [ErrorVariance; 2],
}

/// What a gate found.
#[derive(Clone, Debug, PartialEq)]
pub struct GateResult {
    /// What was put up with.
    pub settings: GateSettings,
    /// Every number that was tested.
    pub numbers: Vec<Gated>,
    /// What a processor ran before and cannot run any more.
    pub lost: Vec<RunsInOne>,
    /// How many numbers of both profiles have no interval in one of them, so that nothing can be said.
    pub untested: usize,
    /// Whether accuracies were compared: where both profiles have some, of the same images.
    pub has_accuracy: bool,
    /// Whether energies were: where both profiles have some, by meters of one kind.
    pub has_energy: bool,
}

impl GateResult {
    /// What became worse by more than is tolerated.
    pub fn worse(&self) -> impl Iterator<Item = &Gated> {
        self.numbers.iter().filter(|gated| gated.is_worse)
    }

    /// Whether anything did, or cannot run any more.
    pub fn fails(&self) -> bool {
        self.worse().next().is_some() || !self.lost.is_empty()
    }
}

/// Tests whether `other` is worse than `one`.
pub fn gate(
    one: &Profile,
    other: &Profile,
    settings: GateSettings,
) -> Result<GateResult, CompareError> {
    refuse_different_models(one, other)?;
    let (mut candidates, mut untested) = times::candidates(one, other)?;
    let energies = energy::candidates(one, other);
    let has_energy = energies.is_some();
    if let Some((energies, without)) = energies {
        candidates.extend(energies);
        untested += without;
    }
    let accuracies = accuracy::candidates(one, other);
    let has_accuracy = !accuracies.is_empty();
    candidates.extend(accuracies);
    let tests = candidates.into_iter();
    let mut numbers: Vec<Gated> = tests.map(|one| one.test(settings.tolerance)).collect();
    power::tell_detectable(&mut numbers, settings.alpha);
    holm::adjust(numbers.iter_mut().map(|gated| &mut gated.p_value));
    for gated in &mut numbers {
        gated.is_worse = gated.p_value < settings.alpha;
    }
    let lost = runs_in_one(one, other).into_iter();
    Ok(GateResult {
        settings,
        numbers,
        lost: lost.filter(|lacked| lacked.lacks_other).collect(),
        untested,
        has_accuracy,
        has_energy,
    })
}

/// A number to be tested: two values, of which a larger one is worse, and their errors.
struct Candidate {
    number: GatedNumber,
    one: f64,
    other: f64,
    /// By how much it is worse, in the same unit.
    worse: f64,
    errors: [ErrorVariance; 2],
    /// What is as good as nothing, by rounding.
    rounding: f64,
}

impl Candidate {
    fn test(self, tolerance: f64) -> Gated {
        // A share of less than nothing is no tolerance: a number that cannot be told from zero may lie below it.
        let tolerated = tolerance * self.one.max(0.0);
        let [one, other] = self.errors;
        let errors = [one.times(1.0 + tolerance), other];
        let error = ErrorVariance::of_difference(errors[0], errors[1]);
        let beyond = self.worse - tolerated;
        // What rounding can do is no difference.
        let surely = beyond.signum() * (beyond.abs() - self.rounding).max(0.0);
        let deviation = error.variance.sqrt();
        let p_value = match deviation > 0.0 {
            true => upper_p_student(surely / deviation, error.freedom),
            false => f64::from(u8::from(surely <= 0.0)),
        };
        let half_width = ErrorVariance::of_difference(one, other).half_width();
        Gated {
            number: self.number,
            one: self.one,
            other: self.other,
            worse: self.worse,
            half_width,
            p_value,
            detectable: f64::INFINITY,
            is_worse: false,
            may_be_worse: self.worse + half_width > tolerated + self.rounding,
            tolerated,
            errors,
        }
    }
}

/// The error that a normal 95 % interval of this half-width stands for.
fn normal_error(half_width: f64) -> ErrorVariance {
    ErrorVariance {
        variance: (half_width / Z_95).powi(2),
        freedom: f64::INFINITY,
    }
}

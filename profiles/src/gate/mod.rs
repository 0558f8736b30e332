//! Has a model become slower or less accurate on a device, by more than is put up with?
//!
//! Numbers that two profiles of one model have in common are tested one by one: is the second worse than the first by more
//! than a tolerated share? Tested are the compute time of each layer, the cost of each cut, the whole model, the energy of each
//! layer and of the whole model where both were measured by meters of one kind, and the accuracy with all layers on one
//! processor and with each layer alone elsewhere. Tests are one-sided, by Student's t with
//! the errors that the profiles' samples give, and adjusted by Holm's method over all numbers of both profiles: where nothing
//! became worse by more than is tolerated, the chance that anything is said to is no more than alpha in all, as far as the
//! errors hold what differs between the two runs (docs/method.md §8). Of several good profiles, how far their numbers differ says
//! that as well: then a number is worse only if it is by both errors.

mod accuracy;
mod energy;
mod error;
mod power;
mod several;
mod share;
mod subject;
mod times;
mod words;

use crate::compare::{
    CompareError, RunsInOne, refuse_different_models, refuse_without_common_processor, runs_in_one,
};
use crate::derive::graph::{ErrorVariance, upper_p_student};
use crate::document::Profile;
use crate::holm;
use crate::placement::Placement;
use crate::summary::Z_95;
use several::BetweenRuns;

pub use error::GateError;
pub use power::{GateSight, POWER};
pub use several::FEWEST_GOOD;
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

/// A number that all profiles have.
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

/// A number of the good profiles and of a new one: is the new one's worse?
#[derive(Clone, Debug, PartialEq)]
pub struct Gated {
    /// Which number.
    pub number: GatedNumber,
    /// The good profile's, or the mean of several: in ns, in nJ, or an accuracy as a share.
    pub one: f64,
    /// The new profile's.
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
    /// The errors of the good profiles' number, with what is tolerated added to it, and of the new one's, by their samples.
    errors: [ErrorVariance; 2],
    /// The error of the difference by how far good profiles differ, where there are several.
    between: Option<ErrorVariance>,
}

/// What a gate found.
#[derive(Clone, Debug, PartialEq)]
pub struct GateResult {
    /// What was put up with.
    pub settings: GateSettings,
    /// How many good profiles the new one was compared with.
    pub good: usize,
    /// Every number that was tested.
    pub numbers: Vec<Gated>,
    /// What a processor ran before and cannot run any more.
    pub lost: Vec<RunsInOne>,
    /// How many numbers have no interval in one of the profiles, or are only in earlier ones of several good ones, so that nothing
    /// can be said.
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

/// Tests whether `new` is worse than the profile `good`, or, of several, than these are on average and differ from one another.
/// The last of several says what a processor can run. Of none nothing is tested.
///
/// # Errors
/// Profiles that cannot be compared; several good ones that are fewer than [`FEWEST_GOOD`], or not of one subject.
pub fn gate(
    good: &[&Profile],
    new: &Profile,
    settings: GateSettings,
) -> Result<GateResult, GateError> {
    if let [first, others @ .., last] = good {
        let given = good.len();
        if given < FEWEST_GOOD {
            return Err(GateError::FewGood { given });
        }
        let subject = ProfileSubject::of(&last.header);
        let mut others = std::iter::once(first).chain(others);
        let other = others.find(|one| !ProfileSubject::of(&one.header).is_same(&subject));
        if let Some(other) = other {
            return Err(GateError::DifferentSubjects {
                one: Box::new(ProfileSubject::of(&other.header)),
                other: Box::new(subject),
            });
        }
    }
    let with = good.iter().map(|one| candidates(one, new));
    let with = with.collect::<Result<Vec<_>, _>>()?;
    let Candidates {
        tests,
        untested,
        has_accuracy,
        has_energy,
    } = several::merge(with);
    let mut numbers: Vec<Gated> = (tests.into_iter())
        .map(|one| one.test(settings.tolerance))
        .collect();
    power::tell_detectable(&mut numbers, settings.alpha);
    holm::adjust(numbers.iter_mut().map(|gated| &mut gated.p_value));
    for gated in &mut numbers {
        gated.is_worse = gated.p_value < settings.alpha;
    }
    let last = good.last().into_iter();
    let lost = last.flat_map(|one| runs_in_one(one, new));
    Ok(GateResult {
        settings,
        good: good.len(),
        numbers,
        lost: lost.filter(|lacked| lacked.lacks_other).collect(),
        untested,
        has_accuracy,
        has_energy,
    })
}

/// What can be tested of a new profile and a good one, or several.
#[derive(Default)]
struct Candidates {
    tests: Vec<Candidate>,
    untested: usize,
    has_accuracy: bool,
    has_energy: bool,
}

fn candidates(one: &Profile, other: &Profile) -> Result<Candidates, CompareError> {
    refuse_different_models(one, other)?;
    refuse_without_common_processor(one, other)?;
    let (mut tests, mut untested) = times::candidates(one, other)?;
    let energies = energy::candidates(one, other);
    let has_energy = energies.is_some();
    if let Some((energies, without)) = energies {
        tests.extend(energies);
        untested += without;
    }
    let accuracies = accuracy::candidates(one, other);
    let has_accuracy = !accuracies.is_empty();
    tests.extend(accuracies);
    Ok(Candidates {
        tests,
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
    /// How far good profiles differ, where there are several.
    between: Option<BetweenRuns>,
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
        let between = (self.between.as_ref()).map(|runs| runs.of_difference(1.0 + tolerance));
        let beyond = self.worse - tolerated;
        // What rounding can do is no difference.
        let surely = beyond.signum() * (beyond.abs() - self.rounding).max(0.0);
        let p_value = |error: ErrorVariance| match error.variance > 0.0 {
            true => upper_p_student(surely / error.variance.sqrt(), error.freedom),
            false => f64::from(u8::from(surely <= 0.0)),
        };
        let p_value = between.map_or(0.0, p_value).max(p_value(error));
        let half_width = ErrorVariance::of_difference(one, other).half_width();
        let between_runs = (self.between.as_ref()).map(|runs| runs.of_difference(1.0).half_width());
        let half_width = half_width.max(between_runs.unwrap_or(0.0));
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
            between,
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

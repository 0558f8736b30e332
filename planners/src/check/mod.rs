//! Is an outcome what it says? Everything is calculated again from the raw tables, by code that shares
//! nothing with the algorithms: T(L) by the profile's own time model, A(L) from a model's
//! parameters in plain loops, what memory holds by trying loaded segments, and the ends of their intervals by docs/method.md §2
//! and §9.

mod ends;
mod fault;
mod memory;
mod recalculate;

use layerlab_profiles::time_model::{PredictedTime, ProcessorTimes, TimeModel};
use layerlab_profiles::{Layer, Placement, SignedNanos};

use crate::accuracy::AccuracyModel;
use crate::confidence::Confidence;
use crate::goal::Goal;
use crate::outcome::{Infeasible, Outcome, Plan};
use crate::rows::AccuracyTable;
use crate::solve::Why;
use crate::times::ProcessorTable;

pub use fault::Fault;

/// Accuracies that were summed in another order differ by rounding.
const ACCURACY_ROUNDING: f64 = 1e-9;

/// What an outcome is checked against.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// `layers.csv`.
    pub layers: &'a [Layer],
    /// What is published of each processor, processor 0 first.
    pub processors: &'a [ProcessorTable],
    /// The measured losses.
    pub accuracy: &'a AccuracyTable,
    /// Where the losses that were not measured come from.
    pub loss: Loss<'a>,
}

/// Where losses come from.
#[derive(Clone, Copy)]
pub enum Loss<'a> {
    /// A trained model, whose parameters are read and whose arithmetic is done again.
    Model(&'a AccuracyModel),
    /// A function of the placement, for problems whose losses are planted. It does not err.
    Formula(&'a dyn Fn(&Placement) -> f64),
}

/// Everything that is wrong with an outcome; nothing if it is what it says.
pub fn check(outcome: &Outcome, evidence: &Evidence) -> Vec<Fault> {
    let mut faults = Vec::new();
    match outcome {
        Outcome::Planned(plan) => check_plan(plan, evidence, &mut faults),
        Outcome::Infeasible(infeasible) => check_infeasible(infeasible, evidence, &mut faults),
    }
    faults
}

fn check_plan(plan: &Plan, evidence: &Evidence, faults: &mut Vec<Fault>) {
    if let Some(fault) = impossible(plan.combination(), evidence) {
        faults.push(fault);
        return;
    }
    let uses = memory::uses(plan.combination(), evidence);
    if plan.memory() != uses {
        faults.push(Fault::Memory {
            said: plan.memory().to_vec(),
            found: uses,
        });
    }
    let Some((time, accuracy)) = evaluate(plan.combination(), evidence, faults) else {
        return;
    };
    let said = plan.time();
    if said != time {
        faults.push(Fault::Time {
            said: said.total(),
            found: time.total(),
        });
    }
    let rounding = ends::rounding_ns(plan, evidence);
    let interval = ends::time_ci95(plan.combination(), evidence);
    let is_near = |said: SignedNanos, found: SignedNanos| {
        (said - found).as_nanos().unsigned_abs() <= rounding.unsigned_abs()
    };
    let is_same = match (plan.time_ci95(), interval) {
        (Some(said), Some(found)) => is_near(said.0, found.0) && is_near(said.1, found.1),
        (said, found) => said == found,
    };
    if !is_same {
        faults.push(Fault::Interval {
            said: plan.time_ci95(),
            found: interval,
        });
    }
    let value = plan.accuracy().value;
    let is_same = compare_accuracy(value, accuracy, faults);
    if let Some(fault) = broken(plan.goal(), time.total(), value) {
        faults.push(fault);
    }
    let measured = measured(plan.combination(), evidence);
    match plan.measured_accuracy() {
        Some(said) if measured.is_none_or(|found| (found - said).abs() > ACCURACY_ROUNDING) => {
            faults.push(Fault::Measured { said });
        }
        // The interval of another accuracy is another one.
        _ if is_same => check_accuracy_interval(plan, evidence, faults),
        _ => {}
    }
    let kept = match plan.goal() {
        Goal::MaxAccuracy { within } => {
            let longest = ends::longest_time_ns(plan, time.total(), interval);
            let spare = within.signed().as_nanos() - longest;
            // Which side of the limit it is on may be a question of rounding.
            (spare.abs() > rounding).then_some(spare >= 0)
        }
        Goal::MinTime { at_least } => {
            let (combination, confidence) = (plan.combination(), plan.confidence());
            let least = ends::least_accuracy(combination, value, confidence, evidence);
            let spare = least - at_least;
            (spare.abs() > ACCURACY_ROUNDING).then_some(spare >= 0.0)
        }
    };
    if is_same && kept.is_some_and(|kept| kept != plan.keeps_limit()) {
        faults.push(Fault::KeepsLimit {
            said: plan.keeps_limit(),
        });
    }
}

fn check_accuracy_interval(plan: &Plan, evidence: &Evidence, faults: &mut Vec<Fault>) {
    let said = plan.accuracy().interval;
    let (combination, confidence) = (plan.combination(), plan.confidence());
    let value = plan.accuracy().value;
    let found = ends::accuracy_interval(combination, value, confidence, evidence);
    if !is_same_interval(said, found) {
        faults.push(Fault::AccuracyInterval { said, found });
    }
}

/// Whether both are the same interval of an accuracy.
pub(crate) fn is_same_interval(said: Option<(f64, f64)>, found: Option<(f64, f64)>) -> bool {
    match (said, found) {
        (Some(said), Some(found)) => is_near(said.0, found.0) && is_near(said.1, found.1),
        (said, found) => said == found,
    }
}

/// Whether both are the same accuracy, but for rounding.
pub(crate) fn is_near(said: f64, found: f64) -> bool {
    (said - found).abs() <= ACCURACY_ROUNDING
}

/// A(L), its interval and what it is at least, calculated from the raw tables.
pub(crate) struct CheckedAccuracy {
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) least: f64,
}

/// A(L) of a placement with this confidence, 95 % where there is none.
pub(crate) fn checked_accuracy(
    combination: &Placement,
    confidence: Option<Confidence>,
    evidence: &Evidence,
) -> CheckedAccuracy {
    let value = accuracy(combination, evidence);
    CheckedAccuracy {
        value,
        interval: ends::accuracy_interval(combination, value, confidence, evidence),
        least: ends::least_accuracy(combination, value, confidence, evidence),
    }
}

fn check_infeasible(infeasible: &Infeasible, evidence: &Evidence, faults: &mut Vec<Fault>) {
    let (combination, said) = match infeasible.why() {
        Why::FastestTooSlow { fastest, time, .. } => (fastest, *time),
        Why::OnlyOne {
            combination, time, ..
        } => (combination, *time),
        Why::TooLarge(placement) => {
            let combination = placement.combination.clone();
            if memory::shortage(&combination, evidence).is_none() {
                faults.push(Fault::SupportedAfterAll { combination });
            }
            return;
        }
        // What a beam reaches is for the beam to say.
        Why::NothingReached { .. } => return,
        Why::Unsupported { combination, .. } => {
            if unsupported(combination, evidence).is_none() {
                let combination = combination.clone();
                faults.push(Fault::SupportedAfterAll { combination });
            }
            return;
        }
    };
    if let Some(fault) = impossible(combination, evidence) {
        faults.push(fault);
        return;
    }
    if let Why::FastestTooSlow {
        without_limit: Some(anywhere),
        ..
    } = infeasible.why()
        && memory::shortage(&anywhere.combination, evidence).is_none()
    {
        let combination = anywhere.combination.clone();
        faults.push(Fault::SupportedAfterAll { combination });
    }
    let Some((time, accuracy)) = evaluate(combination, evidence, faults) else {
        return;
    };
    if said != time.total() {
        let found = time.total();
        faults.push(Fault::Time { said, found });
    }
    if let Why::OnlyOne { accuracy: said, .. } = infeasible.why() {
        compare_accuracy(*said, accuracy, faults);
    }
    let said = match infeasible.why() {
        Why::OnlyOne { accuracy, .. } => *accuracy,
        _ => accuracy,
    };
    if broken(infeasible.goal(), time.total(), said).is_none() {
        let combination = combination.clone();
        faults.push(Fault::FeasibleAfterAll { combination });
    }
    if let (Why::FastestTooSlow { .. }, Goal::MaxAccuracy { .. }) =
        (infeasible.why(), infeasible.goal())
    {
        // A cheap way to catch a false proof: no neighbour of the fastest may be faster.
        for neighbour in neighbours(combination, evidence.processors.len()) {
            if impossible(&neighbour, evidence).is_none()
                && let Some((faster, _)) = evaluate(&neighbour, evidence, faults)
                && faster.total() < time.total()
            {
                faults.push(Fault::NotFastest { faster: neighbour });
            }
        }
    }
}

/// What of the placement a processor cannot run, or its memory does not hold.
pub(crate) fn impossible(combination: &Placement, evidence: &Evidence) -> Option<Fault> {
    unsupported(combination, evidence).or_else(|| {
        let shortage = memory::shortage(combination, evidence)?;
        Some(Fault::TooLarge {
            combination: combination.clone(),
            shortage,
        })
    })
}

/// What of the placement a processor cannot run.
fn unsupported(combination: &Placement, evidence: &Evidence) -> Option<Fault> {
    let processors = evidence.processors.iter().enumerate();
    let mut all =
        processors.flat_map(|(on, processor)| processor.unsupported.iter().map(move |s| (on, s)));
    let is_there = |layer: u32, on: usize| {
        let place = combination.processors().get(layer as usize - 1);
        place.is_some_and(|&place| usize::from(place) == on)
    };
    let (processor, lacked) = all.find(|(on, one)| {
        let mut layers = one.segment.first()..=one.segment.last();
        layers.all(|layer| is_there(layer, *on))
    })?;
    Some(Fault::Unsupported {
        combination: combination.clone(),
        processor,
        segment: lacked.segment,
        reason: lacked.reason.clone(),
    })
}

/// The placements that have one layer on another processor.
fn neighbours(combination: &Placement, processors: usize) -> impl Iterator<Item = Placement> + '_ {
    let here = combination.processors();
    (0..here.len())
        .flat_map(move |index| (0..processors as u8).map(move |to| (index, to)))
        .filter(|&(index, to)| here[index] != to)
        .map(|(index, to)| {
            let mut moved = here.to_vec();
            moved[index] = to;
            Placement::new(moved)
        })
}

/// T(L) and A(L); nothing if the tables do not give them, which is a fault of its own.
fn evaluate(
    combination: &Placement,
    evidence: &Evidence,
    faults: &mut Vec<Fault>,
) -> Option<(PredictedTime, f64)> {
    let times = evidence.processors.iter();
    let times = times.map(|processor| ProcessorTimes::new(processor.kind, &processor.times));
    let model = TimeModel::of(times.collect());
    let time = match model.and_then(|model| model.predict(combination)) {
        Ok(time) => PredictedTime {
            loading: memory::loading(combination, evidence),
            ..time
        },
        Err(reason) => {
            faults.push(Fault::Tables { reason });
            return None;
        }
    };
    Some((time, accuracy(combination, evidence)))
}

/// A(L).
fn accuracy(combination: &Placement, evidence: &Evidence) -> f64 {
    if let Some(measured) = measured(combination, evidence) {
        return measured;
    }
    let baseline = evidence.accuracy.baseline();
    let loss = match evidence.loss {
        Loss::Formula(formula) => formula(combination),
        Loss::Model(model) => recalculate::loss(combination, evidence, model),
    };
    let accuracy = baseline - loss;
    if accuracy >= 0.0 {
        accuracy.min(baseline)
    } else {
        0.0
    }
}

/// Whether both are the same accuracy, which is a fault if they are not.
fn compare_accuracy(said: f64, found: f64, faults: &mut Vec<Fault>) -> bool {
    let is_same = is_near(said, found);
    if !is_same {
        faults.push(Fault::Accuracy { said, found });
    }
    is_same
}

/// The limit that a placement breaks, if it breaks it.
fn broken(goal: Goal, time: SignedNanos, accuracy: f64) -> Option<Fault> {
    match goal {
        Goal::MaxAccuracy { within } => {
            (time > within.signed()).then_some(Fault::TooSlow { time, within })
        }
        Goal::MinTime { at_least } => {
            (accuracy < at_least).then_some(Fault::TooInaccurate { accuracy, at_least })
        }
    }
}

fn measured(combination: &Placement, evidence: &Evidence) -> Option<f64> {
    let table = evidence.accuracy;
    if combination.is_all_on(0) {
        return Some(table.baseline());
    }
    let mut rows = table.rows().iter();
    let row = rows.find(|row| &row.combination == combination)?;
    Some(table.baseline() - row.loss)
}

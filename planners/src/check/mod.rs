//! Is an outcome what it says? Everything is calculated again from the raw tables, by code that shares
//! nothing with the algorithms: T(L) by the profile's own time model, A(L) from a model's
//! parameters in plain loops.

mod fault;
mod recalculate;

use layerlab_profiles::time_model::{PredictedTime, ProcessorTimes, TimeModel};
use layerlab_profiles::{Layer, Placement, SignedNanos};

use crate::accuracy::AccuracyModel;
use crate::goal::Goal;
use crate::outcome::{Infeasible, Outcome, Plan};
use crate::rows::AccuracyTable;
use crate::solve::Why;
use crate::unsupported::UnsupportedSegment;

pub use fault::Fault;

/// Accuracies that were summed in another order differ by rounding.
const ACCURACY_ROUNDING: f64 = 1e-9;

/// What an outcome is checked against.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// `layers.csv`.
    pub layers: &'a [Layer],
    /// Each processor's rows of `times.csv`, processor 0 first.
    pub times: &'a [ProcessorTimes],
    /// What each processor cannot run, processor 0 first.
    pub unsupported: &'a [Vec<UnsupportedSegment>],
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
    /// A function of the placement, for problems whose losses are planted.
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
    if let Some(fault) = unsupported(plan.combination(), evidence) {
        faults.push(fault);
        return;
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
    // The interval is around times before they were rounded to nanoseconds, a few for each layer.
    let rounding = SignedNanos::from_nanos(3 * evidence.layers.len() as i64);
    if let Some((low, high)) = plan.time_ci95()
        && (low > time.total() + rounding || high < time.total() - rounding)
    {
        faults.push(Fault::Interval {
            time: time.total(),
            low,
            high,
        });
    }
    let value = plan.accuracy().value;
    compare_accuracy(value, accuracy, faults);
    if let Some(fault) = broken(plan.goal(), time.total(), value) {
        faults.push(fault);
    }
    if let Some(said) = plan.measured_accuracy() {
        let measured = measured(plan.combination(), evidence);
        if measured.is_none_or(|found| (found - said).abs() > ACCURACY_ROUNDING) {
            faults.push(Fault::Measured { said });
        }
    }
}

fn check_infeasible(infeasible: &Infeasible, evidence: &Evidence, faults: &mut Vec<Fault>) {
    let (combination, said) = match infeasible.why() {
        Why::FastestTooSlow { fastest, time } => (fastest, *time),
        Why::OnlyOne {
            combination, time, ..
        } => (combination, *time),
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
    if let Some(fault) = unsupported(combination, evidence) {
        faults.push(fault);
        return;
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
        for neighbour in neighbours(combination, evidence.times.len()) {
            if unsupported(&neighbour, evidence).is_none()
                && let Some((faster, _)) = evaluate(&neighbour, evidence, faults)
                && faster.total() < time.total()
            {
                faults.push(Fault::NotFastest { faster: neighbour });
            }
        }
    }
}

/// What of the placement a processor cannot run.
fn unsupported(combination: &Placement, evidence: &Evidence) -> Option<Fault> {
    let processors = evidence.unsupported.iter().enumerate();
    let mut all = processors.flat_map(|(on, unsupported)| unsupported.iter().map(move |s| (on, s)));
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
    let model = TimeModel::of(evidence.times.to_vec());
    let time = match model.and_then(|model| model.predict(combination)) {
        Ok(time) => time,
        Err(reason) => {
            faults.push(Fault::Tables { reason });
            return None;
        }
    };
    if let Some(measured) = measured(combination, evidence) {
        return Some((time, measured));
    }
    let baseline = evidence.accuracy.baseline();
    let loss = match evidence.loss {
        Loss::Formula(formula) => formula(combination),
        Loss::Model(model) => recalculate::loss(combination, evidence, model),
    };
    let accuracy = baseline - loss;
    let possible = if accuracy >= 0.0 {
        accuracy.min(baseline)
    } else {
        0.0
    };
    Some((time, possible))
}

fn compare_accuracy(said: f64, found: f64, faults: &mut Vec<Fault>) {
    let difference = (said - found).abs();
    if difference.is_nan() || difference > ACCURACY_ROUNDING {
        faults.push(Fault::Accuracy { said, found });
    }
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

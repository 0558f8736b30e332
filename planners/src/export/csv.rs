//! Outcomes and regressors as tables: one row each, a unit in every column's name.

use layerlab_profiles::Placement;
use serde::Serialize;

use super::{ExportError, Source, VerifiedPlacements};
use crate::accuracy::Tried;
use crate::confidence::Confidence;
use crate::goal::Goal;
use crate::least_energy::{EnergyLimit, EnergyPlan};
use crate::outcome::Outcome;
use crate::placement::PackedPlacement;
use crate::times::TimeTable;

/// One row of the table: an outcome, and the profile that it was planned from.
#[derive(Clone, Default, Serialize)]
struct OutcomeRow<'a> {
    model: &'a str,
    device: &'a str,
    simulated: bool,
    emulated: bool,
    algorithm: &'static str,
    keep: Option<usize>,
    goal: &'static str,
    limit_time_ns: Option<u64>,
    limit_accuracy: Option<f64>,
    outcome: &'static str,
    combination: Option<String>,
    time_ns: Option<i64>,
    time_ci95_low_ns: Option<i64>,
    time_ci95_high_ns: Option<i64>,
    cpu_ns: Option<i64>,
    npu_ns: Option<i64>,
    transfer_ns: Option<i64>,
    loading_ns: Option<i64>,
    memory_needed_bytes: Option<u64>,
    accuracy: Option<f64>,
    accuracy_low: Option<f64>,
    accuracy_high: Option<f64>,
    accuracy_clamped: Option<bool>,
    confidence: Option<f64>,
    keeps_limit: Option<bool>,
    measured_accuracy: Option<f64>,
    evaluated: Option<u64>,
    verified_time_ns: Option<u64>,
    verified_time_ci95_low_ns: Option<u64>,
    verified_time_ci95_high_ns: Option<u64>,
    verified_accuracy: Option<f64>,
    verified_accuracy_ci95_low: Option<f64>,
    verified_accuracy_ci95_high: Option<f64>,
    why: Option<String>,
}

/// The outcomes of plans and sweeps, one row each in their order, with a header.
///
/// With more than two processors `npu_ns` is the sum over all of them but processor 0. `loading_ns` is what loading runs in
/// each inference takes (`--memory reload`), and `memory_needed_bytes` what runs need of the memories of which a limit is known. `keep` is empty where the algorithm has
/// none or takes the usual one. `confidence` is that with which limits are to be kept, empty where estimates decide, and
/// `keeps_limit` says whether this one is; the ends of the accuracy have it, or 95 %. Where there is no plan, its columns are
/// empty and `why` says why. The last columns but that are what running the placement on a device gave, where it was run.
pub fn outcomes_csv(
    source: &Source,
    outcomes: &[Outcome],
    verified: &VerifiedPlacements,
) -> Result<String, ExportError> {
    text(
        outcomes
            .iter()
            .map(|outcome| row(source, outcome, verified)),
    )
}

/// What a placement draws above what the idle device does.
#[derive(Serialize)]
struct EnergyColumns {
    energy_nj: Option<i64>,
    energy_ci95_low_nj: Option<i64>,
    energy_ci95_high_nj: Option<i64>,
}

/// The same with three columns more, what each placement draws by `energies`, and a row for each of the limits within which the
/// placement was sought that draws least.
pub fn outcomes_csv_with_energy(
    source: &Source,
    outcomes: &[Outcome],
    verified: &VerifiedPlacements,
    energies: &TimeTable,
    least: &[(EnergyLimit, Option<EnergyPlan>)],
) -> Result<String, ExportError> {
    let of_outcome = |outcome: &Outcome| {
        let placement = outcome.plan().map(|plan| plan.combination());
        let drawn = placement.and_then(|one| drawn(energies, one));
        (row(source, outcome, verified), columns(drawn))
    };
    let of_least = |(limit, plan): &(EnergyLimit, Option<EnergyPlan>)| {
        let drawn = plan
            .as_ref()
            .map(|plan| (plan.energy_nj, plan.energy_ci95_nj));
        (least_row(source, *limit, plan.as_ref()), columns(drawn))
    };
    let all = outcomes.iter().map(of_outcome);
    text(all.chain(least.iter().map(of_least)))
}

type Drawn = (i64, Option<(i64, i64)>);

fn drawn(energies: &TimeTable, placement: &Placement) -> Option<Drawn> {
    let placement = PackedPlacement::of(placement).ok()?;
    let ci95 = energies.interval(&placement);
    let ci95 = ci95.map(|(low, high)| (low.as_nanos(), high.as_nanos()));
    Some((energies.total(&placement), ci95))
}

fn columns(drawn: Option<Drawn>) -> EnergyColumns {
    let ci95 = drawn.and_then(|(_, ci95)| ci95);
    EnergyColumns {
        energy_nj: drawn.map(|(energy, _)| energy),
        energy_ci95_low_nj: ci95.map(|(low, _)| low),
        energy_ci95_high_nj: ci95.map(|(_, high)| high),
    }
}

fn least_row<'a>(
    source: &'a Source,
    limit: EnergyLimit,
    plan: Option<&EnergyPlan>,
) -> OutcomeRow<'a> {
    let (limit_time_ns, limit_accuracy) = match limit {
        EnergyLimit::Time { within } => (Some(within.as_nanos()), None),
        EnergyLimit::Accuracy { at_least } => (None, Some(at_least)),
        EnergyLimit::Unlimited => (None, None),
    };
    let ci95 = plan.and_then(|plan| plan.time_ci95);
    let accuracy = plan.and_then(|plan| plan.accuracy);
    let interval = accuracy.and_then(|accuracy| accuracy.interval);
    OutcomeRow {
        model: &source.model,
        device: &source.device,
        simulated: source.simulated,
        emulated: source.emulated,
        algorithm: "least-energy",
        goal: "min-energy",
        limit_time_ns,
        limit_accuracy,
        outcome: if plan.is_some() {
            "planned"
        } else {
            "infeasible"
        },
        combination: plan.map(|plan| plan.combination.to_string()),
        time_ns: plan.map(|plan| plan.time.as_nanos()),
        time_ci95_low_ns: ci95.map(|(low, _)| low.as_nanos()),
        time_ci95_high_ns: ci95.map(|(_, high)| high.as_nanos()),
        accuracy: accuracy.map(|accuracy| accuracy.value),
        accuracy_low: interval.map(|(low, _)| low),
        accuracy_high: interval.map(|(_, high)| high),
        accuracy_clamped: accuracy.map(|accuracy| accuracy.clamped),
        keeps_limit: plan.map(|plan| plan.keeps_limit),
        why: plan
            .is_none()
            .then(|| format!("no placement keeps the limit {limit}")),
        ..OutcomeRow::default()
    }
}

fn row<'a>(source: &'a Source, outcome: &Outcome, verified: &VerifiedPlacements) -> OutcomeRow<'a> {
    let (algorithm, keep, goal) = match outcome {
        Outcome::Planned(plan) => (plan.algorithm(), plan.keep(), plan.goal()),
        Outcome::Infeasible(infeasible) => {
            (infeasible.algorithm(), infeasible.keep(), infeasible.goal())
        }
    };
    let (name, limit_time_ns, limit_accuracy) = match goal {
        Goal::MaxAccuracy { within } => ("max-accuracy", Some(within.as_nanos()), None),
        Goal::MinTime { at_least } => ("min-time", None, Some(at_least)),
    };
    let plan = outcome.plan();
    let time = plan.map(|plan| plan.time());
    let verified = plan.and_then(|plan| verified.get(plan.combination()));
    let time_ci95_ns = verified.and_then(|verified| verified.time_ci95_ns);
    let verified_accuracy = verified.and_then(|verified| verified.accuracy);
    let interval = plan.and_then(|plan| plan.accuracy().interval);
    let ci95 = plan.and_then(|plan| plan.time_ci95());
    OutcomeRow {
        model: &source.model,
        device: &source.device,
        simulated: source.simulated,
        emulated: source.emulated,
        algorithm: algorithm.name(),
        keep,
        goal: name,
        limit_time_ns,
        limit_accuracy,
        outcome: if plan.is_some() {
            "planned"
        } else {
            "infeasible"
        },
        combination: plan.map(|plan| plan.combination().to_string()),
        time_ns: time.map(|time| time.total().as_nanos()),
        time_ci95_low_ns: ci95.map(|(low, _)| low.as_nanos()),
        time_ci95_high_ns: ci95.map(|(_, high)| high.as_nanos()),
        cpu_ns: time.map(|time| time.on(0).as_nanos()),
        npu_ns: time.map(|time| time.off_cpu().as_nanos()),
        transfer_ns: time.map(|time| time.transfer.as_nanos()),
        loading_ns: time.map(|time| time.loading.as_nanos()),
        memory_needed_bytes: plan.map(|plan| {
            let needed = plan.memory().iter().map(|used| used.needed.as_bytes());
            needed.sum()
        }),
        accuracy: plan.map(|plan| plan.accuracy().value),
        accuracy_low: interval.map(|(low, _)| low),
        accuracy_high: interval.map(|(_, high)| high),
        accuracy_clamped: plan.map(|plan| plan.accuracy().clamped),
        confidence: plan
            .and_then(|plan| plan.confidence())
            .map(Confidence::share),
        keeps_limit: plan.map(|plan| plan.keeps_limit()),
        measured_accuracy: plan.and_then(|plan| plan.measured_accuracy()),
        evaluated: plan.map(|plan| plan.evaluated()),
        verified_time_ns: verified.map(|verified| verified.time_ns),
        verified_time_ci95_low_ns: time_ci95_ns.map(|(low, _)| low),
        verified_time_ci95_high_ns: time_ci95_ns.map(|(_, high)| high),
        verified_accuracy: verified_accuracy.map(|(accuracy, _)| accuracy),
        verified_accuracy_ci95_low: verified_accuracy.map(|(_, (low, _))| low),
        verified_accuracy_ci95_high: verified_accuracy.map(|(_, (_, high))| high),
        why: match outcome {
            Outcome::Planned(_) => None,
            Outcome::Infeasible(infeasible) => Some(infeasible.to_string()),
        },
    }
}

/// One kind of regressor.
#[derive(Serialize)]
struct TriedRow<'a> {
    model: &'a str,
    device: &'a str,
    simulated: bool,
    emulated: bool,
    regressor: &'static str,
    settings: String,
    held_back_rows: usize,
    held_back_mae: f64,
    test_rows: Option<usize>,
    test_mae: Option<f64>,
    test_mape: Option<f64>,
    test_mape_floor: f64,
    test_r2: Option<f64>,
}

/// The papers' Table 2: how each kind of regressor did, one row each.
pub fn tried_csv(source: &Source, tried: &[Tried]) -> Result<String, ExportError> {
    text(tried.iter().map(|tried| TriedRow {
        model: &source.model,
        device: &source.device,
        simulated: source.simulated,
        emulated: source.emulated,
        regressor: tried.kind.name(),
        settings: tried.settings.to_string(),
        held_back_rows: tried.held_back.rows,
        held_back_mae: tried.held_back.mae,
        test_rows: tried.test.map(|score| score.rows),
        test_mae: tried.test.map(|score| score.mae),
        test_mape: tried.test.map(|score| score.mape),
        test_mape_floor: crate::regress::MAPE_FLOOR,
        test_r2: tried.test.and_then(|score| score.r2),
    }))
}

fn text(rows: impl Iterator<Item = impl Serialize>) -> Result<String, ExportError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row)?;
    }
    let unfinished = |error: String| ExportError::Unfinished(error);
    let bytes = writer
        .into_inner()
        .map_err(|error| unfinished(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| unfinished(error.to_string()))
}

//! Outcomes as one JSON document, with the layers and the reasons.

use serde::Serialize;

use super::{ExportError, Source};
use crate::confidence::Confidence;
use crate::cost_alone::{ACCURACY_UNKNOWN, TimePlan};
use crate::goal::Goal;
use crate::memory::MemoryUse;
use crate::outcome::{Outcome, Plan};
use crate::reason::{Reason, Verdict};
use crate::solve::Algorithm;

/// The value of the field `format`.
pub const FORMAT: &str = "layerlab-plans";

/// The version of the document.
pub const VERSION: u32 = 3;

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    source: &'a Source,
    outcomes: Vec<OutcomeJson>,
}

#[derive(Serialize)]
struct OutcomeJson {
    algorithm: &'static str,
    keep: Option<usize>,
    goal: &'static str,
    limit_time_ns: Option<u64>,
    limit_accuracy: Option<f64>,
    plan: Option<PlanJson>,
    why_infeasible: Option<String>,
}

#[derive(Serialize)]
struct PlanJson {
    combination: String,
    npu_runs: Vec<(u32, u32)>,
    time_ns: i64,
    time_ci95_ns: Option<(i64, i64)>,
    cpu_ns: i64,
    npu_ns: i64,
    transfer_ns: i64,
    /// Loading runs when they are needed; 0 where all stay loaded.
    loading_ns: i64,
    /// Of each accelerator of which a limit is known.
    memory: Vec<MemoryJson>,
    /// Only with more than two processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    processors: Option<Vec<ProcessorJson>>,
    accuracy: Option<f64>,
    accuracy_interval: Option<(f64, f64)>,
    is_measured: bool,
    confidence: Option<f64>,
    keeps_limit: Option<bool>,
    predicted_loss: Option<f64>,
    accuracy_clamped: Option<bool>,
    measured_accuracy: Option<f64>,
    evaluated: Option<u64>,
    layers: Vec<LayerJson>,
    notes: Vec<String>,
}

/// What the runs on an accelerator need of its memory.
#[derive(Serialize)]
struct MemoryJson {
    processor: String,
    /// `resident`: all runs together; `reload`: the largest of them.
    mode: &'static str,
    needed_bytes: u64,
    capacity_bytes: u64,
}

/// What one processor has to do.
#[derive(Serialize)]
struct ProcessorJson {
    name: String,
    compute_ns: i64,
    runs: Vec<(u32, u32)>,
}

#[derive(Serialize)]
struct LayerJson {
    layer: u32,
    name: String,
    on_npu: bool,
    /// Where the layer runs and where it would move; only with more than two processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    processor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moving_to: Option<String>,
    /// Absent where the other processor cannot run the layer.
    moving_changes_time_ns: Option<i64>,
    moving_changes_accuracy: Option<f64>,
    verdict: &'static str,
    /// Why the other processor cannot run it, or its memory would not hold it; only there.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsupported: Option<String>,
}

/// The outcomes of plans and sweeps, in their order.
///
/// `confidence` is that with which limits are to be kept, null where estimates decide, and `keeps_limit` says whether a plan's is;
/// `accuracy_interval` has it, or 95 %. `predicted_loss` is the measured one where `is_measured`.
/// Layers are numbered from 1; `npu_runs` are the first and last layers of what the NPU executes as units.
/// With more than two processors `npu_runs`, `npu_ns` and `on_npu` are about all of them but processor 0; each
/// plan has its `processors` in the order of the digits, and `layers` has a row for each layer and each processor
/// to which it could move. Where the other processor cannot run a layer, or its memory would not hold what it would then have
/// to run, what moving it changes is null, and `unsupported` says why. `memory` has what the runs on each accelerator need of
/// its memory, where a limit is known, and `loading_ns` what loading them in each inference takes with `--memory reload`.
pub fn outcomes_json(source: &Source, outcomes: &[Outcome]) -> Result<String, ExportError> {
    document(source, outcomes.iter().map(outcome).collect())
}

/// A plan by time alone, in the same document: whatever is about accuracy is null, `is_measured` is false, `notes` says so, and
/// there is no limit that could be kept.
pub fn time_plan_json(source: &Source, plan: &TimePlan) -> Result<String, ExportError> {
    let mut by_time = plan_by_time(plan);
    by_time.notes.push(ACCURACY_UNKNOWN.to_owned());
    let outcome = OutcomeJson {
        algorithm: Algorithm::Fastest.name(),
        keep: None,
        goal: "min-time",
        limit_time_ns: None,
        limit_accuracy: None,
        plan: Some(by_time),
        why_infeasible: None,
    };
    document(source, vec![outcome])
}

fn document(source: &Source, outcomes: Vec<OutcomeJson>) -> Result<String, ExportError> {
    let document = Document {
        format: FORMAT,
        version: VERSION,
        source,
        outcomes,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

fn outcome(outcome: &Outcome) -> OutcomeJson {
    let (algorithm, keep, goal, why_infeasible) = match outcome {
        Outcome::Planned(plan) => (plan.algorithm(), plan.keep(), plan.goal(), None),
        Outcome::Infeasible(infeasible) => (
            infeasible.algorithm(),
            infeasible.keep(),
            infeasible.goal(),
            Some(infeasible.to_string()),
        ),
    };
    let (name, limit_time_ns, limit_accuracy) = match goal {
        Goal::MaxAccuracy { within } => ("max-accuracy", Some(within.as_nanos()), None),
        Goal::MinTime { at_least } => ("min-time", None, Some(at_least)),
    };
    OutcomeJson {
        algorithm: algorithm.name(),
        keep,
        goal: name,
        limit_time_ns,
        limit_accuracy,
        plan: outcome.plan().map(plan_json),
        why_infeasible,
    }
}

fn memory_json(used: &MemoryUse) -> MemoryJson {
    MemoryJson {
        processor: used.processor.clone(),
        mode: used.mode.name(),
        needed_bytes: used.needed.as_bytes(),
        capacity_bytes: used.capacity.as_bytes(),
    }
}

fn plan_json(plan: &Plan) -> PlanJson {
    let accuracy = plan.accuracy();
    PlanJson {
        accuracy: Some(accuracy.value),
        accuracy_interval: accuracy.interval,
        is_measured: accuracy.is_measured,
        confidence: plan.confidence().map(Confidence::share),
        keeps_limit: Some(plan.keeps_limit()),
        predicted_loss: Some(accuracy.loss),
        accuracy_clamped: Some(accuracy.clamped),
        measured_accuracy: plan.measured_accuracy(),
        evaluated: Some(plan.evaluated()),
        ..plan_by_time(&TimePlan {
            processors: plan.processors().to_vec(),
            combination: plan.combination().clone(),
            time: plan.time(),
            time_ci95: plan.time_ci95(),
            memory: plan.memory().to_vec(),
            reasons: plan.reasons().to_vec(),
        })
    }
}

/// What does not depend on accuracy.
fn plan_by_time(plan: &TimePlan) -> PlanJson {
    let (time, placement) = (plan.time, &plan.combination);
    let has_more_than_two = plan.processors.len() > 2;
    let (layers, notes) = layers_and_notes(&plan.reasons, has_more_than_two);
    let processors = (0..).zip(&plan.processors).map(|(processor, name)| {
        let runs = placement.runs_on(processor);
        ProcessorJson {
            name: name.clone(),
            compute_ns: time.on(usize::from(processor)).as_nanos(),
            runs: runs.map(Into::into).collect(),
        }
    });
    let npu_runs = placement.runs().filter(|(_, processor)| *processor != 0);
    PlanJson {
        combination: placement.to_string(),
        npu_runs: npu_runs.map(|(run, _)| run.into()).collect(),
        time_ns: time.total().as_nanos(),
        time_ci95_ns: plan
            .time_ci95
            .map(|(low, high)| (low.as_nanos(), high.as_nanos())),
        cpu_ns: time.on(0).as_nanos(),
        npu_ns: time.off_cpu().as_nanos(),
        transfer_ns: time.transfer.as_nanos(),
        loading_ns: time.loading.as_nanos(),
        memory: plan.memory.iter().map(memory_json).collect(),
        processors: has_more_than_two.then(|| processors.collect()),
        accuracy: None,
        accuracy_interval: None,
        is_measured: false,
        confidence: None,
        keeps_limit: None,
        predicted_loss: None,
        accuracy_clamped: None,
        measured_accuracy: None,
        evaluated: None,
        layers,
        notes,
    }
}

/// The reasons that are about layers, and the others as sentences.
fn layers_and_notes(reasons: &[Reason], has_more_than_two: bool) -> (Vec<LayerJson>, Vec<String>) {
    let mut layers = Vec::new();
    let mut notes = Vec::new();
    for reason in reasons {
        match reason {
            Reason::Layer(layer) => layers.push(LayerJson {
                layer: layer.layer,
                name: layer.name.clone(),
                on_npu: layer.processor != 0,
                processor: has_more_than_two.then(|| layer.here.clone()),
                moving_to: has_more_than_two.then(|| layer.there.clone()),
                moving_changes_time_ns: Some(layer.time_change.as_nanos()),
                moving_changes_accuracy: layer.accuracy_change,
                verdict: verdict(layer.verdict),
                unsupported: None,
            }),
            Reason::Unsupported(layer) => layers.push(LayerJson {
                layer: layer.layer,
                name: layer.name.clone(),
                on_npu: layer.processor != 0,
                processor: has_more_than_two.then(|| layer.here.clone()),
                moving_to: has_more_than_two.then(|| layer.there.clone()),
                moving_changes_time_ns: None,
                moving_changes_accuracy: None,
                verdict: "moving-is-unsupported",
                unsupported: Some(layer.reason.clone()),
            }),
            Reason::TooLarge(layer) => layers.push(LayerJson {
                layer: layer.layer,
                name: layer.name.clone(),
                on_npu: layer.processor != 0,
                processor: has_more_than_two.then(|| layer.here.clone()),
                moving_to: has_more_than_two.then(|| layer.there.clone()),
                moving_changes_time_ns: None,
                moving_changes_accuracy: None,
                verdict: "moving-does-not-fit",
                unsupported: Some(layer.shortage.to_string()),
            }),
            note => notes.push(note.to_string()),
        }
    }
    (layers, notes)
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::BreaksLimit => "moving-breaks-limit",
        Verdict::Worse => "moving-is-worse",
        Verdict::Same => "moving-gains-nothing",
        Verdict::Better => "moving-is-better",
    }
}

//! Outcomes as one JSON document, with the layers and the reasons.

use serde::Serialize;

use super::{ExportError, Source};
use crate::goal::Goal;
use crate::outcome::{Outcome, Plan};
use crate::reason::{Reason, Verdict};
use crate::solve::Algorithm;

/// The value of the field `format`.
pub const FORMAT: &str = "layerlab-plans";

/// The version of the document.
pub const VERSION: u32 = 1;

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
    accuracy: f64,
    predicted_loss: f64,
    accuracy_clamped: bool,
    measured_accuracy: Option<f64>,
    evaluated: u64,
    layers: Vec<LayerJson>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct LayerJson {
    layer: u32,
    name: String,
    on_npu: bool,
    moving_changes_time_ns: i64,
    moving_changes_accuracy: f64,
    verdict: &'static str,
}

/// The outcomes of plans and sweeps, in their order.
///
/// Layers are numbered from 1; `npu_runs` are the first and last layers of what the NPU executes as units.
pub fn outcomes_json(source: &Source, outcomes: &[Outcome]) -> Result<String, ExportError> {
    let document = Document {
        format: FORMAT,
        version: VERSION,
        source,
        outcomes: outcomes.iter().map(outcome).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

fn outcome(outcome: &Outcome) -> OutcomeJson {
    let (algorithm, goal, why_infeasible) = match outcome {
        Outcome::Planned(plan) => (plan.algorithm(), plan.goal(), None),
        Outcome::Infeasible(infeasible) => (
            infeasible.algorithm(),
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
        keep: match algorithm {
            Algorithm::Mlmp { keep } => keep,
            _ => None,
        },
        goal: name,
        limit_time_ns,
        limit_accuracy,
        plan: outcome.plan().map(plan_json),
        why_infeasible,
    }
}

fn plan_json(plan: &Plan) -> PlanJson {
    let time = plan.time();
    let mut layers = Vec::new();
    let mut notes = Vec::new();
    for reason in plan.reasons() {
        match reason {
            Reason::Layer(layer) => layers.push(LayerJson {
                layer: layer.layer,
                name: layer.name.clone(),
                on_npu: layer.on_npu,
                moving_changes_time_ns: layer.time_change.as_nanos(),
                moving_changes_accuracy: layer.accuracy_change,
                verdict: verdict(layer.verdict),
            }),
            note => notes.push(note.to_string()),
        }
    }
    PlanJson {
        combination: plan.combination().to_string(),
        npu_runs: plan.combination().npu_runs().map(Into::into).collect(),
        time_ns: time.total().as_nanos(),
        time_ci95_ns: plan
            .time_ci95()
            .map(|(low, high)| (low.as_nanos(), high.as_nanos())),
        cpu_ns: time.cpu.as_nanos(),
        npu_ns: time.npu.as_nanos(),
        transfer_ns: time.transfer.as_nanos(),
        accuracy: plan.accuracy().value,
        predicted_loss: plan.accuracy().loss,
        accuracy_clamped: plan.accuracy().clamped,
        measured_accuracy: plan.measured_accuracy(),
        evaluated: plan.evaluated(),
        layers,
        notes,
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::BreaksLimit => "moving-breaks-limit",
        Verdict::Worse => "moving-is-worse",
        Verdict::Same => "moving-gains-nothing",
        Verdict::Better => "moving-is-better",
    }
}

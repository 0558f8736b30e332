//! The placement that draws least, as a JSON document.

use serde::Serialize;

use super::{ExportError, Source};
use crate::confidence::Confidence;
use crate::cost_alone::ACCURACY_UNKNOWN;
use crate::least_energy::{EnergyLimit, EnergyPlan};

#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    version: u32,
    source: &'a Source,
    goal: &'static str,
    limit_time_ns: Option<u64>,
    limit_accuracy: Option<f64>,
    confidence: Option<f64>,
    plan: Option<PlanJson>,
}

#[derive(Serialize)]
struct PlanJson {
    combination: String,
    energy_nj: i64,
    energy_ci95_nj: Option<(i64, i64)>,
    time_ns: i64,
    time_ci95_ns: Option<(i64, i64)>,
    accuracy: Option<f64>,
    accuracy_interval: Option<(f64, f64)>,
    is_measured: bool,
    keeps_limit: bool,
    is_optimum: bool,
    notes: Vec<&'static str>,
}

/// The plan; null where no placement keeps the limit. Energies are above what the idle device draws, and `confidence` is that
/// with which the limit is to be kept, null where estimates decide. Where accuracy was not measured, the plan's is null, as is
/// its interval, and `notes` says so; where nothing limits the plan, both limits are null.
pub fn energy_plan_json(
    source: &Source,
    limit: EnergyLimit,
    confidence: Option<Confidence>,
    plan: Option<&EnergyPlan>,
) -> Result<String, ExportError> {
    let (limit_time_ns, limit_accuracy) = match limit {
        EnergyLimit::Time { within } => (Some(within.as_nanos()), None),
        EnergyLimit::Accuracy { at_least } => (None, Some(at_least)),
        EnergyLimit::Unlimited => (None, None),
    };
    let document = Document {
        format: "layerlab-energy-plan",
        version: 2,
        source,
        goal: "min-energy",
        limit_time_ns,
        limit_accuracy,
        confidence: confidence.map(Confidence::share),
        plan: plan.map(|plan| PlanJson {
            combination: plan.combination.to_string(),
            energy_nj: plan.energy_nj,
            energy_ci95_nj: plan.energy_ci95_nj,
            time_ns: plan.time.as_nanos(),
            time_ci95_ns: plan
                .time_ci95
                .map(|(low, high)| (low.as_nanos(), high.as_nanos())),
            accuracy: plan.accuracy.map(|accuracy| accuracy.value),
            accuracy_interval: plan.accuracy.and_then(|accuracy| accuracy.interval),
            is_measured: plan.accuracy.is_some_and(|accuracy| accuracy.is_measured),
            keeps_limit: plan.keeps_limit,
            is_optimum: plan.is_optimum,
            notes: match plan.accuracy {
                Some(_) => Vec::new(),
                None => vec![ACCURACY_UNKNOWN],
            },
        }),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

//! How often the gate gave an alarm between two profiles of which the second repeats the first, with nothing known to have
//! changed: its rate of false alarms, as far as nothing changed unseen.

use std::collections::{BTreeMap, BTreeSet};

use layerlab_profiles::gate::share_ci95;
use serde::{Deserialize, Serialize};

use super::{JobReport, RunOutcome};
use crate::record::{Kept, RunState};

/// What the gate said of the repeats of one model on one device, since the lab began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateRecord {
    /// The model's name.
    pub model: String,
    /// What the lab calls the device.
    pub device: String,
    /// How many profiles repeat the one before them.
    pub repeats: usize,
    /// How many of them gave an alarm.
    pub alarms: usize,
    /// The share of alarms that each repeat may give, for all that so many tell: its 95 % interval by Clopper and Pearson
    /// (1934).
    pub share_ci95: (f64, f64),
    /// The most that chance alone gives.
    pub alpha: f64,
}

/// The records of what has a profile in the report.
pub(super) fn records(kept: &Kept, jobs: &[JobReport]) -> Vec<GateRecord> {
    let runs = jobs.iter().flat_map(|job| &job.runs);
    let published = runs.filter(|run| run.outcome == RunOutcome::Published);
    let shown: BTreeSet<(&str, &str)> = published
        .map(|run| (run.model.as_str(), run.device.as_str()))
        .collect();
    let mut records: BTreeMap<(String, String), GateRecord> = BTreeMap::new();
    for run in kept.runs.values().filter(|run| run.state == RunState::Done) {
        let verdict = run.verdict.as_ref();
        let repeat = verdict.and_then(|one| Some((one, one.repeat_alarmed?)));
        let (Some((verdict, alarmed)), Some(device)) = (repeat, run.phone.clone()) else {
            continue;
        };
        let job = kept.jobs.get(&run.job);
        let Some(model) = job.and_then(|job| job.spec.models.get(run.model)) else {
            continue;
        };
        let model = model.name.clone();
        if !shown.contains(&(model.as_str(), device.as_str())) {
            continue;
        }
        let record = records.entry((model.clone(), device.clone()));
        let record = record.or_insert_with(|| GateRecord {
            model,
            device,
            repeats: 0,
            alarms: 0,
            share_ci95: (0.0, 1.0),
            alpha: 0.0,
        });
        record.repeats += 1;
        record.alarms += usize::from(alarmed);
        record.share_ci95 = share_ci95(record.alarms, record.repeats);
        record.alpha = record.alpha.max(verdict.alpha);
    }
    records.into_values().collect()
}

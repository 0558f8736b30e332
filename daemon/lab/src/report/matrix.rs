//! Models by devices: the time of the whole model where there is a profile, and what came of the run where there is none.

use std::collections::{BTreeMap, BTreeSet};

use layerlab_profiles::SignedNanos;

use super::{Publication, Report, RunOutcome, RunReport, WholeModel};
use crate::job::RunKind;

/// A table with a row for each model and a column for each device.
pub(super) struct Matrix<'a> {
    /// What the devices are called.
    pub(super) devices: Vec<String>,
    /// A model's name and what there is on each device, if anything was asked for.
    pub(super) models: Vec<(&'a str, Vec<Option<Field<'a>>>)>,
}

/// What came of a model on a device.
pub(super) struct Field<'a> {
    pub(super) run: &'a RunReport,
    /// The whole model on each processor that can run it: its time, and by how many per cent it changed.
    pub(super) times: Vec<Time<'a>>,
}

/// The time of the whole model on a processor.
#[derive(Debug, PartialEq)]
pub(super) struct Time<'a> {
    pub(super) processor: &'a str,
    pub(super) time: SignedNanos,
    /// Against the last profile from before the report, if there is one.
    pub(super) change_percent: Option<f64>,
}

impl<'a> Matrix<'a> {
    /// Nothing where it would say no more than the list of runs does.
    pub(super) fn of(report: &'a Report) -> Option<Matrix<'a>> {
        let runs = || {
            let of_profiles = report
                .runs()
                .filter(|(job, _)| job.kind == RunKind::Profile);
            of_profiles.map(|(_, run)| run)
        };
        let devices: BTreeSet<String> = runs().map(|run| report.device_of(run)).collect();
        let mut fields: BTreeMap<(&str, String), &RunReport> = BTreeMap::new();
        for run in runs() {
            let key = (run.model.as_str(), report.device_of(run));
            let known = fields.entry(key).or_insert(run);
            if rank(run) > rank(known) {
                *known = run;
            }
        }
        let models: BTreeSet<&str> = runs().map(|run| run.model.as_str()).collect();
        let field = |model, device: &String| {
            let run = fields.get(&(model, device.clone()))?;
            let times = run.published.as_ref().map_or_else(Vec::new, times);
            Some(Field { run, times })
        };
        let models: Vec<_> = (models.into_iter())
            .map(|model| (model, devices.iter().map(|one| field(model, one)).collect()))
            .collect();
        (!models.is_empty()).then(|| Matrix {
            devices: devices.into_iter().collect(),
            models,
        })
    }
}

/// The newest profile goes first, then what will come, then what will not.
fn rank(run: &RunReport) -> (u8, Option<jiff::Timestamp>) {
    let rank = match run.outcome {
        RunOutcome::Published => 3,
        RunOutcome::Running => 2,
        RunOutcome::Parked | RunOutcome::Waiting => 1,
        RunOutcome::Failed | RunOutcome::Expired | RunOutcome::Cancelled => 0,
    };
    (rank, run.ended)
}

fn times(published: &Publication) -> Vec<Time<'_>> {
    let before = published.before.as_ref();
    let of = |whole: &WholeModel| {
        let earlier = before?.whole_model.iter();
        let earlier = earlier.filter(|one| one.processor == whole.processor);
        let earlier = earlier.filter_map(|one| one.time_ns).next()?.as_nanos();
        let now = whole.time_ns?.as_nanos();
        (earlier > 0).then(|| 100.0 * (now - earlier) as f64 / earlier as f64)
    };
    let times = published.whole_model.iter().filter_map(|whole| {
        Some(Time {
            processor: &whole.processor,
            time: whole.time_ns?,
            change_percent: of(whole),
        })
    });
    times.collect()
}

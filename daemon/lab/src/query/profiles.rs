//! The profiles that the lab has published, by model and device.

use std::cmp::Reverse;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Serialize;

use crate::record::{JobId, Kept, Run, RunNumber, RunState};

/// A profile that the lab has published.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IndexedProfile {
    /// The model's name.
    pub model: String,
    /// What the lab calls the device.
    pub device: String,
    /// Whether the device is simulated.
    pub simulated: bool,
    /// The run that gave it.
    pub run: RunNumber,
    /// The job that asked for it.
    pub job: JobId,
    /// When it was published.
    pub published: Timestamp,
    /// The folder that it was published in.
    pub folder: PathBuf,
}

/// The profiles of a model, if one is named, on a device, if one is named: by its name, its serial or its address. The newest of each
/// model on each device comes first.
pub fn indexed_profiles(
    kept: &Kept,
    model: Option<&str>,
    device: Option<&str>,
) -> Vec<IndexedProfile> {
    let runs = kept.runs.values();
    let done = runs.filter(|run| run.state == RunState::Done);
    let mut profiles: Vec<IndexedProfile> = done.filter_map(|run| indexed(kept, run)).collect();
    let is_meant = |profile: &IndexedProfile| {
        let known = kept.devices.get(&profile.device);
        let same = |wanted: &str| {
            wanted == profile.device || known.is_some_and(|device| device.is_called(wanted))
        };
        model.is_none_or(|model| model == profile.model) && device.is_none_or(same)
    };
    profiles.retain(is_meant);
    profiles.sort_by(|a, b| {
        let newest =
            (Reverse(a.published), Reverse(a.run)).cmp(&(Reverse(b.published), Reverse(b.run)));
        (&a.model, &a.device)
            .cmp(&(&b.model, &b.device))
            .then(newest)
    });
    profiles
}

/// Leaves of profiles in that order the newest of each model on each device.
pub fn newest_of_each(profiles: &mut Vec<IndexedProfile>) {
    profiles.dedup_by(|next, first| (&next.model, &next.device) == (&first.model, &first.device));
}

fn indexed(kept: &Kept, run: &Run) -> Option<IndexedProfile> {
    let job = kept.jobs.get(&run.job)?;
    let device = run.phone.clone()?;
    Some(IndexedProfile {
        model: job.spec.models.get(run.model)?.name.clone(),
        simulated: kept.devices.get(&device).is_some_and(|it| it.simulated),
        device,
        run: run.number,
        job: run.job,
        published: run.ended?,
        folder: run.profile.clone()?,
    })
}

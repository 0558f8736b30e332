//! How the lab fared in a stretch of time: what was asked for, what came of it, and why the rest is missing.

mod absent;
mod cell;
mod device;
mod files;
mod gate_record;
mod headline;
mod history;
mod html;
mod job;
mod link;
mod matrix;
mod sections;
mod text;
mod video;

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::Timestamp;
use layerlab_profiles::SignedNanos;
use layerlab_profiles::document::ProfileDigest;
use serde::{Deserialize, Serialize};

use super::device::label;
use super::job::RunKind;
use super::record::{Event, Job, JobId, JobState, Kept, Run, RunNumber, Spent, Verdict, What};
use history::History;

pub use cell::Cell;
pub use gate_record::GateRecord;
pub use headline::Counts;
pub use link::{LinkPublication, MeasuredDirection};
pub use sections::Section;
pub use video::VideoPublication;

/// How the lab fared from one moment to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The beginning of the period that the report is about.
    pub since: Timestamp,
    /// The end of that period.
    pub until: Timestamp,
    /// All in one sentence.
    pub headline: String,
    /// What became of all runs.
    pub counts: Counts,
    /// What went wrong with the lab itself.
    pub troubles: Vec<Trouble>,
    /// Every job that was open, came or ended then.
    pub jobs: Vec<JobReport>,
    /// Every device that had work, or that something happened to.
    pub devices: Vec<DeviceReport>,
    /// How often the gate gave an alarm between repeats, for each model and device of which there is a profile.
    pub gate: Vec<GateRecord>,
    /// Devices that were left alone.
    pub quarantined: Vec<Quarantined>,
    /// Devices that engineers took.
    pub reservations: Vec<Reserved>,
}

/// Something that went wrong with the lab itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trouble {
    /// When it went wrong.
    pub at: Timestamp,
    /// What, and what the lab did about it.
    pub reason: String,
}

/// A job and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    /// The number by which commands name the job.
    pub id: JobId,
    /// What users call it.
    pub name: String,
    /// What each of its runs gives.
    #[serde(default)]
    pub kind: RunKind,
    /// What became of it.
    pub state: JobState,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// The recurring job of which it is an occurrence.
    pub occurrence_of: Option<JobId>,
    /// What became of its runs.
    pub counts: Counts,
    /// Its runs, but for those that ended before.
    pub runs: Vec<RunReport>,
}

/// A run and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run's number, unique in the whole lab.
    pub number: RunNumber,
    /// The model's name, or that of the link.
    pub model: String,
    /// The device that has or had it; until then, the devices that it is for.
    pub device: String,
    /// Counts the repeats of the same model and selector, from 1.
    pub repeat: u32,
    /// What became of it.
    pub outcome: RunOutcome,
    /// Why nothing is published, unless it is.
    pub absent: Option<Absent>,
    /// How often it was begun.
    pub attempts: u32,
    /// Attempts that failed and were followed by another.
    pub retried: Vec<FailedAttempt>,
    /// Why blocks were measured again.
    pub rejected: Vec<Counted>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Where its time went.
    pub spent: Spent,
    /// The profile, if there is one.
    pub published: Option<Publication>,
    /// The measurement of frames, if there is one.
    #[serde(default)]
    pub video: Option<VideoPublication>,
    /// The measurement of a link, if there is one.
    #[serde(default)]
    pub link: Option<LinkPublication>,
}

/// What became of a run, as far as a report goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunOutcome {
    /// What it was to give is published.
    Published,
    /// It was given up.
    Failed,
    /// Its job's deadline came first.
    Expired,
    /// A user ended it.
    Cancelled,
    /// It is on a device.
    Running,
    /// It was left between two blocks.
    Parked,
    /// It waits for a device.
    Waiting,
}

/// Why nothing is published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Absent {
    /// Why, for a person.
    pub reason: String,
    /// Until when that will be so, if that is known.
    pub until: Option<Timestamp>,
}

/// A published profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Publication {
    /// The folder that it was published in.
    pub profile: PathBuf,
    /// What is doubtful about it.
    pub findings: Vec<String>,
    /// Whether it is worse than the last good one, if there is one.
    pub verdict: Option<Verdict>,
    /// Whether its device was simulated, if its folder was looked into and says so.
    pub simulated: Option<bool>,
    /// Whether one of its processors was emulated, likewise.
    pub emulated: Option<bool>,
    /// Whether its folder was looked for and is not there any more.
    pub gone: bool,
    /// Its digest, if its folder was looked into.
    pub digest: Option<ProfileDigest>,
    /// What the whole model takes on each processor, if its folder was looked into.
    pub whole_model: Vec<WholeModel>,
    /// The last profile of the same model on the same device from before the report.
    pub before: Option<Earlier>,
    /// Its picture, if it was looked for and is there.
    #[serde(skip)]
    pub plot: Option<Vec<u8>>,
}

/// What the whole model takes with all its layers on one processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeModel {
    /// The processor's name.
    pub processor: String,
    /// Its time by the profile's time model; nothing if it cannot run every layer.
    pub time_ns: Option<SignedNanos>,
}

/// A profile from before the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Earlier {
    /// The folder that it was published in.
    pub profile: PathBuf,
    /// When its run ended.
    pub ended: Timestamp,
    /// What the whole model took on each processor, if its folder was looked into and is there.
    pub whole_model: Vec<WholeModel>,
}

/// An attempt that failed and was followed by another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// When the attempt failed.
    pub at: Timestamp,
    /// The device that it was on, if that is known.
    pub device: Option<String>,
    /// What went wrong, for a person.
    pub reason: String,
}

/// Something that happened more than once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Why it happened.
    pub reason: String,
    /// How many times it happened.
    pub count: usize,
}

/// A device and what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// What the lab calls it.
    pub name: String,
    /// What it is, for a person.
    pub description: String,
    /// Whether anything says that it is simulated.
    pub simulated: bool,
    /// Whether a profile of it says that one of its processors was emulated.
    pub emulated: bool,
    /// How many runs it had.
    pub runs: usize,
    /// How many of them are published.
    pub published: usize,
    /// How many attempts failed on it.
    pub failed_attempts: usize,
    /// Where the time of its runs went, also that before the report begins.
    pub spent: Spent,
    /// How much of the time on its runs it worked on orders.
    pub busy_percent: Option<f64>,
    /// The longest it had nothing to do between two runs.
    pub longest_idle: Option<Stretch>,
    /// Why it was not ready.
    pub not_ready: Vec<Counted>,
    /// Since when it is away, if it is.
    pub gone_since: Option<Timestamp>,
}

/// From one moment to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// When it began.
    pub from: Timestamp,
    /// When it ended.
    pub until: Timestamp,
}

/// A device that was left alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quarantined {
    /// What the lab calls the device.
    pub device: String,
    /// When the quarantine began.
    pub at: Timestamp,
    /// When the quarantine ends, or ended.
    pub until: Timestamp,
    /// Why the device was left alone, for a person.
    pub reason: String,
}

/// A device that an engineer took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reserved {
    /// What the lab calls the device.
    pub device: String,
    /// When the device was taken from the lab.
    pub from: Timestamp,
    /// When the lab has it back, unless it was lifted before.
    pub until: Timestamp,
    /// For whom or what.
    pub note: String,
    /// When it was given back before its end.
    pub lifted: Option<Timestamp>,
}

impl Report {
    /// What `kept` and `events` say about the time from `since` to `until`.
    ///
    /// Older events may be among them: a device that was left alone then may still be. What became of runs is taken
    /// from `kept`, which knows no past: what ended after `until` is said to have been unfinished then.
    pub fn of(kept: &Kept, events: &[Event], since: Timestamp, until: Timestamp) -> Report {
        let history = History::of(events, since, until);
        let jobs = job::reports(kept, &history);
        let counts = jobs.iter().map(|job| job.counts).sum();
        let findings = (jobs.iter().flat_map(|job| &job.runs))
            .filter(|run| !run.findings().is_empty())
            .count();
        let with_runs = jobs.iter().filter(|job| job.counts.runs > 0);
        let kinds = with_runs.map(|job| job.kind).collect();
        let worse = (jobs.iter().flat_map(|job| &job.runs))
            .filter(|run| run.worse().is_some())
            .count();
        Report {
            since,
            until,
            headline: headline::sentence(&counts, &kinds, findings, worse),
            counts,
            troubles: troubles(&history),
            devices: device::reports(kept, &history),
            gate: gate_record::records(kept, &jobs),
            quarantined: history.quarantines().collect(),
            reservations: device::reservations(kept, &history),
            jobs,
        }
    }

    /// All runs, with their jobs.
    pub fn runs(&self) -> impl Iterator<Item = (&JobReport, &RunReport)> {
        let jobs = self.jobs.iter();
        jobs.flat_map(|job| job.runs.iter().map(move |run| (job, run)))
    }

    /// What to call a device: one that is simulated or emulated says so.
    pub fn device(&self, name: &str) -> String {
        let is = |mark: fn(&DeviceReport) -> bool| self.is_any(name, mark);
        label(name, is(|one| one.simulated), is(|one| one.emulated))
    }

    /// What to call a run's device, of which what it gave may know that it is simulated or emulated.
    fn device_of(&self, run: &RunReport) -> String {
        let is = |mark: fn(&DeviceReport) -> bool| self.is_any(&run.device, mark);
        label(
            &run.device,
            run.says_simulated() || is(|one| one.simulated),
            run.says_emulated() || is(|one| one.emulated),
        )
    }

    /// Whether a device of this name bears the mark.
    fn is_any(&self, name: &str, mark: fn(&DeviceReport) -> bool) -> bool {
        let mut devices = self.devices.iter();
        devices.any(|device| device.name == name && mark(device))
    }
}

impl RunReport {
    /// The verdict on its profile, if that is worse than the last good one.
    fn worse(&self) -> Option<&Verdict> {
        let verdict = self.published.as_ref()?.verdict.as_ref()?;
        verdict.is_worse().then_some(verdict)
    }

    /// What is doubtful about what it gave.
    fn findings(&self) -> &[String] {
        let profile = self.published.as_ref().map(|it| it.findings.as_slice());
        let video = self.video.as_ref().map(|it| it.findings.as_slice());
        let link = self.link.as_ref().map(|it| it.findings.as_slice());
        profile.or(video).or(link).unwrap_or_default()
    }

    /// Whether what it gave says that its device was simulated.
    fn says_simulated(&self) -> bool {
        let profile = self.published.as_ref().and_then(|it| it.simulated);
        let video = self.video.as_ref().and_then(|it| it.simulated);
        profile.or(video) == Some(true)
    }

    /// Whether what it gave says that a processor was emulated.
    fn says_emulated(&self) -> bool {
        let profile = self.published.as_ref().and_then(|it| it.emulated);
        let video = self.video.as_ref().and_then(|it| it.emulated);
        profile.or(video) == Some(true)
    }
}

/// What the lab says went wrong, and its own ends that nobody asked for.
fn troubles(history: &History) -> Vec<Trouble> {
    // The hosts that have a daemon; the one without a name is that of a lab that has one host.
    let mut running = BTreeSet::new();
    let mut troubles = Vec::new();
    for event in history.all() {
        let reason = match &event.what {
            What::Trouble { reason } => Some(reason.clone()),
            What::DaemonStarted { host } => {
                let is_unasked = !running.insert(host.as_ref());
                is_unasked.then(|| {
                    let of_host = host.as_ref().map(|host| format!(" of host `{host}`"));
                    format!(
                        "the daemon{} began anew without having been told to end; it went on where it was",
                        of_host.unwrap_or_default()
                    )
                })
            }
            What::DaemonStopped { host } => {
                running.remove(&host.as_ref());
                None
            }
            _ => None,
        };
        if let Some(reason) = reason.filter(|_| history.covers(event.at)) {
            let at = event.at;
            troubles.push(Trouble { at, reason });
        }
    }
    troubles
}

/// The reasons by how often each was given, the most frequent first.
fn counted<'a>(reasons: impl Iterator<Item = &'a str>) -> Vec<Counted> {
    let mut counts: Vec<Counted> = Vec::new();
    for reason in reasons {
        match counts.iter_mut().find(|known| known.reason == reason) {
            Some(known) => known.count += 1,
            None => counts.push(Counted {
                reason: reason.to_owned(),
                count: 1,
            }),
        }
    }
    counts.sort_by_key(|counted| std::cmp::Reverse(counted.count));
    counts
}

/// The device that has or had the run, else those that it is for.
fn device_of(job: &Job, run: &Run) -> String {
    let one = run.phone.clone().or_else(|| run.only.clone());
    let any = || job.spec.devices.get(run.selector).map(ToString::to_string);
    one.or_else(any).unwrap_or_else(|| "any device".to_owned())
}

#[cfg(test)]
mod tests;

//! What the lab knows and how it changes. Only the dispatcher changes it; what must outlive the daemon is noted as it
//! changes, to be kept in the store.

mod agenda;
mod archive;
mod carried;
mod chosen_hosts;
mod commands;
mod devices;
mod hosts;
mod impossible;
mod journals;
mod lab_quarantine;
mod lacking;
mod publications;
mod quarantine;
mod queue;
mod reservations;
mod runs;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::config::Config;
use super::record::{
    Device, DeviceQuarantine, Event, Job, JobId, JobState, Kept, RecordChange, Reservation, Run,
    RunNumber, What,
};
use super::talk::{DaemonCounts, DeviceReadings};
use super::window::{Window, WindowState};

use agenda::JobAgenda;
pub use archive::ArchiveLookup;
pub(crate) use hosts::LOOK;
use hosts::OtherHosts;
pub(super) use impossible::AskedOfDevices;
pub use journals::OldJournals;
use lacking::Lacking;
pub use publications::PublicationOutcome;
pub use quarantine::{Decider, LeftAlone, QuarantineChange};
use queue::RunQueue;
pub(super) use queue::{Lane, LaneKey, LaneTarget, MeantDevices, QueuedJob};
pub use runs::StayOutcome;

/// How long a device rests that was not ready in time.
const REST: Duration = Duration::from_secs(600);

/// How the lab deals with what goes wrong.
#[derive(Clone, Debug)]
pub struct Rules {
    /// When jobs run that do not say so themselves.
    pub window: Window,
    /// How often a run is begun before it is given up.
    pub attempts: u32,
    /// A run that was parked on a device that is gone for longer begins anew on another.
    pub patience: Duration,
    /// How long a device rests that was not ready in time, or throttled.
    pub rest: Duration,
    /// How long a device is left alone that failed a run.
    pub quarantine: Duration,
    /// How long the journals of runs are kept that are over.
    pub keep_journals: Duration,
    /// The names of the pools that the configuration has.
    pub pools: BTreeSet<String>,
}

impl Rules {
    /// What the configuration says.
    pub fn of(config: &Config) -> Rules {
        Rules {
            window: config.lab.window.clone(),
            attempts: config.attempts.per_run,
            patience: config.phones.patience,
            rest: REST,
            quarantine: config.attempts.quarantine,
            keep_journals: config.lab.keep_journals,
            pools: config.phones.pools.keys().cloned().collect(),
        }
    }
}

/// What the lab knows now.
#[derive(Debug)]
pub struct LabState {
    /// What is kept in the store.
    pub kept: Kept,
    /// The devices that are there, or were since the daemon began.
    pub places: BTreeMap<String, Place>,
    /// How to deal with what goes wrong.
    pub rules: Rules,
    /// What happened since the daemon began.
    pub counts: DaemonCounts,
    /// The other hosts of the lab.
    pub(super) hosts: OtherHosts,
    /// What this host lacks for the runs of jobs.
    lacking: Lacking,
    /// The runs that wait for a device.
    pub(super) queue: RunQueue,
    /// The jobs with which time does something.
    pub(super) agenda: JobAgenda,
    /// All runs that are here, by their jobs.
    runs_by_job: BTreeSet<(JobId, RunNumber)>,
    /// Runs that lack nothing but publication, and when that is tried again.
    pub(super) unpublished: BTreeMap<RunNumber, Timestamp>,
    /// Those among them that ended otherwise.
    unwanted_publications: Vec<RunNumber>,
    /// Who is left alone, by what it is called.
    left_alone: BTreeMap<String, LeftAlone>,
    /// Whom all hosts of the lab leave alone, by their serials, where there can be several.
    lab_quarantine: BTreeMap<String, DeviceQuarantine>,
    quarantine_changes: Vec<QuarantineChange>,
    /// How many runs of a job are on devices.
    pub(super) running: BTreeMap<JobId, u32>,
    /// When it is looked again for journals that are kept no longer.
    next_removal: Timestamp,
    /// Journals of runs that were over by then are removed as well, because a user wants it.
    prune_before: Option<Timestamp>,
    /// Jobs that may have to be forgotten once the store has all of them.
    over: BTreeSet<JobId>,
    changes: Vec<RecordChange>,
}

/// A device, and what it is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Whether it can be reached.
    pub is_there: bool,
    /// Since when it can be reached, or cannot.
    pub since: Timestamp,
    /// What it is doing.
    pub work: Work,
    /// When what it is doing changed last, or what keeps it from that.
    pub changed: Timestamp,
    /// When the run on it came.
    pub begun: Timestamp,
    /// How long that run has waited until the device was ready, the wait in progress apart.
    pub waited: SignedDuration,
    /// Why the run on it does not begin yet.
    pub not_ready: Option<String>,
    /// How it was when it was last looked at.
    pub read: Option<DeviceReadings>,
    /// Samples and answers of the run on it, and how many there will be.
    pub progress: (u64, Option<u64>),
    /// When entries of that run's journal last came into the store.
    pub journal_kept_at: Option<Timestamp>,
    /// Whether a block of the run on it, or an answer, has ended since the run began here.
    pub has_ended_block: bool,
    /// How long such runs as the one on it took on it, in milliseconds; nothing if there were none.
    pub usual_wall_ms: Option<u64>,
}

/// What a device is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It has no run and may be given one.
    Free,
    /// It has this run, which is worked on or waits until the device is ready.
    Busy(RunNumber),
    /// A run that was told to leave it.
    Leaving(RunNumber),
}

impl Place {
    /// Whether the run on it may be told to leave. A run that was begun completes a block first, or it would pay for
    /// opening and loading again and again and never get on; unless the device cannot be measured anyway.
    pub(super) fn may_be_left(&self) -> bool {
        self.has_ended_block || self.not_ready.is_some()
    }
}

impl Work {
    /// The run on the device.
    pub fn run(self) -> Option<RunNumber> {
        match self {
            Work::Free => None,
            Work::Busy(run) | Work::Leaving(run) => Some(run),
        }
    }
}

impl LabState {
    /// What was kept, before any device is known to be there. Runs that were on a device when the daemon ended go on
    /// from what is known of them; where there can be other hosts, once [`LabState::take_up`] was called in a turn.
    pub fn new(kept: Kept, rules: Rules) -> LabState {
        let mut state = LabState {
            kept,
            places: BTreeMap::new(),
            rules,
            counts: DaemonCounts::default(),
            hosts: OtherHosts::default(),
            lacking: Lacking::default(),
            queue: RunQueue::default(),
            agenda: JobAgenda::default(),
            runs_by_job: BTreeSet::new(),
            unpublished: BTreeMap::new(),
            unwanted_publications: Vec::new(),
            left_alone: BTreeMap::new(),
            lab_quarantine: BTreeMap::new(),
            quarantine_changes: Vec::new(),
            running: BTreeMap::new(),
            next_removal: Timestamp::MIN,
            prune_before: None,
            over: BTreeSet::new(),
            changes: Vec::new(),
        };
        state.count_on();
        for job in state.kept.jobs.values() {
            state.agenda.take_in(job);
        }
        let numbers: Vec<RunNumber> = state.kept.runs.keys().copied().collect();
        for number in numbers {
            state.file(number);
        }
        if state.kept.host.is_none() {
            state.take_up();
        }
        state
    }

    /// New jobs, runs and occurrences come after those that are here and those that are not.
    fn count_on(&mut self) {
        let Kept {
            jobs,
            runs,
            last_job,
            last_run,
            last_occurrences,
            ..
        } = &mut self.kept;
        *last_job = jobs.keys().copied().fold(*last_job, JobId::max);
        *last_run = runs.keys().copied().fold(*last_run, RunNumber::max);
        for job in jobs.values() {
            if let Some(origin) = job.occurrence_of {
                note_occurrence(last_occurrences, origin, job.submitted);
            }
        }
    }

    /// What changed since this was asked last, to be kept.
    pub fn take_changes(&mut self) -> Vec<RecordChange> {
        std::mem::take(&mut self.changes)
    }

    /// The window of a job.
    pub(super) fn window<'a>(&'a self, job: &'a Job) -> &'a Window {
        job.spec.window.as_ref().unwrap_or(&self.rules.window)
    }

    /// The same for a person; where several hosts share the lab, with the one by whose clock it is meant.
    pub(super) fn window_in_words(&self, job: &Job) -> String {
        let window = self.window(job);
        match &self.kept.host {
            Some(host) if window.is_by_host() => {
                let zone = TimeZone::system();
                let zone = zone.iana_name().map(|name| format!(" ({name})"));
                format!(
                    "{window} by the clock of host `{host}`{}",
                    zone.unwrap_or_default()
                )
            }
            _ => window.to_string(),
        }
    }

    /// The reservation that holds for `device` at `now`.
    pub fn reservation(&self, device: &str, now: Timestamp) -> Option<&Reservation> {
        let mut all = self.kept.reservations.values();
        all.find(|one| one.device == device && one.from <= now && now < one.until)
    }

    /// Why a job is not worked on at `now`, if it is not.
    pub fn held_back(&self, job: &Job, now: Timestamp) -> Option<String> {
        if job.state == JobState::Paused {
            return Some("paused; `layerlab job resume` goes on".to_owned());
        }
        if job.spec.not_before.is_some_and(|from| now < from) {
            return Some("not before its time".to_owned());
        }
        if let Some(lacks) = self.lacks(job.id, now) {
            return Some(lacks.to_owned());
        }
        match self.window(job).state(now) {
            WindowState::Open { .. } => None,
            WindowState::Closed { .. } => {
                Some(format!("outside its window, {}", self.window_in_words(job)))
            }
        }
    }

    /// Keeps true what runs are found by, after one has changed.
    fn file(&mut self, number: RunNumber) {
        let run = &self.kept.runs[&number];
        let is_of_another = run.host.is_some() && run.host != self.kept.host;
        if (run.state.is_over() || is_of_another) && self.unpublished.remove(&number).is_some() {
            self.unwanted_publications.push(number);
        }
        self.runs_by_job.insert((run.job, number));
        if let Some(job) = self.kept.jobs.get(&run.job) {
            let is_for_this_host = self.is_for_this_host(&job.spec);
            self.queue.take_out(job, number);
            self.queue.take_in(job, run, is_for_this_host);
        }
    }

    /// The runs of a job, in order.
    fn runs_of_job(&self, job: JobId) -> impl Iterator<Item = &Run> {
        let of_job = (job, RunNumber::MIN)..=(job, RunNumber::MAX);
        let numbers = self.runs_by_job.range(of_job);
        numbers.filter_map(|(_, number)| self.kept.runs.get(number))
    }

    /// Puts a job's record in the place of what was known of it, and keeps true what it and its runs are found by.
    fn put_job(&mut self, job: Job) {
        let id = job.id;
        let runs: Vec<RunNumber> = self.runs_of_job(id).map(|run| run.number).collect();
        if let Some(before) = self.kept.jobs.get(&id) {
            self.agenda.take_out(before);
            for number in &runs {
                self.queue.take_out(before, *number);
            }
        }
        self.agenda.take_in(&job);
        self.kept.jobs.insert(id, job);
        for number in runs {
            self.file(number);
        }
    }

    fn set_run(&mut self, number: RunNumber, change: impl FnOnce(&mut Run)) {
        let Some(run) = self.kept.runs.get_mut(&number) else {
            return;
        };
        change(run);
        self.changes.push(RecordChange::Run(run.clone()));
        self.file(number);
    }

    fn set_job(&mut self, id: JobId, change: impl FnOnce(&mut Job)) {
        let Some(mut job) = self.kept.jobs.get(&id).cloned() else {
            return;
        };
        change(&mut job);
        self.changes.push(RecordChange::Job(job.clone()));
        self.put_job(job);
    }

    /// Notes an event.
    pub(super) fn tell(
        &mut self,
        now: Timestamp,
        job: Option<JobId>,
        run: Option<RunNumber>,
        device: Option<&str>,
        what: What,
    ) {
        self.kept.last_event += 1;
        self.changes.push(RecordChange::Event(Event {
            number: self.kept.last_event,
            at: now,
            job,
            run,
            device: device.map(str::to_owned),
            what,
        }));
    }

    /// Notes an event about a run.
    fn tell_of_run(&mut self, now: Timestamp, number: RunNumber, what: What) {
        let Some(run) = self.kept.runs.get(&number) else {
            return;
        };
        let (job, device) = (run.job, run.phone.clone());
        self.tell(now, Some(job), Some(number), device.as_deref(), what);
    }

    /// The job and the run of a number.
    pub fn run(&self, number: RunNumber) -> Option<(&Job, &Run)> {
        let run = self.kept.runs.get(&number)?;
        Some((self.kept.jobs.get(&run.job)?, run))
    }

    /// Whether `device` is one that the run may have.
    pub(super) fn suits(&self, job: &Job, run: &Run, device: &Device) -> bool {
        match &run.only {
            Some(only) => *only == device.name && (job.spec.takes_simulated() || !device.simulated),
            None => job.spec.means(&job.spec.devices[run.selector], device),
        }
    }
}

/// Notes when an occurrence was due, unless there was a later one.
fn note_occurrence(
    last_occurrences: &mut BTreeMap<JobId, Timestamp>,
    origin: JobId,
    due: Timestamp,
) {
    let last = last_occurrences.entry(origin).or_insert(due);
    *last = due.max(*last);
}

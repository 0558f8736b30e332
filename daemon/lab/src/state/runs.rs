//! Runs begin, wait, are left and end.

use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use layerlab_profiles::document::Rejected;
use layerlab_protocol::Rejection;

use super::publications::unpublished;
use super::{Decider, LabState, Work};
use crate::gates::Readings;
use crate::job::RunKind;
use crate::record::{Device, Job, JobId, JobState, Run, RunNumber, RunState, Spent, Verdict, What};
use crate::talk::DeviceReadings;

/// How a run left a device.
#[derive(Clone, Debug, PartialEq)]
pub enum StayOutcome {
    /// What it was to give is published: a profile, or what its job asks for in the place of one.
    Published {
        /// Its folder.
        folder: PathBuf,
        /// What is doubtful about it.
        findings: Vec<String>,
        /// Whether it is worse than the last good one, if there is one.
        verdict: Option<Verdict>,
    },
    /// It was told to leave, and did so between two blocks.
    Parked,
    /// The device was not ready in time, or throttles: it shall rest.
    NotReady {
        /// What kept the device from being ready, for a person.
        reason: String,
    },
    /// It is measured, and only not published yet: the device is not needed any more.
    Unpublished {
        /// What keeps it from being published, for a person.
        reason: String,
    },
    /// The device is in the host's quarantine.
    LeftAlone {
        /// Why, for a person.
        reason: String,
    },
    /// The device is gone, for longer than is waited for it. Another one may do, and this one when it is back.
    DeviceGone {
        /// How that was noticed.
        reason: String,
    },
    /// The device failed; another one may do.
    DeviceFailed {
        /// What failed, for a person.
        reason: String,
    },
    /// The device has lost the journal: what is known of the run is of no use.
    JournalLost {
        /// How that was noticed.
        reason: String,
    },
    /// It makes no sense to try again.
    Failed {
        /// Why another attempt would fail as well, for a person.
        reason: String,
    },
}

impl LabState {
    /// Puts a run on a device. What the device needs to know of it.
    pub fn begin(
        &mut self,
        number: RunNumber,
        device: &str,
        now: Timestamp,
    ) -> Option<(Job, Run, Device)> {
        let goes_on = {
            let run = self.kept.runs.get(&number)?;
            run.state == RunState::Parked && run.phone.as_deref() == Some(device)
        };
        let host = self.kept.host.clone();
        self.set_run(number, |run| {
            run.host = host;
            if !goes_on {
                run.attempt += 1;
                run.started = Some(now);
                run.spent = Spent::default();
            }
            run.state = RunState::Running;
            run.phone = Some(device.to_owned());
            run.reason = None;
            run.ended = None;
            run.stays_without_block += 1;
        });
        let place = self.places.get_mut(device)?;
        place.work = Work::Busy(number);
        (place.begun, place.changed) = (now, now);
        place.waited = SignedDuration::ZERO;
        place.not_ready = None;
        place.progress = (0, None);
        place.journal_kept_at = None;
        place.has_ended_block = false;
        place.usual_wall_ms = None;
        let run = self.kept.runs.get(&number)?.clone();
        *self.running.entry(run.job).or_default() += 1;
        let what = match goes_on {
            true => What::Continued,
            false => What::Started {
                attempt: run.attempt,
            },
        };
        self.tell_of_run(now, number, what);
        let job = self.kept.jobs.get(&run.job)?.clone();
        Some((job, run, self.kept.devices.get(device)?.clone()))
    }

    /// A run was told to leave its device, and why.
    pub fn leaving(&mut self, number: RunNumber, device: &str, reason: &str, now: Timestamp) {
        if let Some(place) = self.places.get_mut(device)
            && place.work != Work::Leaving(number)
        {
            place.work = Work::Leaving(number);
            place.changed = now;
        }
        if self.has_claim(number)
            && self
                .kept
                .runs
                .get(&number)
                .is_some_and(|run| !run.state.is_over())
        {
            self.set_run(number, |run| run.reason = Some(reason.to_owned()));
        }
    }

    /// The device of a run is not ready, or is.
    pub fn not_ready(&mut self, device: &str, reason: Option<String>, now: Timestamp) {
        let Some(place) = self.places.get_mut(device) else {
            return;
        };
        let is_new = place.not_ready.is_none();
        if place.not_ready.is_some() && reason.is_none() {
            place.waited += now.duration_since(place.changed);
        }
        if place.not_ready.is_some() != reason.is_some() {
            place.changed = now;
        }
        place.not_ready.clone_from(&reason);
        if let (Some(reason), Some(run), true) = (reason, place.work.run(), is_new)
            && self.has_claim(run)
        {
            self.tell_of_run(now, run, What::NotReady { reason });
        }
    }

    /// How the device is.
    pub fn read(&mut self, device: &str, readings: Readings, now: Timestamp) {
        if let Some(place) = self.places.get_mut(device) {
            place.read = Some(DeviceReadings { at: now, readings });
        }
    }

    /// How far a run is whose journal is in the store so far, and for how long the agent was at work since this was said last.
    pub fn progress(
        &mut self,
        device: &str,
        progress: (u64, Option<u64>),
        busy: Duration,
        now: Timestamp,
    ) {
        if let Some(place) = self.places.get_mut(device) {
            place.progress = progress;
            place.journal_kept_at = Some(now);
        }
        *self.counts.busy.entry(device.to_owned()).or_default() += busy;
    }

    /// A block of the run on `device`, or an answer, has ended; `rejection` says why the block does not count. Whether it
    /// is the first one since the run began there.
    pub fn block_ended(
        &mut self,
        device: &str,
        rejection: Option<&Rejection>,
        now: Timestamp,
    ) -> bool {
        let Some(place) = self.places.get_mut(device) else {
            return false;
        };
        let is_first = !std::mem::replace(&mut place.has_ended_block, true);
        let Some(run) = place.work.run() else {
            return false;
        };
        if !self.has_claim(run) {
            return false;
        }
        if let Some(rejection) = rejection {
            let why = Rejected::from(rejection).name().to_owned();
            *self.counts.rejected_blocks.entry(why).or_default() += 1;
            let reason = rejection.to_string();
            self.tell_of_run(now, run, What::BlockRejected { reason });
        }
        if is_first {
            self.set_run(run, |run| run.stays_without_block = 0);
        }
        is_first
    }

    /// The run on `device` has left it.
    pub fn left(&mut self, device: &str, outcome: StayOutcome, spent: Spent, now: Timestamp) {
        let Some(number) = self.places.get(device).and_then(|place| place.work.run()) else {
            return;
        };
        if let Some(place) = self.places.get_mut(device) {
            place.work = Work::Free;
            place.changed = now;
            place.not_ready = None;
        }
        let Some(run) = self.kept.runs.get(&number) else {
            return;
        };
        let (job, was_over) = (run.job, run.state.is_over());
        if let Some(running) = self.running.get_mut(&job) {
            *running = running.saturating_sub(1);
        }
        if !self.has_claim(number) {
            // Another host goes on with it: whatever came of it here is of no use.
            self.over.insert(job);
            return;
        }
        match outcome {
            StayOutcome::Published {
                folder,
                findings,
                verdict,
            } => self.publish(number, (folder, findings, verdict), spent, now),
            // Whatever came of it, nobody wants it any more.
            _ if was_over => self.set_run(number, |run| run.spent += spent),
            StayOutcome::Parked => self.park(number, spent, now),
            StayOutcome::NotReady { reason } => {
                self.leave_alone(device, &reason, self.rules.rest, Decider::Rest, now);
                self.park_because(number, reason, spent, now);
            }
            StayOutcome::LeftAlone { reason } => {
                // Otherwise it is known until when.
                if self.left_alone(device, now).is_none() {
                    self.leave_alone(device, &reason, self.rules.rest, Decider::Rest, now);
                }
                self.park_because(number, reason, spent, now);
            }
            StayOutcome::Unpublished { reason } => {
                self.hold_unpublished(number, now);
                self.park_because(number, unpublished(&reason), spent, now);
            }
            StayOutcome::DeviceGone { reason } => {
                // It cannot be used before it is back, and nothing is wrong with it then.
                self.fail_attempt(number, Some(device), reason, spent, now);
            }
            StayOutcome::DeviceFailed { reason } => {
                self.leave_alone(device, &reason, self.rules.quarantine, Decider::Daemon, now);
                self.fail_attempt(number, Some(device), reason, spent, now);
            }
            StayOutcome::JournalLost { reason } => {
                self.fail_attempt(number, None, reason, spent, now);
            }
            StayOutcome::Failed { reason } => {
                self.set_run(number, |run| run.spent += spent);
                self.give_up(number, reason, now);
            }
        }
        self.settle_job(job, number, now);
        // A job that ended while a run of it was here could not be forgotten.
        self.over.insert(job);
    }

    /// How long runs such as `number`, which is on `device`, took there.
    pub fn took(&mut self, device: &str, number: RunNumber, mut wall_ms: Vec<u64>) {
        let place = self.places.get_mut(device);
        if let Some(place) = place.filter(|place| place.work.run() == Some(number)) {
            wall_ms.sort_unstable();
            place.usual_wall_ms = wall_ms.get(wall_ms.len() / 2).copied();
        }
    }

    pub(super) fn publish(
        &mut self,
        number: RunNumber,
        (folder, findings, verdict): (PathBuf, Vec<String>, Option<Verdict>),
        spent: Spent,
        now: Timestamp,
    ) {
        let job = self.kept.runs.get(&number).map(|run| run.job);
        let job = job.and_then(|job| self.kept.jobs.get(&job));
        let kind = job.map_or(RunKind::Profile, |job| job.spec.kind());
        self.set_run(number, |run| {
            run.spent += spent;
            run.state = RunState::Done;
            run.ended = Some(now);
            run.reason = None;
            match kind {
                RunKind::Profile => run.profile = Some(folder.clone()),
                RunKind::Video => run.video = Some(folder.clone()),
                RunKind::Link => run.link = Some(folder.clone()),
            }
            run.verdict.clone_from(&verdict);
        });
        let what = match kind {
            RunKind::Profile => What::Published {
                profile: folder,
                findings,
            },
            RunKind::Video => What::VideoPublished { folder, findings },
            RunKind::Link => What::LinkPublished { folder, findings },
        };
        self.tell_of_run(now, number, what);
        if let Some(verdict) = verdict.filter(Verdict::is_worse) {
            let (than, numbers) = (verdict.against, verdict.worse);
            self.tell_of_run(now, number, What::Worse { than, numbers });
        }
    }

    fn park(&mut self, number: RunNumber, spent: Spent, now: Timestamp) {
        let mut reason = String::new();
        self.set_run(number, |run| {
            run.spent += spent;
            run.state = RunState::Parked;
            reason = run.reason.clone().unwrap_or_default();
        });
        self.tell_of_run(now, number, What::Parked { reason });
    }

    /// With entries of its own it goes on from them.
    pub(super) fn park_because(
        &mut self,
        number: RunNumber,
        reason: String,
        spent: Spent,
        now: Timestamp,
    ) {
        self.set_run(number, |run| {
            run.spent += spent;
            run.state = RunState::Parked;
            run.reason = Some(reason.clone());
        });
        self.tell_of_run(now, number, What::Parked { reason });
    }

    pub(super) fn fail_attempt(
        &mut self,
        number: RunNumber,
        device: Option<&str>,
        reason: String,
        spent: Spent,
        now: Timestamp,
    ) {
        let attempts = self.rules.attempts;
        let mut tried = 0;
        self.set_run(number, |run| {
            run.spent += spent;
            tried = run.attempt;
            if let Some(device) = device
                && !run.failed_on.iter().any(|failed| failed == device)
            {
                run.failed_on.push(device.to_owned());
            }
            run.state = RunState::Queued;
            run.host = None;
            run.reason = Some(reason.clone());
            run.stays_without_block = 0;
        });
        if tried >= attempts {
            let reason = format!("given up after {tried} attempts; the last one: {reason}");
            self.give_up(number, reason, now);
        } else {
            self.tell_of_run(now, number, What::AttemptFailed { reason });
        }
    }

    pub(super) fn give_up(&mut self, number: RunNumber, reason: String, now: Timestamp) {
        self.set_run(number, |run| {
            run.state = RunState::Failed;
            run.ended = Some(now);
            run.reason = Some(reason.clone());
        });
        self.tell_of_run(now, number, What::Failed { reason });
    }

    /// Ends a job whose runs are all over; `number` is one of them.
    pub(super) fn settle_job(&mut self, id: JobId, number: RunNumber, now: Timestamp) {
        let is_live = (self.kept.jobs.get(&id))
            .is_some_and(|job| matches!(job.state, JobState::Open | JobState::Paused));
        if !is_live || self.queue.has_runs_of(id) {
            return;
        }
        let (mut is_over, mut is_done) = (true, true);
        // The runs of a job were added together and have neighbouring numbers.
        let before = self.kept.runs.range(..number).rev();
        let after = self.kept.runs.range(number..);
        let is_of_job = |run: &&Run| run.job == id;
        let before = before.map(|(_, run)| run).take_while(is_of_job);
        let after = after.map(|(_, run)| run).take_while(is_of_job);
        for run in before.chain(after) {
            is_over &= run.state.is_over();
            is_done &= run.state == RunState::Done;
        }
        if is_over {
            let state = match is_done {
                true => JobState::Done,
                false => JobState::Failed,
            };
            self.end_job(id, state, now);
        }
    }
}

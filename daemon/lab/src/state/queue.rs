//! The runs that wait for a device, in lanes. The runs of a lane may go to the same devices at the same times, so that a decision
//! looks into those lanes alone that a free device is for, and there at the first run alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

use crate::job::Selector;
use crate::record::{Device, Job, JobId, JobState, Run, RunNumber, RunState};
use crate::window::Window;

/// The runs that wait for a device.
#[derive(Debug, Default)]
pub(in super::super) struct RunQueue {
    /// By their jobs, each with its lane. Those of paused jobs are in none.
    waiting: BTreeMap<(JobId, RunNumber), Option<Arc<LaneKey>>>,
    lanes: HashMap<Arc<LaneKey>, Lane>,
}

/// When runs may go to devices, and to which.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct LaneKey {
    pub(in super::super) not_before: Option<Timestamp>,
    /// None: the lab's.
    pub(in super::super) window: Option<Window>,
    pub(in super::super) is_for_this_host: bool,
    pub(in super::super) target: LaneTarget,
}

/// To which devices the runs of a lane may go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum LaneTarget {
    /// All that are meant.
    Meant(MeantDevices),
    /// It depends on where this run has been.
    OfRun(RunNumber),
}

/// Which devices a run is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum MeantDevices {
    /// The one with this name.
    Only { name: String, takes_simulated: bool },
    /// Any one of these.
    Any {
        selector: Selector,
        takes_simulated: bool,
    },
}

/// Runs in the order in which they are next.
#[derive(Debug, Default)]
pub(in super::super) struct Lane(BTreeSet<(QueuedJob, RunNumber)>);

/// A job by what decides when it is its turn, but for how many of its runs are on devices: the least is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct QueuedJob {
    pub(in super::super) priority: Reverse<i32>,
    /// No deadline is the farthest.
    pub(in super::super) deadline: Timestamp,
    pub(in super::super) id: JobId,
}

impl QueuedJob {
    pub(in super::super) fn of(job: &Job) -> QueuedJob {
        QueuedJob {
            priority: Reverse(job.spec.priority),
            deadline: job.spec.deadline.unwrap_or(Timestamp::MAX),
            id: job.id,
        }
    }
}

impl Lane {
    /// The job that is first.
    pub(in super::super) fn first(&self) -> Option<QueuedJob> {
        self.0.first().map(|(job, _)| *job)
    }

    /// The job that is next after `job`.
    pub(in super::super) fn after(&self, job: QueuedJob) -> Option<QueuedJob> {
        let later = self.0.range((job, RunNumber::MAX)..);
        later.map(|(job, _)| *job).find(|next| *next != job)
    }

    /// The first run of `job` with a higher number than `after`.
    pub(in super::super) fn run_of(&self, job: QueuedJob, after: RunNumber) -> Option<RunNumber> {
        let later = self.0.range((job, after.saturating_add(1))..);
        let next = later.map(|(of, run)| (*of == job).then_some(*run)).next();
        next.flatten()
    }
}

impl MeantDevices {
    pub(in super::super) fn of(job: &Job, run: &Run) -> MeantDevices {
        let takes_simulated = job.spec.takes_simulated();
        match &run.only {
            Some(name) => MeantDevices::Only {
                name: name.clone(),
                takes_simulated,
            },
            None => MeantDevices::Any {
                selector: job.spec.devices[run.selector].clone(),
                takes_simulated,
            },
        }
    }

    /// Whether `device` is one of them.
    pub(in super::super) fn has(&self, device: &Device) -> bool {
        let (is_meant, takes_simulated) = match self {
            MeantDevices::Only {
                name,
                takes_simulated,
            } => (*name == device.name, takes_simulated),
            MeantDevices::Any {
                selector,
                takes_simulated,
            } => (selector.matches(device), takes_simulated),
        };
        is_meant && (*takes_simulated || !device.simulated)
    }
}

impl RunQueue {
    pub(in super::super) fn lanes(&self) -> impl Iterator<Item = (&LaneKey, &Lane)> {
        self.lanes.iter().map(|(key, lane)| (&**key, lane))
    }

    /// The jobs with runs that wait, in order.
    pub(in super::super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        let mut next = self.waiting.keys().next().copied();
        std::iter::from_fn(move || {
            let (job, _) = next?;
            let mut later = self.waiting.range((job, RunNumber::MAX)..);
            next = later.next().map(|(key, _)| *key);
            Some(job)
        })
    }

    /// Those of `job`, in order.
    pub(in super::super) fn runs_of(&self, job: JobId) -> impl Iterator<Item = RunNumber> {
        let of_job = (job, RunNumber::MIN)..=(job, RunNumber::MAX);
        self.waiting.range(of_job).map(|((_, run), _)| *run)
    }

    pub(in super::super) fn has_runs_of(&self, job: JobId) -> bool {
        self.runs_of(job).next().is_some()
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = RunNumber> {
        self.waiting.keys().map(|(_, run)| *run)
    }

    /// Takes `run` out. Its job must be as it was when the run came in.
    pub(super) fn take_out(&mut self, job: &Job, run: RunNumber) {
        let Some(Some(key)) = self.waiting.remove(&(job.id, run)) else {
            return;
        };
        if let Some(lane) = self.lanes.get_mut(&key) {
            let was_there = lane.0.remove(&(QueuedJob::of(job), run));
            debug_assert!(was_there, "run {run} was queued as of another job");
            if lane.0.is_empty() {
                self.lanes.remove(&key);
            }
        }
    }

    /// Takes `run` in, if it waits.
    pub(super) fn take_in(&mut self, job: &Job, run: &Run, is_for_this_host: bool) {
        if !matches!(run.state, RunState::Queued | RunState::Parked) {
            return;
        }
        let lane = (job.state == JobState::Open).then(|| self.lane(job, run, is_for_this_host));
        self.waiting.insert((job.id, run.number), lane);
    }

    /// Puts `run` into its lane.
    fn lane(&mut self, job: &Job, run: &Run, is_for_this_host: bool) -> Arc<LaneKey> {
        let is_particular =
            run.state == RunState::Parked || !run.failed_on.is_empty() || run.host.is_some();
        let key = LaneKey {
            not_before: job.spec.not_before,
            window: job.spec.window.clone(),
            is_for_this_host,
            target: match is_particular {
                true => LaneTarget::OfRun(run.number),
                false => LaneTarget::Meant(MeantDevices::of(job, run)),
            },
        };
        let known = self.lanes.get_key_value(&key);
        let key = known.map_or_else(|| Arc::new(key), |(key, _)| Arc::clone(key));
        let lane = self.lanes.entry(Arc::clone(&key)).or_default();
        lane.0.insert((QueuedJob::of(job), run.number));
        key
    }
}

//! What the lab knows: jobs, their runs, phones, reservations and events, as they are kept in the store.

mod change;
mod host;
mod quarantine;
mod verdict;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::job::JobSpec;

pub use super::device::Device;
pub use change::RecordChange;
pub use host::{Host, LeaseState, bad_host_name};
pub use quarantine::DeviceQuarantine;
pub use verdict::Verdict;
pub(crate) use verdict::one;

/// The number of a job.
pub type JobId = i64;

/// The number of a run, in the whole lab.
pub type RunNumber = i64;

/// A job that was submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The number by which commands name the job.
    pub id: JobId,
    /// What it asks for.
    pub spec: JobSpec,
    /// What is asked for, apart from when: the same hash is the same work.
    pub content_sha256: String,
    /// When it was submitted; of one that recurs, when this occurrence was due.
    pub submitted: Timestamp,
    /// The recurring job of which it is an occurrence.
    pub occurrence_of: Option<JobId>,
    /// What became of it.
    pub state: JobState,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// It has runs that wait or are worked on.
    Open,
    /// It submits a job whenever it is due, and has no runs of its own.
    Recurring,
    /// Nothing of it is worked on until it is resumed.
    Paused,
    /// All that it asks for is published.
    Done,
    /// It is over, and at least one of its runs failed.
    Failed,
    /// A user ended it.
    Cancelled,
    /// Its deadline came first.
    Expired,
}

impl JobState {
    /// Whether nothing of the job will be worked on any more, unless it is tried again.
    pub fn is_over(self) -> bool {
        !matches!(
            self,
            JobState::Open | JobState::Recurring | JobState::Paused
        )
    }
}

/// One profile that a job asks for, or one measurement of frames or of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The run's number, unique in the whole lab.
    pub number: RunNumber,
    /// The number of the job that asks for it.
    pub job: JobId,
    /// The place of its model in the job's list; 0 if it measures a link.
    pub model: usize,
    /// The place of its selector in the job's list of devices.
    pub selector: usize,
    /// The one phone that it is for, if the job wants each.
    pub only: Option<String>,
    /// Counts the repeats of the same model and selector, from 1.
    pub repeat: u32,
    /// What became of it.
    pub state: RunState,
    /// The phone that has its journal, or had.
    pub phone: Option<String>,
    /// How often it was begun; a run that goes on after it was parked is the same attempt.
    pub attempt: u32,
    /// The host that has claimed it: no other one begins it. Nothing where there is one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Phones that failed it.
    pub failed_on: Vec<String>,
    /// When the attempt began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Why it is in this state, for a person.
    pub reason: Option<String>,
    /// Where its profile was published.
    pub profile: Option<PathBuf>,
    /// Where its measurement of frames was published, if its job asks for that in the place of a profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<PathBuf>,
    /// Where its measurement of a link was published, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<PathBuf>,
    /// Whether that is worse than the last good one of the same thing; nothing if there is none, or no profile.
    pub verdict: Option<Verdict>,
    /// Where its time went.
    pub spent: Spent,
    /// When its journals were removed from the store.
    pub journals_removed: Option<Timestamp>,
    /// How often it has been on a device since a block of it last ended, counting a stay in progress.
    pub stays_without_block: u32,
}

impl Run {
    /// A run that left its device this often in a row before a block of it had ended is starved.
    pub const STARVED_AFTER: u32 = 3;

    /// Whether the run was over before `before`, and its journals are still in the store.
    pub fn has_journals_from_before(&self, before: Timestamp) -> bool {
        self.state.is_over()
            && self.ended.is_some_and(|ended| ended <= before)
            && self.attempt > 0
            && self.journals_removed.is_none()
    }

    /// The folder of what it gave, whatever that is.
    pub fn published(&self) -> Option<&Path> {
        let others = self.video.as_deref().or(self.link.as_deref());
        self.profile.as_deref().or(others)
    }

    /// How the run is kept from getting on, if it left its device several times in a row before a block of it had ended.
    pub fn starved(&self) -> Option<String> {
        let in_progress = u32::from(self.state == RunState::Running);
        let left = self.stays_without_block.saturating_sub(in_progress);
        if self.state.is_over() || left < Run::STARVED_AFTER {
            return None;
        }
        let why = match &self.reason {
            Some(reason) => format!(", the last time because {reason}"),
            None => String::new(),
        };
        Some(format!(
            "starved: left its device {left} times before a block had ended{why}"
        ))
    }
}

/// What became of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It waits for a phone.
    #[default]
    Queued,
    /// It is on a phone.
    Running,
    /// It was left between two blocks, and goes on from there.
    Parked,
    /// Its profile is published, or its measurement of frames or of a link.
    Done,
    /// It was given up.
    Failed,
    /// A user ended it.
    Cancelled,
    /// Its job's deadline came first.
    Expired,
}

impl RunState {
    /// Whether nothing will change any more.
    pub fn is_over(self) -> bool {
        !matches!(
            self,
            RunState::Queued | RunState::Running | RunState::Parked
        )
    }
}

/// Where the time of a run on its phone went, in milliseconds of the host's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// On the phone, waiting until it was ready apart.
    pub wall_ms: u64,
    /// The agent had an order in progress and was neither loading nor cooling down.
    pub busy_ms: u64,
    /// The agent rested until the device was cool enough to measure a block again.
    pub cool_down_ms: u64,
    /// Waiting until the phone was ready.
    pub waiting_ms: u64,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.wall_ms += other.wall_ms;
        self.busy_ms += other.busy_ms;
        self.cool_down_ms += other.cool_down_ms;
        self.waiting_ms += other.waiting_ms;
    }
}

/// A phone that an engineer has taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// The reservation's number, unique in the whole lab.
    pub id: i64,
    /// The phone's name.
    pub device: String,
    /// When the device is taken from the lab.
    pub from: Timestamp,
    /// When the lab has the device back, unless it is released before.
    pub until: Timestamp,
    /// For whom or what.
    pub note: String,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts all events, from 1.
    pub number: i64,
    /// When it happened.
    pub at: Timestamp,
    /// The job that it is about.
    pub job: Option<JobId>,
    /// The run that it is about.
    pub run: Option<RunNumber>,
    /// The device that it is about.
    pub device: Option<String>,
    /// What happened, with its particulars.
    pub what: What,
}

/// The kinds of events, each with what one needs to know to tell it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum What {
    /// A daemon began.
    DaemonStarted {
        /// Of which host, where several may share the lab.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    /// A daemon was told to end, and did.
    DaemonStopped {
        /// Of which host, where several may share the lab.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    /// A job came.
    Submitted,
    /// A job is over.
    JobEnded {
        /// What became of the job.
        state: JobState,
    },
    /// A user paused a job.
    Paused,
    /// A user resumed a job.
    Resumed,
    /// A user had what failed of a job tried again.
    RetryAsked,
    /// A device can be used.
    DeviceCame,
    /// A device went away.
    DeviceGone,
    /// A device is left alone.
    Quarantined {
        /// Why the device is left alone, for a person.
        reason: String,
        /// When it may be used again.
        until: Timestamp,
    },
    /// A user had a device used again that was left alone.
    QuarantineLifted,
    /// A device was taken.
    Reserved {
        /// When the device is taken from the lab.
        from: Timestamp,
        /// When the lab has it back.
        until: Timestamp,
        /// For whom or what, as the user put it.
        note: String,
    },
    /// A reservation was given back before its end.
    ReservationLifted,
    /// An attempt began.
    Started {
        /// The attempt's number, from 1.
        attempt: u32,
    },
    /// A run goes on where it was parked.
    Continued,
    /// A device is not ready.
    NotReady {
        /// What keeps the device from being ready, for a person.
        reason: String,
    },
    /// A run was left between two blocks.
    Parked {
        /// Why the run was to leave, for a person.
        reason: String,
    },
    /// An attempt failed, and there will be another.
    AttemptFailed {
        /// What went wrong, for a person.
        reason: String,
    },
    /// A block was measured again.
    BlockRejected {
        /// Why the block does not count, for a person.
        reason: String,
    },
    /// The profile is there.
    Published {
        /// The folder of the published profile.
        profile: PathBuf,
        /// What is doubtful about it.
        findings: Vec<String>,
    },
    /// The measurement of frames is there.
    VideoPublished {
        /// Its folder.
        folder: PathBuf,
        /// What is doubtful about it.
        findings: Vec<String>,
    },
    /// The measurement of a link is there.
    LinkPublished {
        /// Its folder.
        folder: PathBuf,
        /// What is doubtful about it.
        findings: Vec<String>,
    },
    /// The profile that was just published is worse than the last good one, or than the baseline.
    Worse {
        /// The folder of the profile that it was compared with.
        than: PathBuf,
        /// What is worse, each in a few words.
        numbers: Vec<String>,
    },
    /// A run was given up.
    Failed {
        /// Why there will be no further attempt, for a person.
        reason: String,
    },
    /// Somebody with a token had the lab do something over the web.
    Asked {
        /// The name of the token.
        by: String,
        /// What the lab was asked to do, such as `cancel`.
        command: String,
    },
    /// Something of the lab itself went wrong, and what it does about it.
    Trouble {
        /// What went wrong, and what the lab does about it, for a person.
        reason: String,
    },
}

/// A job and all its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct JobWithRuns {
    /// The job.
    pub job: Job,
    /// Its runs, in the order of their numbers.
    pub runs: Vec<Run>,
}

/// What the store has, journals and events apart: all of it for whoever looks something up, and without the jobs that are
/// over for the daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Names this store: journals that another one left on phones are not this one's.
    pub lab: String,
    /// Jobs by their numbers.
    pub jobs: BTreeMap<JobId, Job>,
    /// The runs of those jobs.
    pub runs: BTreeMap<RunNumber, Run>,
    /// Every device ever seen.
    pub devices: BTreeMap<String, Device>,
    /// All reservations that are not over.
    pub reservations: BTreeMap<i64, Reservation>,
    /// The number of the last event.
    pub last_event: i64,
    /// The number of the last job, be it here or not.
    pub last_job: JobId,
    /// The number of the last run, be it here or not.
    pub last_run: RunNumber,
    /// When the last occurrence of a recurring job was due that is not here any more.
    pub last_occurrences: BTreeMap<JobId, Timestamp>,
    /// As which host the daemon has opened the store, where there can be several.
    #[serde(skip)]
    pub host: Option<String>,
}

//! What the commands ask the daemon, over a socket in the state folder: one JSON value per line, one request and one
//! answer per connection. What only needs to be looked up is read from the store.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::gates::Readings;
use super::job::{JobSpec, SymbolicSizes};
use super::record::{Device, JobId, JobState, RunNumber};
use layerlab_farm::quarantine::Entry;

/// What a command asks the daemon to do or to tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// A new job. Answered by [`Answer::Submitted`].
    Submit {
        /// What it asks for.
        spec: Box<JobSpec>,
        /// Even if the same was submitted before.
        again: bool,
        /// The sizes of symbolic dimensions, for each model.
        #[serde(default)]
        sizes: Vec<SymbolicSizes>,
    },
    /// Ends a job; what is published stays.
    Cancel {
        /// The number of the job to end.
        job: JobId,
    },
    /// Leaves a job alone until it is resumed.
    Pause {
        /// The number of the job to leave alone.
        job: JobId,
    },
    /// Goes on with a paused job.
    Resume {
        /// The number of the job to go on with.
        job: JobId,
    },
    /// Tries again what failed, expired or was cancelled of a job.
    Retry {
        /// The number of the job to try again.
        job: JobId,
    },
    /// Takes a device.
    Reserve {
        /// Its name or serial.
        device: String,
        /// When the reservation begins.
        from: Timestamp,
        /// When the reservation ends.
        until: Timestamp,
        /// For whom or what.
        note: String,
    },
    /// Gives back what was reserved of a device.
    Release {
        /// Its name or serial.
        device: String,
    },
    /// Leaves a phone alone for a while. Answered by [`Answer::Quarantine`].
    Quarantine {
        /// Its name or serial.
        phone: String,
        /// Why, for a person.
        reason: String,
        /// For how long.
        #[serde(with = "super::job::written_duration")]
        period: Duration,
    },
    /// Uses a phone again that is left alone.
    Lift {
        /// Its name or serial.
        phone: String,
    },
    /// Who is left alone now. Answered by [`Answer::Quarantine`].
    Quarantined,
    /// Removes the journals of runs that were over before, a few at a time.
    Prune {
        /// Runs that ended later keep theirs.
        before: Timestamp,
    },
    /// How the lab is now. Answered by [`Answer::Status`].
    Status,
}

impl Request {
    /// What it has the lab do, in the words of the commands; nothing if it only looks.
    pub fn command(&self) -> Option<&'static str> {
        match self {
            Request::Submit { .. } => Some("submit"),
            Request::Cancel { .. } => Some("cancel"),
            Request::Pause { .. } => Some("pause"),
            Request::Resume { .. } => Some("resume"),
            Request::Retry { .. } => Some("retry"),
            Request::Reserve { .. } => Some("reserve"),
            Request::Release { .. } => Some("release"),
            Request::Quarantine { .. } => Some("quarantine"),
            Request::Lift { .. } => Some("lift the quarantine"),
            Request::Prune { .. } => Some("prune"),
            Request::Quarantined | Request::Status => None,
        }
    }

    /// The job that it is about, if that is there already.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Request::Cancel { job }
            | Request::Pause { job }
            | Request::Resume { job }
            | Request::Retry { job } => Some(*job),
            _ => None,
        }
    }

    /// The device that it is about, as it was asked for.
    pub fn device(&self) -> Option<&str> {
        match self {
            Request::Reserve { device, .. } | Request::Release { device } => Some(device),
            Request::Quarantine { phone, .. } | Request::Lift { phone } => Some(phone),
            _ => None,
        }
    }
}

/// What the daemon says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// The job is in the store.
    Submitted {
        /// The number that the job was given.
        job: JobId,
        /// How many runs it has.
        runs: usize,
        /// What it asks for that it will not be given, or not by anything that the lab knows, each in a sentence with what to
        /// do.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// The same was submitted before, and this was not taken.
    Known {
        /// The number of the job from before.
        job: JobId,
        /// What became of it.
        state: JobState,
    },
    /// It is done, and in the store.
    Done,
    /// Who is left alone, why and until when.
    Quarantine {
        /// One for each of them.
        entries: Vec<Entry>,
    },
    /// How the lab is.
    Status(Box<Status>),
    /// It cannot be done.
    Refused {
        /// What kind of refusal it is, for programs.
        code: RefusalCode,
        /// Why, and what to do.
        message: String,
    },
}

impl Answer {
    /// The same, with what was noted before the job was submitted.
    #[must_use]
    pub fn with_notes(mut self, mut notes: Vec<String>) -> Answer {
        if let Answer::Submitted { warnings, .. } = &mut self {
            notes.append(warnings);
            *warnings = notes;
        }
        self
    }
}

/// The kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalCode {
    /// There is no such job.
    UnknownJob,
    /// The lab has never seen the device, or none that the job is for.
    UnknownDevice,
    /// The job chooses hosts, and the lab has but one, or none of those has a device that the job is for.
    UnknownHost,
    /// What is asked for does not go with the state of the job or of the device.
    WrongState,
    /// The period is over, or ends before it begins.
    WrongPeriod,
    /// The request is longer than any.
    TooLong,
    /// No request came in time.
    TooLate,
    /// It is no request that this daemon knows.
    NoRequest,
    /// The daemon is ending.
    Ending,
    /// The store cannot be read.
    StoreFailed,
    /// A file of the job is not what it was when the job was checked.
    FileChanged,
    /// A file of the job cannot be copied.
    NoCopy,
    /// The object store does not take a file of the job.
    NotShared,
    /// The profiles of the job could not be published where it wants them.
    NoPublication,
    /// It asks for more than a lab takes.
    TooMuch,
}

/// How the lab is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The host that says so, where several share the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What keeps the lab from working, such as a full disk.
    pub trouble: Option<String>,
    /// Every device that is there, reserved or has work waiting for it; those of other hosts of the lab, too.
    pub devices: Vec<DeviceStatus>,
    /// Why runs wait, those together that wait for the same.
    pub waiting: Vec<WaitingRuns>,
    /// What open jobs ask for that nothing known to the lab can give.
    #[serde(default)]
    pub impossible: Vec<(JobId, String)>,
    /// What happened since the daemon began.
    #[serde(default)]
    pub counts: DaemonCounts,
}

/// What a daemon has counted since it began. None of it ever becomes less.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonCounts {
    /// How often it was decided what is to be done next.
    pub decisions: u64,
    /// How long that took, all together.
    pub deciding: Duration,
    /// Blocks that do not count, by why, in the words of `blocks.csv`.
    pub rejected_blocks: BTreeMap<String, u64>,
    /// How long agents were at work, neither loading nor resting, by their devices' names.
    pub busy: BTreeMap<String, Duration>,
}

/// Runs of one job that wait for the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingRuns {
    /// The number of their job.
    pub job: JobId,
    /// The first of them.
    pub first: RunNumber,
    /// How many they are.
    pub runs: usize,
    /// What they wait for, for a person.
    pub reason: String,
}

/// What a device is doing, or what keeps it from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceState {
    /// It may be given a run.
    Free,
    /// It works on a run.
    Busy,
    /// It has a run, and is not ready for it yet.
    Waiting,
    /// Its run is leaving it.
    Parking,
    /// Somebody has taken it.
    Reserved,
    /// It is left alone for a while.
    Quarantined,
    /// It cannot be reached.
    Gone,
}

impl fmt::Display for DeviceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DeviceState::Free => "free",
            DeviceState::Busy => "busy",
            DeviceState::Waiting => "waiting",
            DeviceState::Parking => "parking",
            DeviceState::Reserved => "reserved",
            DeviceState::Quarantined => "quarantined",
            DeviceState::Gone => "gone",
        })
    }
}

/// How a device is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// The device, as the lab knows it.
    pub device: Device,
    /// The host that has it, or had it last, where several share the lab. Of another one's it is known what the store tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What it is doing, or what keeps it from that.
    pub state: DeviceState,
    /// When it came into that state.
    pub since: Timestamp,
    /// Why, for a person.
    pub reason: Option<String>,
    /// The run that it has.
    pub run: Option<RunNumber>,
    /// How many samples and answers of the run there are, and of how many if that is known.
    pub progress: Option<(u64, Option<u64>)>,
    /// When it will be free, as far as past runs tell.
    pub free_at: Option<Timestamp>,
    /// When entries of the run's journal last came into the store; nothing before the first.
    #[serde(default)]
    pub journal_kept_at: Option<Timestamp>,
    /// How it was when it was last looked at: before each run. Nothing if the daemon has not looked yet.
    #[serde(default)]
    pub read: Option<DeviceReadings>,
}

/// How a device was when it was looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceReadings {
    /// When it was looked at.
    pub at: Timestamp,
    /// What it told.
    #[serde(flatten)]
    pub readings: Readings,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_devices_are_the_same_words_for_people_and_in_json() {
        let states = [
            DeviceState::Free,
            DeviceState::Busy,
            DeviceState::Waiting,
            DeviceState::Parking,
            DeviceState::Reserved,
            DeviceState::Quarantined,
            DeviceState::Gone,
        ];
        for state in states {
            let json = serde_json::to_string(&state).expect("JSON");
            assert_eq!(json, format!("\"{state}\""));
        }
    }
}

//! The states of jobs and runs, in words.

use serde::{Deserialize, Serialize};

use crate::record::{JobState, RunState};

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum JobStateRow {
    Open,
    Recurring,
    Paused,
    Done,
    Failed,
    Cancelled,
    Expired,
}

impl From<JobState> for JobStateRow {
    fn from(state: JobState) -> JobStateRow {
        match state {
            JobState::Open => JobStateRow::Open,
            JobState::Recurring => JobStateRow::Recurring,
            JobState::Paused => JobStateRow::Paused,
            JobState::Done => JobStateRow::Done,
            JobState::Failed => JobStateRow::Failed,
            JobState::Cancelled => JobStateRow::Cancelled,
            JobState::Expired => JobStateRow::Expired,
        }
    }
}

impl From<JobStateRow> for JobState {
    fn from(row: JobStateRow) -> JobState {
        match row {
            JobStateRow::Open => JobState::Open,
            JobStateRow::Recurring => JobState::Recurring,
            JobStateRow::Paused => JobState::Paused,
            JobStateRow::Done => JobState::Done,
            JobStateRow::Failed => JobState::Failed,
            JobStateRow::Cancelled => JobState::Cancelled,
            JobStateRow::Expired => JobState::Expired,
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RunStateRow {
    Queued,
    Running,
    Parked,
    Done,
    Failed,
    Cancelled,
    Expired,
}

impl From<RunState> for RunStateRow {
    fn from(state: RunState) -> RunStateRow {
        match state {
            RunState::Queued => RunStateRow::Queued,
            RunState::Running => RunStateRow::Running,
            RunState::Parked => RunStateRow::Parked,
            RunState::Done => RunStateRow::Done,
            RunState::Failed => RunStateRow::Failed,
            RunState::Cancelled => RunStateRow::Cancelled,
            RunState::Expired => RunStateRow::Expired,
        }
    }
}

impl From<RunStateRow> for RunState {
    fn from(row: RunStateRow) -> RunState {
        match row {
            RunStateRow::Queued => RunState::Queued,
            RunStateRow::Running => RunState::Running,
            RunStateRow::Parked => RunState::Parked,
            RunStateRow::Done => RunState::Done,
            RunStateRow::Failed => RunState::Failed,
            RunStateRow::Cancelled => RunState::Cancelled,
            RunStateRow::Expired => RunState::Expired,
        }
    }
}

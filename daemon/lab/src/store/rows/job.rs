//! A job in the store.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::StoredRecord;
use super::job_spec::JobSpecRow;
use super::states::JobStateRow;
use crate::record::{Job, JobId};

#[derive(Serialize, Deserialize)]
pub(in crate::store) struct JobRow {
    id: JobId,
    spec: JobSpecRow,
    content_sha256: String,
    submitted: Timestamp,
    occurrence_of: Option<JobId>,
    state: JobStateRow,
}

impl StoredRecord for Job {
    const WHAT: &'static str = "a job";
    const VERSION: u32 = 6;
    type Row = JobRow;
}

impl From<Job> for JobRow {
    fn from(job: Job) -> JobRow {
        JobRow {
            id: job.id,
            spec: job.spec.into(),
            content_sha256: job.content_sha256,
            submitted: job.submitted,
            occurrence_of: job.occurrence_of,
            state: job.state.into(),
        }
    }
}

impl From<JobRow> for Job {
    fn from(row: JobRow) -> Job {
        Job {
            id: row.id,
            spec: row.spec.into(),
            content_sha256: row.content_sha256,
            submitted: row.submitted,
            occurrence_of: row.occurrence_of,
            state: row.state.into(),
        }
    }
}

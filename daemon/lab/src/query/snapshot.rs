//! All that a command elsewhere needs to know of the lab, in the lab's own terms, so that it renders what one here does.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::record::{Event, JobId, Kept};
use crate::store::{Reader, StoreError};
use crate::talk::Status;

/// Which jobs are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobsAsked {
    /// Those that are not over.
    Open,
    /// All that there ever were.
    All,
    /// One, with what happened to it.
    One(JobId),
}

/// The lab at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What its store holds; of jobs and runs those that were asked about.
    pub kept: Kept,
    /// How it is.
    pub status: Status,
    /// What happened since the one job that was asked about was submitted, in order.
    pub events: Vec<Event>,
}

impl Snapshot {
    /// What the store says, beside the `status` that the daemon tells.
    pub async fn of(
        reader: &Reader,
        status: Status,
        asked: JobsAsked,
    ) -> Result<Snapshot, StoreError> {
        let mut kept = match asked {
            JobsAsked::Open => reader.unfinished().await?,
            JobsAsked::All | JobsAsked::One(_) => reader.all().await?,
        };
        let mut events = Vec::new();
        if let JobsAsked::One(id) = asked {
            kept.jobs.retain(|job, _| *job == id);
            kept.runs.retain(|_, run| run.job == id);
            if let Some(job) = kept.jobs.get(&id) {
                // An occurrence is submitted when it was due, and so before its first event.
                events = reader.events(job.submitted, Timestamp::MAX).await?;
            }
            let of_run = |event: &Event| event.run.is_some_and(|run| kept.runs.contains_key(&run));
            events.retain(|event| event.job == Some(id) || of_run(event));
        }
        Ok(Snapshot {
            kept,
            status,
            events,
        })
    }
}

//! The jobs with which time does something: those that have a deadline, and those that recur.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::record::{Job, JobId, JobState};

/// The jobs that are not over and have a deadline, and those that recur.
#[derive(Debug, Default)]
pub(in super::super) struct JobAgenda {
    deadlines: BTreeSet<(Timestamp, JobId)>,
    recurring: BTreeSet<JobId>,
}

impl JobAgenda {
    pub(super) fn take_in(&mut self, job: &Job) {
        self.deadlines.extend(deadline(job));
        if job.state == JobState::Recurring {
            self.recurring.insert(job.id);
        }
    }

    /// Takes `job` out, which must be as it was when it came in.
    pub(super) fn take_out(&mut self, job: &Job) {
        if let Some(deadline) = deadline(job) {
            self.deadlines.remove(&deadline);
        }
        self.recurring.remove(&job.id);
    }

    /// The first deadline after `now`.
    pub(in super::super) fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let mut later = self.deadlines.range((now, JobId::MAX)..);
        later.next().map(|(deadline, _)| *deadline)
    }

    /// The jobs whose deadline is over at `now`, in the order of their numbers.
    pub(super) fn late(&self, now: Timestamp) -> BTreeSet<JobId> {
        let late = self.deadlines.range(..=(now, JobId::MAX));
        late.map(|(_, job)| *job).collect()
    }

    /// The jobs that recur, in order.
    pub(in super::super) fn recurring(&self) -> impl Iterator<Item = JobId> {
        self.recurring.iter().copied()
    }
}

fn deadline(job: &Job) -> Option<(Timestamp, JobId)> {
    let is_live = matches!(job.state, JobState::Open | JobState::Paused);
    let deadline = job.spec.deadline.filter(|_| is_live)?;
    Some((deadline, job.id))
}

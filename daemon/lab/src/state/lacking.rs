//! What this host lacks for the runs of jobs: files that it fetches, and what it cannot have now and other hosts may.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::LabState;
use crate::record::{JobId, What};

/// What is lacking, by the jobs that need it.
#[derive(Debug, Default)]
pub(in super::super) struct Lacking {
    /// What cannot be had, and until when it is not looked for again.
    missing: BTreeMap<JobId, (String, Timestamp)>,
    /// The jobs whose files are being fetched.
    fetching: BTreeSet<JobId>,
}

/// How long what is lacking is not looked for again.
const PAUSE: SignedDuration = SignedDuration::from_mins(1);

impl LabState {
    /// This host lacks `what` for the runs of a job: it leaves them to others for a while.
    pub fn lack(&mut self, job: JobId, what: String, now: Timestamp) {
        let until = now.checked_add(PAUSE).unwrap_or(Timestamp::MAX);
        let before = self.lacking.missing.insert(job, (what.clone(), until));
        if before.is_none() {
            self.tell(now, Some(job), None, None, What::Trouble { reason: what });
        }
    }

    /// The files of a job are being fetched: none of its runs begins here before that has ended.
    pub fn fetching(&mut self, job: JobId) {
        self.lacking.fetching.insert(job);
    }

    /// The files of a job are at hand, or why they are not.
    pub fn fetched(&mut self, job: JobId, outcome: Result<(), String>, now: Timestamp) {
        self.lacking.fetching.remove(&job);
        match outcome {
            Ok(()) => drop(self.lacking.missing.remove(&job)),
            Err(what) if self.kept.jobs.contains_key(&job) => self.lack(job, what, now),
            // It is over, and needs them no more.
            Err(_) => {}
        }
    }

    /// The job is over, and forgotten here.
    pub(super) fn forget_what_lacks(&mut self, job: JobId) {
        self.lacking.missing.remove(&job);
    }

    /// What this host lacks for the runs of a job at `now`.
    pub(in super::super) fn lacks(&self, job: JobId, now: Timestamp) -> Option<&str> {
        if self.lacking.fetching.contains(&job) {
            return Some("its files are being fetched");
        }
        let (what, until) = self.lacking.missing.get(&job)?;
        (now < *until).then_some(what)
    }

    /// The jobs for whose runs something is lacking, or was when it was last looked for.
    pub(in super::super) fn lacking_jobs(&self) -> impl Iterator<Item = JobId> {
        let Lacking { missing, fetching } = &self.lacking;
        missing.keys().chain(fetching).copied()
    }

    /// When that is looked for again.
    pub(in super::super) fn looked_for_again(&self, job: JobId) -> Option<Timestamp> {
        let (_, until) = self.lacking.missing.get(&job)?;
        Some(*until)
    }
}

//! Jobs that are over stay in the store alone. One that somebody asks about is brought back for as long as that takes.

use super::LabState;
use crate::record::{JobId, JobWithRuns, Run, RunNumber};
use crate::talk::Request;

/// What has to be found in the store before a request can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveLookup {
    /// The job of this number.
    Job(JobId),
    /// The last job that asks for this content and is done.
    Content(String),
}

impl LabState {
    /// What has to be found in the store before `request` can be answered, if it is about what is over.
    pub fn lookup_for(&self, request: &Request) -> Option<ArchiveLookup> {
        match request {
            Request::Submit {
                spec, again: false, ..
            } => Some(ArchiveLookup::Content(spec.content_sha256())),
            Request::Cancel { job }
            | Request::Pause { job }
            | Request::Resume { job }
            | Request::Retry { job } => {
                let is_here = self.kept.jobs.contains_key(job);
                (!is_here).then_some(ArchiveLookup::Job(*job))
            }
            Request::Submit { again: true, .. }
            | Request::Reserve { .. }
            | Request::Release { .. }
            | Request::Quarantine { .. }
            | Request::Lift { .. }
            | Request::Quarantined
            | Request::Prune { .. }
            | Request::Status => None,
        }
    }

    /// A job that was found in the store. One that is here already is newer than what was found.
    pub fn bring_back(&mut self, found: JobWithRuns) {
        let JobWithRuns { job, runs } = found;
        if self.kept.jobs.contains_key(&job.id) {
            return;
        }
        self.over.insert(job.id);
        self.put_job(job);
        for run in runs {
            let number = run.number;
            self.kept.runs.insert(number, run);
            self.file(number);
        }
    }

    /// The jobs that ended, or were brought back, since this was asked last.
    pub fn take_over(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.over).into_iter().collect()
    }

    /// Forgets those of `jobs` that are over, now that the store has all of them. What is still on a device stays until it
    /// has left.
    pub fn archive(&mut self, jobs: &[JobId]) {
        for id in jobs {
            let is_over = self
                .kept
                .jobs
                .get(id)
                .is_some_and(|job| job.state.is_over());
            if !is_over {
                continue;
            }
            let is_left = |number: RunNumber| {
                let mut places = self.places.values();
                places.all(|place| place.work.run() != Some(number))
            };
            let runs: Vec<&Run> = self.runs_of_job(*id).collect();
            let may_go = |run: &&Run| run.state.is_over() && is_left(run.number);
            if !runs.iter().all(may_go) {
                continue;
            }
            let numbers: Vec<RunNumber> = runs.iter().map(|run| run.number).collect();
            for number in numbers {
                self.kept.runs.remove(&number);
                self.runs_by_job.remove(&(*id, number));
            }
            self.kept.jobs.remove(id);
            self.running.remove(id);
            self.forget_what_lacks(*id);
        }
    }
}

#[cfg(test)]
mod tests;

//! One job, with all that is known of it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Page;

use crate::record::{Event, Job, JobId, Kept, Run, RunNumber};

/// A job, what became of its runs, and what happened.
#[derive(Clone, Debug, Serialize)]
pub struct ShownJob<'a> {
    /// The job itself.
    pub job: &'a Job,
    /// Its runs, in the order of their numbers.
    pub runs: Vec<&'a Run>,
    /// What happened to it and to its runs, in order.
    pub events: Vec<&'a Event>,
}

impl<'a> ShownJob<'a> {
    /// Only the runs of one page and what happened to them, beside what happened to the job as a whole.
    #[must_use]
    pub fn page(mut self, page: Page) -> ShownJob<'a> {
        self.runs = page.of(self.runs);
        let shown: BTreeSet<RunNumber> = self.runs.iter().map(|run| run.number).collect();
        let is_shown = |event: &&Event| event.run.is_none_or(|run| shown.contains(&run));
        self.events.retain(is_shown);
        self
    }

    /// `job`, with what is its own of `kept` and `events`.
    pub fn of(job: &'a Job, kept: &'a Kept, events: &'a [Event]) -> ShownJob<'a> {
        let runs: Vec<&Run> = own_runs(kept, job.id).collect();
        let numbers: BTreeSet<RunNumber> = runs.iter().map(|run| run.number).collect();
        let is_own = |event: &&Event| {
            let of_run = |number| numbers.contains(&number);
            event.job == Some(job.id) || event.run.is_some_and(of_run)
        };
        ShownJob {
            job,
            events: events.iter().filter(is_own).collect(),
            runs,
        }
    }
}

/// Why runs of the job that are over gave nothing, each reason once.
pub fn why_nothing(kept: &Kept, id: JobId) -> Vec<&str> {
    let lost = own_runs(kept, id).filter(|run| run.state.is_over() && run.published().is_none());
    let mut reasons: Vec<&str> = lost.filter_map(|run| run.reason.as_deref()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons
}

fn own_runs(kept: &Kept, id: JobId) -> impl Iterator<Item = &Run> {
    kept.runs.values().filter(move |run| run.job == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunState;

    #[test]
    fn each_reason_of_a_run_that_is_over_is_told_once() {
        let run = |number, job, state, reason: &str| Run {
            number,
            job,
            state,
            reason: Some(reason.to_owned()),
            ..Run::default()
        };
        let runs = [
            run(1, 4, RunState::Failed, "it fell"),
            run(2, 4, RunState::Expired, "the deadline came"),
            run(3, 4, RunState::Failed, "it fell"),
            run(4, 4, RunState::Parked, "the daemon ended"),
            run(5, 5, RunState::Failed, "it is another job's"),
        ];
        let kept = Kept {
            runs: runs.map(|run| (run.number, run)).into(),
            ..Kept::default()
        };
        assert_eq!(why_nothing(&kept, 4), ["it fell", "the deadline came"]);
    }
}

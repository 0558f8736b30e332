//! The jobs of the lab, and what each waits for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::record::{Job, JobId, JobState, Kept, Run, RunState};
use crate::talk::Status;
use crate::when::moment;

/// A job in the list of jobs.
#[derive(Clone, Debug, Serialize)]
pub struct ListedJob<'a> {
    /// The job itself.
    #[serde(flatten)]
    pub job: &'a Job,
    /// How many of its runs are in each state.
    pub runs: RunCounts,
    /// How many of its profiles are worse than the last good ones before them.
    pub worse: usize,
    /// What keeps it from being worked on; nothing if it is, or is over.
    pub waiting_for: Vec<String>,
}

/// How many runs are in each state, by the states' words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RunCounts(BTreeMap<String, usize>);

impl RunCounts {
    fn of(runs: &[&Run]) -> RunCounts {
        let mut counts = RunCounts::default();
        for run in runs {
            *counts.0.entry(run.state.to_string()).or_default() += 1;
        }
        counts
    }

    /// How many runs are in `state`.
    pub fn in_state(&self, state: RunState) -> usize {
        self.0.get(&state.to_string()).copied().unwrap_or(0)
    }

    /// How many runs there are.
    pub fn all(&self) -> usize {
        self.0.values().sum()
    }
}

/// The jobs of `kept`, those that are over only if `all`. `status` is what the daemon says, if one runs.
pub fn listed_jobs<'a>(
    kept: &'a Kept,
    status: Option<&Status>,
    all: bool,
    now: Timestamp,
    zone: &TimeZone,
) -> Vec<ListedJob<'a>> {
    let reasons = status.map(reasons_of);
    let jobs = kept.jobs.values();
    let jobs = jobs.filter(|job| all || !job.state.is_over());
    let mut runs: BTreeMap<_, Vec<&Run>> = BTreeMap::new();
    for run in kept.runs.values() {
        runs.entry(run.job).or_default().push(run);
    }
    jobs.map(|job| {
        let own = runs.remove(&job.id).unwrap_or_default();
        ListedJob {
            job,
            runs: RunCounts::of(&own),
            worse: own.iter().filter(|run| run.worse().is_some()).count(),
            waiting_for: waiting_for(job, &own, reasons.as_ref(), now, zone),
        }
    })
    .collect()
}

/// What the runs of each job wait for, each reason once; what is impossible first.
type Reasons = BTreeMap<JobId, Vec<String>>;

fn reasons_of(status: &Status) -> Reasons {
    let mut reasons = Reasons::new();
    for (job, problem) in &status.impossible {
        reasons.entry(*job).or_default().push(problem.clone());
    }
    for waiting in &status.waiting {
        let of_job = reasons.entry(waiting.job).or_default();
        if !of_job.contains(&waiting.reason) {
            of_job.push(waiting.reason.clone());
        }
    }
    reasons
}

/// What keeps a job from being worked on; nothing if it is.
fn waiting_for(
    job: &Job,
    runs: &[&Run],
    reasons: Option<&Reasons>,
    now: Timestamp,
    zone: &TimeZone,
) -> Vec<String> {
    match job.state {
        JobState::Paused => return vec![format!("`layerlab job resume {}`", job.id)],
        JobState::Recurring => {
            let next = job
                .spec
                .every
                .as_ref()
                .and_then(|every| every.next_after(now));
            let next = next.map(|at| moment(at, now, zone));
            return next.into_iter().collect();
        }
        JobState::Open => {}
        JobState::Done | JobState::Failed | JobState::Cancelled | JobState::Expired => {
            return Vec::new();
        }
    }
    let Some(reasons) = reasons else {
        return vec!["a daemon".to_owned()];
    };
    let mut reasons: Vec<String> = reasons.get(&job.id).cloned().unwrap_or_default();
    let starved = runs.iter().filter_map(|run| run.starved());
    reasons.splice(0..0, starved);
    let works = runs.iter().any(|run| run.state == RunState::Running);
    if reasons.is_empty() && !works && runs.iter().any(|run| is_waiting(run.state)) {
        reasons.push("a free device".to_owned());
    }
    reasons
}

fn is_waiting(state: RunState) -> bool {
    matches!(state, RunState::Queued | RunState::Parked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobSpec;
    use crate::talk::WaitingRuns;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("an instant")
    }

    fn job(state: JobState) -> Job {
        Job {
            id: 4,
            spec: JobSpec {
                name: "tonight".to_owned(),
                ..JobSpec::default()
            },
            content_sha256: String::new(),
            submitted: at("2026-11-20T20:00:00Z"),
            occurrence_of: None,
            state,
        }
    }

    #[test]
    fn a_starved_run_is_named() {
        let starved = Run {
            stays_without_block: 3,
            reason: Some("the daemon ended".to_owned()),
            ..run(1, RunState::Parked)
        };
        let status = Status::default();
        let found = waiting_for(
            &job(JobState::Open),
            &[&starved],
            Some(&reasons_of(&status)),
            at("2026-11-20T21:00:00Z"),
            &TimeZone::UTC,
        );
        let expected = "starved: left its device 3 times before a block had ended, the last time because the daemon ended";
        assert_eq!(found, [expected]);
    }

    fn run(number: i64, state: RunState) -> Run {
        Run {
            number,
            job: 4,
            state,
            ..Run::default()
        }
    }

    #[test]
    fn a_job_says_what_it_waits_for() {
        use JobState::{Done, Open, Paused};
        use RunState::{Parked, Queued, Running};
        let waits = |job, reason: &str| WaitingRuns {
            job,
            first: 1,
            runs: 2,
            reason: reason.to_owned(),
        };
        let (window, pool) = ("the window opens at 22:00", "there is no pool `day`");
        let closed = Status {
            waiting: vec![waits(4, window), waits(9, "else")],
            impossible: vec![(4, pool.to_owned())],
            ..Status::default()
        };
        let not_ready = Status {
            waiting: vec![waits(4, "R58 is not ready: battery at 20 %")],
            ..Status::default()
        };
        let idle = Status::default();
        type Case<'a> = (JobState, &'a [RunState], Option<&'a Status>, &'a [&'a str]);
        let cases: [Case<'_>; 8] = [
            (Paused, &[Parked], Some(&idle), &["`layerlab job resume 4`"]),
            (Done, &[], Some(&idle), &[]),
            (Open, &[Queued], None, &["a daemon"]),
            (Open, &[Queued, Queued], Some(&closed), &[pool, window]),
            (
                Open,
                &[Running],
                Some(&not_ready),
                &["R58 is not ready: battery at 20 %"],
            ),
            (Open, &[Queued], Some(&idle), &["a free device"]),
            (Open, &[Queued, Running], Some(&idle), &[]),
            (Open, &[Running], Some(&idle), &[]),
        ];
        for (state, states, status, expected) in cases {
            let runs = states.iter().zip(1..);
            let runs: Vec<Run> = runs.map(|(&state, number)| run(number, state)).collect();
            let runs: Vec<&Run> = runs.iter().collect();
            let found = waiting_for(
                &job(state),
                &runs,
                status.map(reasons_of).as_ref(),
                at("2026-11-20T21:00:00Z"),
                &TimeZone::UTC,
            );
            assert_eq!(found, expected, "{state} {states:?}");
        }
    }
}

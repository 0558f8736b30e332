//! What is forgotten, and when.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::config::Config;
use crate::job::{JobSpec, ModelSpec, Selector};
use crate::record::{Device, Job, JobState, Kept, Run, RunState, Spent};
use crate::state::{Rules, StayOutcome};
use crate::talk::Answer;

fn now() -> Timestamp {
    "2026-11-20T20:00:00Z".parse().expect("an instant")
}

/// A lab with one device and one job of two runs, of which the first is on the device.
fn lab() -> LabState {
    let mut state = LabState::new(Kept::default(), Rules::of(&Config::default()));
    let phone = Device {
        name: "phone".to_owned(),
        ..Device::default()
    };
    state.devices(vec![phone], now());
    let spec = JobSpec {
        models: vec![ModelSpec::default(); 2],
        devices: vec![Selector::default()],
        ..JobSpec::default()
    };
    let answer = state.submit(spec, false, now());
    assert_eq!(
        answer,
        Answer::Submitted {
            job: 1,
            runs: 2,
            warnings: Vec::new(),
        }
    );
    state.begin(1, "phone", now());
    state
}

fn numbers(state: &LabState) -> (Vec<JobId>, Vec<RunNumber>) {
    let jobs = state.kept.jobs.keys().copied().collect();
    (jobs, state.kept.runs.keys().copied().collect())
}

/// Forgets what may be forgotten, as when the store has all of it.
fn archive(state: &mut LabState) {
    let over = state.take_over();
    state.archive(&over);
}

fn publish(state: &mut LabState) {
    let published = StayOutcome::Published {
        folder: PathBuf::from("profile"),
        findings: Vec::new(),
        verdict: None,
    };
    state.left("phone", published, Spent::default(), now());
}

#[test]
fn a_job_is_forgotten_when_its_last_run_is_over() {
    let mut state = lab();
    publish(&mut state);
    archive(&mut state);
    assert_eq!(numbers(&state), (vec![1], vec![1, 2]));
    state.begin(2, "phone", now());
    publish(&mut state);
    assert_eq!(state.kept.jobs[&1].state, JobState::Done);
    archive(&mut state);
    assert_eq!(numbers(&state), (vec![], vec![]));
    // Numbers go on where they were.
    let spec = JobSpec {
        models: vec![ModelSpec::default()],
        devices: vec![Selector::default()],
        ..JobSpec::default()
    };
    state.submit(spec, false, now());
    assert_eq!(numbers(&state), (vec![2], vec![3]));
}

#[test]
fn a_job_that_was_cancelled_stays_until_its_run_has_left_its_device() {
    let mut state = lab();
    state.cancel(1, now());
    archive(&mut state);
    assert_eq!(numbers(&state), (vec![1], vec![1, 2]));
    state.left("phone", StayOutcome::Parked, Spent::default(), now());
    archive(&mut state);
    assert_eq!(numbers(&state), (vec![], vec![]));
}

#[test]
fn a_job_that_is_tried_again_before_it_could_be_forgotten_stays() {
    let mut state = lab();
    state.cancel(1, now());
    state.left("phone", StayOutcome::Parked, Spent::default(), now());
    let over = state.take_over();
    assert_eq!(state.retry(1, now()), Answer::Done);
    state.archive(&over);
    assert_eq!(numbers(&state), (vec![1], vec![1, 2]));
}

/// Job 7 with one run, which was given up.
fn failed() -> JobWithRuns {
    let spec = JobSpec {
        devices: vec![Selector::default()],
        ..JobSpec::default()
    };
    let job = Job {
        id: 7,
        content_sha256: spec.content_sha256(),
        spec,
        submitted: now(),
        occurrence_of: None,
        state: JobState::Failed,
    };
    let run = Run {
        number: 70,
        job: 7,
        state: RunState::Failed,
        ..Run::default()
    };
    JobWithRuns {
        job,
        runs: vec![run],
    }
}

#[test]
fn a_job_that_was_asked_about_is_forgotten_again_unless_it_goes_on() {
    let mut state = lab();
    let retry = Request::Retry { job: 7 };
    assert_eq!(state.lookup_for(&retry), Some(ArchiveLookup::Job(7)));
    state.bring_back(failed());
    assert_eq!(state.lookup_for(&retry), None);
    state.lack(7, "no model".to_owned(), now());
    archive(&mut state);
    assert!(!state.kept.jobs.contains_key(&7));
    assert_eq!(state.lacking_jobs().count(), 0);
    state.bring_back(failed());
    assert_eq!(state.retry(7, now()), Answer::Done);
    archive(&mut state);
    assert_eq!(state.kept.runs[&70].state, RunState::Queued);
    // Somebody else had asked, too.
    state.bring_back(failed());
    assert_eq!(state.kept.jobs[&7].state, JobState::Open);
    assert_eq!(state.kept.runs[&70].state, RunState::Queued);
}

#[test]
fn only_requests_about_what_is_over_are_looked_up() {
    let state = lab();
    let spec = Box::new(JobSpec::default());
    let content = spec.content_sha256();
    let submit = |again| Request::Submit {
        spec: spec.clone(),
        again,
        sizes: Vec::new(),
    };
    let cases = [
        (submit(false), Some(ArchiveLookup::Content(content))),
        (submit(true), None),
        (Request::Cancel { job: 1 }, None),
        (Request::Pause { job: 9 }, Some(ArchiveLookup::Job(9))),
        (Request::Status, None),
    ];
    for (request, expected) in cases {
        assert_eq!(state.lookup_for(&request), expected, "{request:?}");
    }
}

#[test]
fn what_runs_usually_take_is_their_median() {
    let mut state = lab();
    state.took("phone", 9, vec![1]);
    assert_eq!(
        state.places["phone"].usual_wall_ms, None,
        "it is another run's"
    );
    state.took("phone", 1, vec![90, 10, 20]);
    assert_eq!(state.places["phone"].usual_wall_ms, Some(20));
    publish(&mut state);
    state.begin(2, "phone", now() + SignedDuration::from_mins(1));
    assert_eq!(state.places["phone"].usual_wall_ms, None);
}

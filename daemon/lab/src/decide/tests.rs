//! What goes where, case by case. What holds over thirty nights is in `daemon/tests/lab/nights.rs`.

use std::path::PathBuf;

mod held_back;
mod plain;
mod random;

use super::*;
use crate::config::Config;
use crate::job::{JobSpec, ModelSpec, Selector};
use crate::record::{Device, Kept, Run, RunState, Spent};
use crate::state::{Rules, StayOutcome};
use crate::talk::Answer;

fn now() -> Timestamp {
    "2026-11-20T20:00:00Z".parse().expect("an instant")
}

fn later(minutes: i64) -> Timestamp {
    now() + SignedDuration::from_mins(minutes)
}

fn device(name: &str) -> Device {
    Device {
        name: name.to_owned(),
        serial: name.to_owned(),
        ..Device::default()
    }
}

fn lab(devices: &[&str]) -> LabState {
    let mut state = LabState::new(Kept::default(), Rules::of(&Config::default()));
    state.devices(devices.iter().map(|name| device(name)).collect(), now());
    state
}

/// Any device will do.
fn spec(models: usize, priority: i32) -> JobSpec {
    JobSpec {
        models: vec![ModelSpec::default(); models],
        devices: vec![Selector::default()],
        priority,
        ..JobSpec::default()
    }
}

fn submit(state: &mut LabState, spec: JobSpec) {
    let answer = state.submit(spec, true, now());
    assert!(matches!(answer, Answer::Submitted { .. }), "{answer:?}");
}

/// Begins and leaves what is decided. A block of what was begun ends at once, so that it may be left.
fn follow(state: &mut LabState, at: Timestamp) -> Decisions {
    let decisions = decide(state, at);
    for (run, device) in &decisions.start {
        state.begin(*run, device, at);
        assert!(state.block_ended(device, None, at));
    }
    for (run, device, reason) in &decisions.leave {
        state.leaving(*run, device, reason, at);
    }
    decisions
}

fn start(run: RunNumber, device: &str) -> (RunNumber, String) {
    (run, device.to_owned())
}

#[test]
fn the_higher_priority_goes_first_and_devices_are_shared_among_equals() {
    let mut state = lab(&["a", "b", "c"]);
    submit(&mut state, spec(3, 0));
    submit(&mut state, spec(3, 0));
    submit(&mut state, spec(1, 5));
    let decisions = follow(&mut state, now());
    assert_eq!(
        decisions.start,
        [start(7, "a"), start(1, "b"), start(4, "c")]
    );
}

#[test]
fn the_nearer_deadline_goes_first_among_equals() {
    let mut state = lab(&["a"]);
    submit(&mut state, spec(1, 0));
    let deadline = Some(later(600));
    submit(
        &mut state,
        JobSpec {
            deadline,
            ..spec(1, 0)
        },
    );
    assert_eq!(follow(&mut state, now()).start, [start(2, "a")]);
}

#[test]
fn a_run_of_a_lower_priority_leaves_for_one_of_a_higher_and_goes_on_afterwards() {
    let mut state = lab(&["a"]);
    submit(&mut state, spec(1, 0));
    follow(&mut state, now());
    submit(&mut state, spec(1, 5));
    let decisions = follow(&mut state, later(1));
    assert_eq!(decisions.start, []);
    assert_eq!(decisions.leave.len(), 1);
    assert_eq!(decisions.leave[0].0, 1);
    // It is told once.
    assert_eq!(follow(&mut state, later(2)).leave, []);
    state.left("a", StayOutcome::Parked, Spent::default(), later(3));
    assert_eq!(follow(&mut state, later(3)).start, [start(2, "a")]);
    let published = StayOutcome::Published {
        folder: PathBuf::from("profile"),
        findings: Vec::new(),
        verdict: None,
    };
    state.left("a", published, Spent::default(), later(9));
    assert_eq!(follow(&mut state, later(9)).start, [start(1, "a")]);
    let (_, run) = state.run(1).expect("a run");
    assert_eq!(run.attempt, 1, "it goes on, and does not begin anew");
}

#[test]
fn a_run_leaves_for_a_higher_priority_when_a_block_of_it_has_ended() {
    let mut state = lab(&["a", "b"]);
    submit(&mut state, spec(1, 0));
    submit(&mut state, spec(1, 1));
    for (run, device) in decide(&state, now()).start {
        state.begin(run, &device, now());
    }
    // Run 2, of the higher priority, has device a.
    state.block_ended("a", None, now());
    submit(&mut state, spec(1, 5));
    assert_eq!(decide(&state, later(1)).leave, [], "not the other instead");
    state.block_ended("b", None, now());
    let decisions = decide(&state, later(2));
    assert_eq!(decisions.leave.len(), 1);
    assert_eq!(decisions.leave[0].0, 1);
}

#[test]
fn one_device_is_left_for_one_run() {
    let mut state = lab(&["a", "b"]);
    submit(&mut state, spec(2, 0));
    follow(&mut state, now());
    submit(&mut state, spec(1, 5));
    assert_eq!(follow(&mut state, later(1)).leave.len(), 1);
    assert_eq!(follow(&mut state, later(2)).leave.len(), 0);
    submit(&mut state, spec(1, 5));
    assert_eq!(follow(&mut state, later(3)).leave.len(), 1);
}

#[test]
fn windows_and_reservations_end_a_stay_and_wake_the_lab() {
    let mut state = lab(&["a", "b"]);
    let window = Some("19:00-21:00 UTC".parse().expect("a window"));
    submit(
        &mut state,
        JobSpec {
            window,
            ..spec(1, 0)
        },
    );
    submit(&mut state, spec(1, 0));
    let reserved = state.reserve("b", later(30), later(90), "demo".to_owned(), now());
    assert_eq!(reserved, Answer::Done);
    let decisions = follow(&mut state, now());
    assert_eq!(decisions.start, [start(1, "a"), start(2, "b")]);
    assert_eq!(decisions.wake, Some(later(30)));
    let decisions = follow(&mut state, later(30));
    assert_eq!(
        decisions.leave,
        [(2, "b".to_owned(), "the device is reserved: demo".to_owned())]
    );
    assert_eq!(decisions.wake, Some(later(60)));
    let decisions = follow(&mut state, later(60));
    assert_eq!(decisions.leave.len(), 1);
    assert!(
        decisions.leave[0].2.starts_with("outside its window"),
        "{decisions:?}"
    );
}

#[test]
fn a_parked_run_waits_for_the_device_with_its_journal_until_that_is_given_up() {
    let mut state = lab(&["a", "b"]);
    submit(&mut state, spec(1, 0));
    follow(&mut state, now());
    state.left("a", StayOutcome::Parked, Spent::default(), later(1));
    state.devices(vec![device("b")], later(1));
    assert_eq!(follow(&mut state, later(2)).start, []);
    assert_eq!(follow(&mut state, later(12)).start, [start(1, "b")]);
    let (_, run) = state.run(1).expect("a run");
    assert_eq!(run.attempt, 2, "b has no journal of it");
}

#[test]
fn a_device_that_failed_rests_and_its_run_goes_to_another_until_it_is_given_up() {
    let mut state = lab(&["a", "b"]);
    submit(&mut state, spec(1, 0));
    let failed = || StayOutcome::DeviceFailed {
        reason: "it fell".to_owned(),
    };
    assert_eq!(follow(&mut state, now()).start, [start(1, "a")]);
    state.left("a", failed(), Spent::default(), later(1));
    assert_eq!(follow(&mut state, later(1)).start, [start(1, "b")]);
    state.left("b", failed(), Spent::default(), later(2));
    // Both rest for an hour; then the first that is fit will do.
    let decisions = follow(&mut state, later(2));
    assert_eq!(decisions.start, []);
    assert_eq!(decisions.wake, Some(later(61)));
    assert_eq!(follow(&mut state, later(61)).start, [start(1, "a")]);
    state.left("a", failed(), Spent::default(), later(62));
    let (job, run) = state.run(1).expect("a run");
    assert_eq!((job.state, run.state), (JobState::Failed, RunState::Failed));
    let reason = run.reason.as_deref().unwrap_or_default();
    assert!(
        reason.contains("3 attempts") && reason.contains("it fell"),
        "{reason}"
    );
}

//! What a host makes of what others have changed.

use std::collections::BTreeMap;

use super::*;
use crate::config::Config;
use crate::decide::decide;
use crate::job::{JobSpec, ModelSpec, Selector};
use crate::record::Kept;
use crate::state::{Rules, StayOutcome};

pub(in crate::state) fn minute(minute: i64) -> Timestamp {
    let start: Timestamp = "2026-11-20T20:00:00Z".parse().expect("an instant");
    start + SignedDuration::from_mins(minute)
}

/// Host `name`, which has `device`.
pub(in crate::state) fn host(name: &str, device: &str) -> LabState {
    let kept = Kept {
        host: Some(name.to_owned()),
        ..Kept::default()
    };
    let mut state = LabState::new(kept, Rules::of(&Config::default()));
    let device = Device {
        name: device.to_owned(),
        serial: device.to_owned(),
        ..Device::default()
    };
    state.devices(vec![device], minute(0));
    state
}

/// What `state` has changed, as it comes to others.
pub(in crate::state) fn changes(state: &mut LabState) -> OthersChanges {
    state.take_changes();
    let jobs = state.kept.jobs.values().map(|job| JobWithRuns {
        job: job.clone(),
        runs: state.kept.runs.values().cloned().collect(),
    });
    OthersChanges {
        jobs: jobs.collect(),
        devices: state.kept.devices.values().cloned().collect(),
        reservations: Some(BTreeMap::new()),
        last: (
            state.kept.last_event,
            state.kept.last_job,
            state.kept.last_run,
        ),
        ..OthersChanges::default()
    }
}

/// The same, with the host itself, which is as it is with this lease.
pub(in crate::state) fn changes_of_host(state: &mut LabState, lease: LeaseState) -> OthersChanges {
    let host = Host {
        name: state.kept.host.clone().expect("a host"),
        machine: String::new(),
        process: Some(7),
        version: String::new(),
        zone: None,
        devices: state.hosts.told.clone().unwrap_or_default(),
        lease,
        seen: minute(0),
        lease_over: std::time::Duration::ZERO,
        is_given_up: false,
    };
    OthersChanges {
        hosts: vec![host],
        ..changes(state)
    }
}

/// A job of one run that any device will do for, on these hosts.
pub(in crate::state) fn job_on(hosts: &[&str]) -> JobSpec {
    JobSpec {
        models: vec![ModelSpec::default()],
        devices: vec![Selector::default()],
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        ..JobSpec::default()
    }
}

fn nothing() -> OthersChanges {
    OthersChanges {
        reservations: Some(BTreeMap::new()),
        ..OthersChanges::default()
    }
}

/// Two hosts, the first of which has begun the only run, and parked it.
fn parked() -> (LabState, LabState) {
    let (mut one, mut two) = (host("one", "a"), host("two", "b"));
    let spec = JobSpec {
        models: vec![ModelSpec::default()],
        devices: vec![Selector::default()],
        ..JobSpec::default()
    };
    one.follow(nothing(), minute(0));
    one.submit(spec, true, minute(0));
    one.begin(1, "a", minute(0)).expect("it is free");
    one.left("a", StayOutcome::Parked, Spent::default(), minute(1));
    two.follow(changes(&mut one), minute(1));
    (one, two)
}

#[test]
fn a_parked_run_is_its_host_s_until_its_device_is_given_up() {
    let (mut one, mut two) = parked();
    assert_eq!(decide(&two, minute(1)).start, []);
    one.devices(Vec::new(), minute(2));
    one.follow(nothing(), minute(5));
    two.follow(changes(&mut one), minute(5));
    assert_eq!(decide(&two, minute(5)).start, []);
    one.follow(nothing(), minute(13));
    two.follow(changes(&mut one), minute(13));
    assert_eq!(decide(&two, minute(13)).start, [(1, "b".to_owned())]);
    two.begin(1, "b", minute(13)).expect("it is free");
    assert_eq!(two.kept.runs[&1].attempt, 2);
    // The first host leaves it alone, though its device is back.
    one.follow(changes(&mut two), minute(14));
    let a = two.kept.devices["a"].clone();
    one.devices(vec![a], minute(14));
    assert_eq!(decide(&one, minute(14)).start, []);
}

#[test]
fn a_parked_run_goes_on_where_its_device_is_connected_now() {
    let (mut one, mut two) = parked();
    one.devices(Vec::new(), minute(2));
    let (a, b) = (one.kept.devices["a"].clone(), two.kept.devices["b"].clone());
    two.devices(vec![a, b], minute(3));
    assert_eq!(decide(&two, minute(3)).start, [(1, "a".to_owned())]);
    two.begin(1, "a", minute(3)).expect("it is free");
    let run = &two.kept.runs[&1];
    assert_eq!((run.attempt, run.host.as_deref()), (1, Some("two")));
}

/// A host with a device and a job for it.
fn with_a_job() -> LabState {
    let mut one = host("one", "a");
    let spec = JobSpec {
        models: vec![ModelSpec::default()],
        devices: vec![Selector::default()],
        ..JobSpec::default()
    };
    one.submit(spec, true, minute(0));
    one.take_changes();
    one
}

#[test]
fn what_a_host_lacks_for_a_job_is_looked_for_again_and_told_once() {
    let mut one = with_a_job();
    one.lack(1, "no model".to_owned(), minute(0));
    assert_eq!(one.take_changes().len(), 1);
    assert_eq!(decide(&one, minute(0)).start, []);
    let job = &one.kept.jobs[&1];
    assert_eq!(one.held_back(job, minute(0)).as_deref(), Some("no model"));
    assert_eq!(decide(&one, minute(1)).start, [(1, "a".to_owned())]);
    one.lack(1, "no model".to_owned(), minute(1));
    assert_eq!(one.take_changes(), []);
    assert_eq!(decide(&one, minute(1)).start, []);
}

#[test]
fn runs_wait_for_files_that_are_fetched_and_what_keeps_them_is_told_once() {
    let mut one = with_a_job();
    let begin = [(1, "a".to_owned())];
    one.fetching(1);
    assert_eq!(decide(&one, minute(5)).start, []);
    let held_back = one.held_back(&one.kept.jobs[&1], minute(5));
    assert_eq!(held_back.as_deref(), Some("its files are being fetched"));
    one.fetched(1, Err("nobody answers".to_owned()), minute(5));
    assert_eq!(one.take_changes().len(), 1);
    let decisions = decide(&one, minute(5));
    assert_eq!(
        (decisions.start, decisions.wake),
        (Vec::new(), Some(minute(6)))
    );
    assert_eq!(decide(&one, minute(6)).start, begin);
    one.fetching(1);
    one.fetched(1, Err("nobody answers".to_owned()), minute(6));
    assert_eq!(one.take_changes(), []);
    one.fetched(1, Ok(()), minute(6));
    assert_eq!(decide(&one, minute(6)).start, begin);
    // Of a job that is no more, nothing is told.
    one.fetched(2, Err("nobody answers".to_owned()), minute(6));
    assert_eq!(one.take_changes(), []);
}

#[test]
fn devices_are_looked_at_again_when_others_have_other_devices_and_not_otherwise() {
    let (mut one, mut two) = (host("one", "a"), host("two", "a"));
    one.follow(nothing(), minute(0));
    let others = changes_of_host(&mut one, LeaseState::Alive);
    two.follow(others.clone(), minute(1));
    let (a, b) = (
        two.kept.devices["a"].clone(),
        host("b", "b").kept.devices["b"].clone(),
    );
    two.devices(vec![a, b], minute(1));
    assert!(!two.places["a"].is_there, "the first host has it");
    two.take_changes();
    // Nothing of what is here is compared again as long as the others are as they were.
    if let Some(known) = two.kept.devices.get_mut("b") {
        known.android = Some(7);
    }
    let still = OthersChanges {
        devices: Vec::new(),
        ..others.clone()
    };
    two.follow(still.clone(), minute(2));
    assert_eq!(two.take_changes(), []);
    assert_eq!(two.kept.devices["b"].android, Some(7));
    // The first host is gone.
    let gone = OthersChanges {
        hosts: changes_of_host(&mut one, LeaseState::Ended).hosts,
        ..still
    };
    two.follow(gone, minute(3));
    assert!(two.places["a"].is_there);
    assert_eq!(two.host_of("a"), None);
}

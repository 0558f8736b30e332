//! A phone that is carried to another host, while a run is in progress on it.

use super::*;
use crate::decide::decide;
use crate::record::{LeaseState, Run, Spent};
use crate::state::hosts::tests::{changes_of_host, host, job_on, minute};
use crate::state::{StayOutcome, Work};

fn phone(boot: &str) -> Device {
    Device {
        name: "P".to_owned(),
        serial: "P".to_owned(),
        boot_id: Some(boot.to_owned()),
        ..Device::default()
    }
}

/// Two hosts, the first of which has the phone P and a run on it, of which a block has ended.
fn begun(hosts: &[&str]) -> (LabState, LabState) {
    let (mut one, mut two) = (host("one", "a"), host("two", "b"));
    one.devices(vec![phone("boot")], minute(0));
    one.submit(job_on(hosts), true, minute(0));
    one.begin(1, "P", minute(0)).expect("it is free");
    one.block_ended("P", None, minute(1));
    two.follow(changes_of_host(&mut one, LeaseState::Alive), minute(1));
    (one, two)
}

fn run(state: &LabState) -> &Run {
    &state.kept.runs[&1]
}

#[test]
fn the_new_host_goes_on_with_the_attempt_and_the_old_one_leaves_it() {
    let (mut one, mut two) = begun(&[]);
    // As long as the first host has it, it is that one's.
    two.devices(vec![phone("boot")], minute(2));
    assert_eq!(decide(&two, minute(2)).start, []);
    one.devices(Vec::new(), minute(3));
    two.follow(changes_of_host(&mut one, LeaseState::Alive), minute(3));
    let (claim, decisions) = (run(&two).host.as_deref(), decide(&two, minute(3)));
    assert_eq!(claim, Some("two"));
    assert_eq!(decisions.start, [(1, "P".to_owned())]);
    two.begin(1, "P", minute(3)).expect("it is free");
    assert_eq!((run(&two).attempt, run(&two).state), (1, RunState::Running));

    one.follow(changes_of_host(&mut two, LeaseState::Alive), minute(4));
    let leaves = decide(&one, minute(4)).leave;
    let reason = "host `two` goes on with it".to_owned();
    assert_eq!(leaves, [(1, "P".to_owned(), reason.clone())]);
    one.leaving(1, "P", &reason, minute(4));
    let before = run(&one).clone();
    one.take_changes();
    one.block_ended("P", None, minute(4));
    let failed = StayOutcome::DeviceFailed {
        reason: "it is gone".to_owned(),
    };
    one.left("P", failed, Spent::default(), minute(5));
    assert_eq!(one.places["P"].work, Work::Free);
    assert_eq!(one.left_alone("P", minute(5)), None);
    assert_eq!(one.take_changes(), []);
    assert_eq!(run(&one), &before);
    assert!(!one.is_over_here(1));
}

#[test]
fn a_phone_that_was_booted_since_or_is_for_other_hosts_is_waited_for() {
    for (boot, hosts) in [("another", &[][..]), ("boot", &["one"])] {
        let (mut one, mut two) = begun(hosts);
        two.devices(vec![phone(boot)], minute(2));
        one.devices(Vec::new(), minute(3));
        two.follow(changes_of_host(&mut one, LeaseState::Alive), minute(3));
        assert_eq!(run(&two).host.as_deref(), Some("one"), "{boot} {hosts:?}");
        assert_eq!(decide(&two, minute(3)).start, []);
    }
}

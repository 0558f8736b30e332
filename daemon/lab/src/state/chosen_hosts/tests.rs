//! Which host begins the runs of a job that chooses hosts, and what is said of those that wait.

use super::*;
use crate::decide::decide;
use crate::record::{LeaseState, RunState};
use crate::state::hosts::tests::{changes_of_host, host, job_on, minute};
use crate::status::status;

/// Why the runs of all jobs wait, as `state` tells it.
fn reasons(state: &LabState, at: Timestamp) -> Vec<String> {
    let waiting = status(state, None, at).waiting;
    waiting.into_iter().map(|waiting| waiting.reason).collect()
}

#[test]
fn only_a_host_that_the_job_chooses_begins_its_runs() {
    let (mut one, mut two) = (host("one", "a"), host("two", "b"));
    one.follow(changes_of_host(&mut two, LeaseState::Alive), minute(0));
    let submitted = one.submit(job_on(&["two"]), true, minute(1));
    assert!(
        matches!(&submitted, Answer::Submitted { warnings, .. } if warnings.is_empty()),
        "{submitted:?}"
    );
    two.follow(changes_of_host(&mut one, LeaseState::Alive), minute(1));
    assert_eq!(decide(&one, minute(1)).start, []);
    assert_eq!(reasons(&one, minute(1)), ["its turn on host `two`"]);
    assert_eq!(decide(&two, minute(1)).start, [(1, "b".to_owned())]);

    one.submit(job_on(&[]), true, minute(2));
    assert_eq!(decide(&one, minute(2)).start, [(2, "a".to_owned())]);
}

#[test]
fn what_waits_for_a_host_that_is_gone_says_so() {
    let (mut one, mut two) = (host("one", "a"), host("two", "b"));
    let mut lost = changes_of_host(&mut two, LeaseState::Lost);
    lost.hosts[0].lease_over = std::time::Duration::from_secs(300);
    one.follow(lost.clone(), minute(10));
    one.submit(job_on(&["two"]), true, minute(10));
    let since = moment(minute(5), minute(10), &TimeZone::system());
    let lost_since = format!("host `two`, which is lost since {since}");
    assert_eq!(reasons(&one, minute(10)), std::slice::from_ref(&lost_since));
    let one_of_both = one.turn_elsewhere(&job_on(&["three", "two"]), minute(10));
    assert_eq!(
        one_of_both,
        format!("host `three`, which was never there, or {lost_since}")
    );
    // One that it has claimed waits for it, too.
    two.submit(job_on(&[]), true, minute(10));
    two.begin(1, "b", minute(10)).expect("it is free");
    let mut claimed = changes_of_host(&mut two, LeaseState::Lost);
    claimed.hosts.clone_from(&lost.hosts);
    for run in claimed.jobs.iter_mut().flat_map(|job| &mut job.runs) {
        run.state = RunState::Parked;
    }
    let mut three = host("three", "c");
    three.follow(claimed, minute(10));
    let said = format!("host `two` has it, and is lost since {since}");
    assert_eq!(reasons(&three, minute(10)), [said]);
}

#[test]
fn a_host_that_the_lab_has_never_seen_is_said_and_may_come() {
    let mut one = host("one", "a");
    let mut two = host("two", "b");
    one.follow(changes_of_host(&mut two, LeaseState::Ended), minute(0));
    let warning = "the lab has no host `rack-9` (it has one, two); start a daemon with that name, or cancel the job";
    let submitted = one.submit(job_on(&["rack-9", "two"]), true, minute(1));
    assert!(
        matches!(&submitted, Answer::Submitted { warnings, .. } if warnings == &[warning]),
        "{submitted:?}"
    );
    let impossible = status(&one, None, minute(1)).impossible;
    assert_eq!(impossible, [(1, warning.to_owned())]);
    let mut late = host("rack-9", "z");
    late.follow(changes_of_host(&mut one, LeaseState::Alive), minute(2));
    assert_eq!(decide(&late, minute(2)).start, [(1, "z".to_owned())]);
}

#[test]
fn a_lab_of_one_host_takes_no_job_that_chooses_hosts() {
    let mut alone = LabState {
        kept: crate::record::Kept {
            host: None,
            ..host("one", "a").kept
        },
        ..host("one", "a")
    };
    let refused = alone.submit(job_on(&["one"]), true, minute(0));
    assert!(
        matches!(&refused, Answer::Refused { code: RefusalCode::UnknownHost, message } if message.contains("leave `hosts`")),
        "{refused:?}"
    );
    assert_eq!(alone.kept.jobs.len(), 0);
}

#[test]
fn each_device_is_one_of_the_chosen_hosts() {
    let (mut one, mut two) = (host("one", "a"), host("two", "b"));
    one.follow(changes_of_host(&mut two, LeaseState::Alive), minute(0));
    let mut each = job_on(&["two"]);
    each.devices[0].each = true;
    one.submit(each.clone(), true, minute(0));
    let only: Vec<_> = one.kept.runs.values().map(|run| run.only.clone()).collect();
    assert_eq!(only, [Some("b".to_owned())]);
    // One that has none of them.
    let ended = changes_of_host(&mut host("three", "c"), LeaseState::Alive);
    one.follow(ended, minute(1));
    each.hosts = vec!["two".to_owned()];
    let refused = one.submit(each, true, minute(1));
    assert!(
        matches!(&refused, Answer::Refused { code: RefusalCode::UnknownHost, message } if message.contains("is on one of its hosts")),
        "{refused:?}"
    );
}

#[test]
fn what_is_on_no_chosen_host_is_told_where_it_should_be() {
    let (mut one, mut two) = (host("one", "a"), host("two", "b"));
    one.follow(changes_of_host(&mut two, LeaseState::Alive), minute(0));
    let mut job = job_on(&["one"]);
    job.devices[0].serial = Some("b".to_owned());
    one.submit(job, true, minute(0));
    assert_eq!(decide(&one, minute(0)).start, []);
    let said = "no device that it is for is on host `one`";
    assert_eq!(reasons(&one, minute(0)), [said]);
}

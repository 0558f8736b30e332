//! Who is left alone by all hosts, and what commands without a daemon have in it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use layerlab_farm::quarantine::Lifted;
use time::OffsetDateTime;

use super::*;
use crate::config::Config;
use crate::record::{Device, Kept};
use crate::state::Rules;
use crate::talk::Answer;

const HOUR: Duration = Duration::from_secs(3600);

fn minute(minute: i64) -> Timestamp {
    let start: Timestamp = "2026-11-20T20:00:00Z".parse().expect("an instant");
    start + SignedDuration::from_mins(minute)
}

fn date_time(at: Timestamp) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(at.as_second()).expect("an instant")
}

/// Host `name`, which calls the phone R58 as it likes.
fn host(name: &str, phone: &str) -> LabState {
    let kept = Kept {
        host: Some(name.to_owned()),
        ..Kept::default()
    };
    let mut state = LabState::new(kept, Rules::of(&Config::default()));
    let device = Device {
        name: phone.to_owned(),
        serial: "R58".to_owned(),
        ..Device::default()
    };
    state.devices(vec![device], minute(0));
    state.take_changes();
    state
}

/// What the store has after these changes.
fn kept(changes: Vec<RecordChange>, quarantine: &mut BTreeMap<String, DeviceQuarantine>) {
    for change in changes {
        match change {
            RecordChange::Quarantine(it) => drop(quarantine.insert(it.device.clone(), it)),
            RecordChange::QuarantineGone(device) => drop(quarantine.remove(&device)),
            _ => {}
        }
    }
}

#[test]
fn whom_one_host_leaves_alone_all_do_whatever_they_call_it_and_any_of_them_lifts_it() {
    let mut store = BTreeMap::new();
    let (mut one, mut two) = (host("one", "R58"), host("two", "R58@server:5037"));
    one.quarantine("R58", "its glass is broken", HOUR, None, minute(0));
    kept(one.take_changes(), &mut store);
    two.follow_quarantine(store.clone(), minute(1));
    let entry = two.left_alone("R58@server:5037", minute(1)).expect("it is");
    assert_eq!(
        entry.why(),
        "its glass is broken (by a command on host `one`)"
    );
    assert_eq!(two.left_alone("R58@server:5037", minute(61)), None);

    let token = Some("ann".to_owned());
    two.quarantine("R58@server:5037", "it sulks", HOUR, token, minute(2));
    kept(two.take_changes(), &mut store);
    assert_eq!(store["R58"].by, "`ann` over the web");
    assert_eq!(store.len(), 1);
    assert_eq!(two.lift("R58@server:5037", minute(3)), Answer::Done);
    kept(two.take_changes(), &mut store);
    one.follow_quarantine(store.clone(), minute(3));
    assert_eq!(one.left_alone("R58", minute(3)), None);
    assert_eq!(
        one.places["R58"].changed,
        minute(3),
        "it is free since then"
    );
}

#[test]
fn a_quarantine_that_is_over_is_removed() {
    let mut store = BTreeMap::new();
    let mut one = host("one", "R58");
    one.quarantine("R58", "it sulks", HOUR, None, minute(0));
    kept(one.take_changes(), &mut store);
    one.end_lab_quarantines(minute(59));
    assert_eq!(one.take_changes(), []);
    assert_eq!(one.quarantined_by_lab(minute(59)).len(), 1);
    one.end_lab_quarantines(minute(60));
    kept(one.take_changes(), &mut store);
    assert_eq!(store.len(), 0);
    assert_eq!(one.places["R58"].changed, minute(60));
}

#[test]
fn what_was_decided_without_a_daemon_holds_unless_the_lab_has_decided_since() {
    let added = |at: i64| SharedQuarantine {
        of_host: vec![Entry {
            phone: "R58".to_owned(),
            reason: "it fell".to_owned(),
            since: date_time(minute(at)),
            until: date_time(minute(at + 60)),
            by: None,
        }],
        ..SharedQuarantine::default()
    };
    let lifted = |at: i64| SharedQuarantine {
        lifted: vec![Lifted {
            phone: "R58".to_owned(),
            at: date_time(minute(at)),
            until: date_time(minute(90)),
        }],
        ..SharedQuarantine::default()
    };
    let reason = |state: &LabState| {
        let entry = state.left_alone("R58@server:5037", minute(15));
        entry.map(LeftAlone::why)
    };
    let with = |decided: &SharedQuarantine| {
        let mut one = host("one", "R58@server:5037");
        one.quarantine("R58", "it sulks", HOUR, None, minute(10));
        one.tell_lab(decided, minute(15));
        let mut store = BTreeMap::new();
        kept(one.take_changes(), &mut store);
        assert_eq!(store.contains_key("R58"), reason(&one).is_some());
        reason(&one)
    };
    let before = Some("it sulks (by a command on host `one`)".to_owned());
    assert_eq!(with(&added(9)), before);
    assert_eq!(with(&added(11)), Some("it fell (by host `one`)".to_owned()));
    assert_eq!(with(&lifted(9)), before);
    assert_eq!(with(&lifted(11)), None);
}

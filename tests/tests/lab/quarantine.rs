//! Who is left alone is one truth: the daemon's, which commands ask.

use layerlab_lab::record::RunState;
use layerlab_lab::talk::DeviceState;
use layerlab_tests::device;
use layerlab_tests::farm::Farm;
use layerlab_tests::lab::{Lab, simulating};

use super::{LONG, SIMULATED, job, wait_for_job};

const ON_ONE: &str = "[[devices]]\nserial = \"mate10pro\"\n[measure]\ndesign = \"local\"\n";

#[test]
fn a_lift_reaches_the_daemon_that_runs() {
    let lab = Lab::new(SIMULATED);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    let add = [
        "quarantine",
        "add",
        "mate10pro",
        "--reason",
        "its glass is broken",
    ];
    lab.succeed(&add);
    lab.submit(&job("alexnet", ON_ONE));
    let jobs = lab.succeed(&["jobs"]);
    assert!(jobs.contains("mate10pro is quarantined until"), "{jobs}");
    assert!(jobs.contains("its glass is broken"), "{jobs}");
    let state = lab
        .devices()
        .into_iter()
        .find(|one| one.device.name == "mate10pro");
    assert_eq!(state.map(|one| one.state), Some(DeviceState::Quarantined));
    let listed = lab.succeed(&["quarantine", "list"]);
    assert!(listed.contains("its glass is broken"), "{listed}");
    let lifted = lab.succeed(&["quarantine", "lift", "mate10pro"]);
    assert_eq!(lifted, "mate10pro is used again\n");
    wait_for_job(&lab);
    let again = lab.run(&["quarantine", "lift", "mate10pro"]);
    assert_eq!(again.status.code(), Some(3));
    let events = lab.succeed(&["job", "show", "1"]);
    assert!(events.contains("published"), "{events}");
    daemon.stop();
}

#[test]
fn a_quarantine_outlives_the_daemon_and_is_lifted_without_one() {
    let lab = Lab::new(SIMULATED);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.succeed(&["quarantine", "add", "mate10pro", "--reason", "it sulks"]);
    daemon.stop();
    assert!(lab.succeed(&["quarantine", "list"]).contains("it sulks"));
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    let is_left_alone = |state: &DeviceState| *state == DeviceState::Quarantined;
    let states = || lab.devices().into_iter().map(|one| one.state);
    assert_eq!(states().filter(is_left_alone).count(), 1);
    daemon.stop();
    lab.succeed(&["quarantine", "lift", "mate10pro"]);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    assert_eq!(states().filter(is_left_alone).count(), 0);
}

#[test]
fn a_phone_that_was_unplugged_for_longer_than_patience_lasts_is_used_when_it_is_back() {
    let Some(farm) = Farm::new() else { return };
    let phones = [farm.phone("P1")];
    let configuration = simulating(&phones, &device("noisy"));
    let configuration = configuration.replace("[phones]\n", "[phones]\npatience = \"2s\"\n");
    let lab = Lab::new(&configuration).with_phones(&farm);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(1);
    lab.submit(&job("alexnet", LONG));
    lab.wait_for("a block", || lab.blocks() > 0);
    phones[0].unplug();
    lab.wait_for("a run that has left its phone", || {
        lab.kept().runs[&1].state == RunState::Queued
    });
    let left_alone = lab.succeed(&["quarantine", "list"]);
    assert_eq!(left_alone, "no phone is in quarantine\n");
    phones[0].plug();
    wait_for_job(&lab);
    daemon.stop();
}

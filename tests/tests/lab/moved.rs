//! A phone that changes its address goes on with its run and its history.

use layerlab_tests::device;
use layerlab_tests::farm::Farm;
use layerlab_tests::lab::{Lab, simulating};
use layerlab_tests::succeed;

use super::{LONG, job};

#[test]
fn a_phone_with_another_address_goes_on_with_its_run_and_its_history() {
    let Some(farm) = Farm::new() else { return };
    let mut phones = [farm.phone("P1")];
    let lab = Lab::new(&simulating(&phones, &device("noisy"))).with_phones(&farm);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(1);
    lab.submit(&job("alexnet", LONG));
    lab.wait_for("a block", || lab.blocks() > 0);
    phones[0].change_address();
    let mut adb = farm.adb_in(&lab.state());
    succeed(adb.args(["connect", &phones[0].address]));
    // By the address, too, a job finds it.
    let address = &phones[0].address;
    lab.wait_for("the phone at its new address", || {
        let devices = lab.kept().devices;
        devices.values().any(|device| device.is_called(address))
    });
    let at_address =
        format!("[[devices]]\nserial = {address:?}\n[measure]\ndesign = \"local\"\nsamples = 6\n");
    lab.submit(&job("alexnet", &at_address));
    for job in ["1", "2"] {
        lab.succeed(&["job", "wait", job, "--timeout", "3m"]);
    }
    daemon.stop();
    let kept = lab.kept();
    let names: Vec<&String> = kept.devices.keys().collect();
    assert_eq!(names, ["P1"], "one phone, one history");
    let runs = kept.runs.values();
    let runs = runs.map(|run| (run.phone.as_deref(), run.attempt));
    let runs: Vec<_> = runs.collect();
    assert_eq!(runs, [(Some("P1"), 1), (Some("P1"), 1)]);
    lab.check_journals();
}

//! A phone that is carried to another host while its run is in progress goes on with it there.

use layerlab_lab::record::RunState;
use layerlab_tests::device;
use layerlab_tests::farm::Farm;
use layerlab_tests::lab::{Lab, simulating};
use layerlab_tests::postgres::postgres;
use layerlab_tests::published::Published;
use layerlab_tests::virtual_phone::VirtualPhone;

use super::super::{LONG, job, wait_for_job};

/// What was derived: the second host starts the agent anew, and with it the clock of the device that it plays.
const DERIVED: [&str; 4] = ["layers.csv", "times.csv", "cuts.csv", "segments.csv"];

/// A host whose adb server knows these phones.
fn host(name: &str, url: &str, shared: &str, farm: &Farm, phones: &[VirtualPhone]) -> Lab {
    let phones = simulating(phones, &device("noisy"));
    Lab::new(&format!(
        "[lab]\nstore = {url:?}\nhost = {name:?}\ncopies = \"{shared}/copies\"\nprofiles = \"{shared}/profiles\"\n{phones}"
    ))
    .with_phones(farm)
}

#[test]
fn a_phone_that_is_carried_to_another_host_goes_on_with_its_run_there() {
    let Some(server) = postgres() else { return };
    let Some(farm) = Farm::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path().to_str().expect("UTF-8");
    let url = server.database();
    let mut phones = [farm.phone("P1")];
    let one = host("rack-1", &url, shared, &farm, &phones);
    let first = one.daemon();
    one.wait_until_open();
    one.wait_for_devices(1);
    one.submit(&job("alexnet", LONG));
    one.wait_for("a block", || one.blocks() > 0);

    // To the second host it is the same phone at another place, and the first does not find it any more.
    phones[0].change_address();
    let two = host("rack-2", &url, shared, &farm, &phones);
    let second = two.daemon();
    two.wait_until_open();
    two.wait_for("a run that was carried", || {
        let run = two.kept().runs[&1].clone();
        run.host.as_deref() == Some("rack-2") && run.state != RunState::Parked
    });
    wait_for_job(&two);
    let run = two.kept().runs[&1].clone();
    assert_eq!(
        (run.attempt, run.host.as_deref()),
        (1, Some("rack-2")),
        "{}",
        two.log()
    );
    two.check_journals();
    let shown = two.succeed(&["job", "show", "1"]);
    let carried = "its device was carried from host `rack-1` to host `rack-2`";
    assert!(shown.contains(carried), "{shown}");
    // The first host has let it go.
    one.wait_for("a device that has no run", || {
        one.devices().iter().all(|device| device.run.is_none())
    });
    second.stop();
    first.stop();
    assert!(!one.log().contains("cannot be kept"), "{}", one.log());

    let undisturbed = Lab::new(&simulating(&phones, &device("noisy"))).with_phones(&farm);
    let daemon = undisturbed.daemon();
    undisturbed.wait_until_open();
    undisturbed.wait_for_devices(1);
    undisturbed.submit(&job("alexnet", LONG));
    wait_for_job(&undisturbed);
    daemon.stop();
    let derived = |lab: &Lab| {
        let folder = lab.kept().runs[&1].profile.clone();
        Published::read(&folder.expect("it is done")).only(&DERIVED)
    };
    let differences = derived(&two).differences(&derived(&undisturbed));
    assert_eq!(differences, [""; 0]);
}

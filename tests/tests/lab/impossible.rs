//! Jobs that nothing known to the lab can do.

use layerlab_tests::device;
use layerlab_tests::farm::Farm;
use layerlab_tests::lab::{Lab, simulating};

use super::{SIMULATED, job};

#[test]
fn what_no_device_gives_is_warned_about_at_submission_and_in_the_list_of_jobs() {
    let lab = Lab::new(SIMULATED);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for("devices that tell their processors", || {
        let devices = lab.kept().devices;
        devices.len() == 2 && devices.values().all(|device| device.processors.is_some())
    });
    let submit = |rest: &str| {
        let file = lab.path("job.toml");
        std::fs::write(&file, job("alexnet", rest)).expect("room");
        let output = lab.run(&["submit", file.to_str().expect("UTF-8")]);
        assert!(output.status.success(), "a device may come");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    lab.succeed(&["reserve", "mate10pro", "--until", "1h"]);
    let pool = submit("[[devices]]\npool = \"night\"\n");
    assert!(
        pool.contains("warning: the lab's configuration has no pool `night`"),
        "{pool}"
    );
    let gpu = submit("[[devices]]\nserial = \"mate10pro\"\n[measure]\nprocessors = [\"gpu\"]\n");
    assert!(
        gpu.contains("has no processor `gpu`, but cpu, npu"),
        "{gpu}"
    );
    let right = submit("[[devices]]\nserial = \"mate10pro\"\n[measure]\nprocessors = [\"cpu\"]\n");
    assert_eq!(right, "");
    let jobs = lab.succeed(&["jobs"]);
    for problem in ["no pool `night`", "has no processor `gpu`"] {
        assert_eq!(jobs.matches(problem).count(), 1, "{jobs}");
    }
    assert!(!jobs.contains("no device is"), "said twice: {jobs}");
    assert!(jobs.contains("mate10pro is reserved until"), "{jobs}");
}

#[test]
fn a_lab_that_was_just_opened_looks_for_phones_before_it_says_that_one_was_never_seen() {
    let Some(farm) = Farm::new() else { return };
    let phones = [farm.phone("P1")];
    let lab = Lab::new(&simulating(&phones, &device("noisy"))).with_phones(&farm);
    let daemon = lab.daemon();
    // It listens, and nothing more is waited for.
    lab.wait_for("a socket", || {
        lab.state().join("lab/daemon.socket").exists()
    });
    let file = lab.path("job.toml");
    let small = "[[devices]]\nserial = \"P1\"\n[measure]\ndesign = \"local\"\nsamples = 6\n";
    std::fs::write(&file, job("alexnet", small)).expect("room");
    let output = lab.run(&["submit", file.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", lab.log());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    daemon.stop();
}

//! Jobs that nothing known to the lab can do.

use layerlab_tests::lab::Lab;

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

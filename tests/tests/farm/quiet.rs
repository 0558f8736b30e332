//! `layerlab profile` makes a phone quiet, and leaves it as it was.

use std::process::Stdio;

use layerlab_tests::farm::Farm;
use layerlab_tests::wait::wait_for;
use layerlab_tests::{output, stderr, succeed};

use super::disturbed::journaled;
use super::profile_on;

/// A gate that a phone passes only if it was made dark: virtual ones are lit when they are switched on.
const DARK: &str = "[gates]\nload-percent = 100\nstorage-free-mebibytes = 0\nscreen-off = true\n";

#[test]
fn a_phone_that_was_profiled_is_as_it_was() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let before = phone.state();
    let config = farm.path("dark.toml");
    std::fs::write(&config, DARK).expect("room");
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    profile_on(&mut command, &phone.address, "pixel6", &out).arg("--config");
    succeed(command.arg(&config));
    assert_eq!(phone.state(), before);
    // Left as it is, it is lit, and not fit.
    std::fs::write(&config, format!("{DARK}[phones]\nquiet = false\n")).expect("room");
    let mut command = farm.layerlab();
    profile_on(&mut command, &phone.address, "pixel6", &out).args([
        "--replace",
        "--patience",
        "1s",
    ]);
    let ended = output(command.arg("--config").arg(&config));
    let said = stderr(&ended);
    assert!(said.contains("screen is on"), "{said}");
    assert_eq!(ended.status.code(), Some(4), "{said}");
}

#[test]
fn a_phone_is_as_it_was_when_its_profile_is_interrupted() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let before = phone.state();
    let mut command = farm.layerlab();
    profile_on(
        &mut command,
        &phone.address,
        "pixel6",
        &farm.path("profile"),
    );
    command.args(["--gap-us", "100000"]);
    command.stderr(Stdio::piped()).stdout(Stdio::null());
    let child = command.spawn().expect("layerlab starts");
    let measures = || journaled(&phone) > 3;
    wait_for("samples in the phone's journal", measures, || {
        format!("{} entries", journaled(&phone))
    });
    assert_ne!(phone.state(), before, "it is quiet meanwhile");
    let process = child.id().to_string();
    succeed(std::process::Command::new("kill").args(["-INT", &process]));
    let ended = child.wait_with_output().expect("a child");
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert_eq!(phone.state(), before, "{said}");
}

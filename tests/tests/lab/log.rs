//! What the service writes into its log.

use layerlab_tests::lab::Lab;
use layerlab_tests::{layerlab, model, stderr};

use super::{SIMULATED, job, wait_for_job};

const ADAPTIVE: &str = "[[devices]]\nserial = \"mate10pro\"\n[measure]\ntarget-ci-percent = 20.0\n";

#[test]
fn the_log_says_what_the_lab_does_with_job_run_and_device_and_without_colour() {
    let lab = Lab::new(SIMULATED);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", ADAPTIVE));
    wait_for_job(&lab);
    daemon.stop();
    let log = lab.log();
    let of_run = "job=1 run=1 device=\"mate10pro\"";
    for line in [
        "submitted job=1".to_owned(),
        format!("began {of_run}"),
        format!("run{{{of_run}}}: "),
        "the job is done job=1".to_owned(),
    ] {
        assert!(log.contains(&line), "{line} in {log}");
    }
    let says = |words: &str| {
        let line = log.lines().find(|line| line.contains(words));
        line.unwrap_or_else(|| panic!("no {words} in {log}"))
    };
    assert!(says("published in").contains(of_run), "{log}");
    assert!(says("measured enough").contains(of_run), "{log}");
    assert!(!log.contains('\u{1b}'), "{log}");
}

#[test]
fn commands_write_no_colour_into_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = layerlab();
    command.args(["profile", "--device", "mate10pro", "--target-ci", "20%"]);
    command.arg("--model").arg(model("alexnet"));
    command.arg("--out").arg(folder.path().join("out"));
    let output = command
        .env("LAYERLAB_LOG", "info")
        .output()
        .expect("layerlab runs");
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("measured enough"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
}

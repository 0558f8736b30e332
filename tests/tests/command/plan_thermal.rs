//! `layerlab plan --thermal`: the same device, cold and steady, has different plans.

use std::path::Path;
use std::process::Command;

use layerlab_profiles::Nanos;
use layerlab_profiles::document::{Measured, Profile, SoakPhase, SoakRow, SoakState};
use layerlab_profiles::soak::MINUTE;
use layerlab_tests::{layerlab, output, root, succeed};

use super::assert_fails;

/// So many times as long everything takes on the NPU of the hot device.
const SLOWDOWN: u64 = 20;

/// A published profile of a cold device, with one of its steady state beside it: the same samples, those of the NPU slower.
fn publish(folder: &Path) {
    let cold = root().join("profiles/published/oneplus7/vocnet-mini");
    let cold = Profile::read(&cold).expect("a published profile");
    let slowed = |processor: &str, time: Nanos| match processor {
        "npu" => Nanos::from_nanos(time.as_nanos() * SLOWDOWN),
        _ => time,
    };
    let mut measured = Measured {
        samples: cold.samples.clone(),
        blocks: cold.blocks.clone(),
        ..Measured::default()
    };
    for sample in &mut measured.samples {
        sample.duration = slowed(&sample.processor, sample.duration);
    }
    for block in &mut measured.blocks {
        for end in [&mut block.before, &mut block.after] {
            end.sentinel = slowed(&block.processor, end.sentinel);
        }
    }
    for (order, processor) in (1_000..).zip(["cpu", "npu"]) {
        let slice = |number: u64| SoakRow {
            processor: processor.to_owned(),
            order,
            phase: SoakPhase::Busy,
            started: Nanos::from_nanos(number * MINUTE.as_nanos() / 10),
            runs: 100,
            median: Nanos::from_millis(20),
            state: SoakState::default(),
        };
        measured.soak.extend((0..120).map(slice));
    }
    let mut header = cold.header.clone();
    for measurement in &mut header.measurements {
        measurement.gap_ns = Nanos::ZERO;
    }
    let steady = Profile::build(header, cold.layers.clone(), measured).expect("steady times");
    std::fs::create_dir(folder).expect("room");
    cold.with_steady(steady).write(folder).expect("room");
}

fn plan(profile: &Path, more: &[&str]) -> Command {
    let mut command = layerlab();
    command.args([
        "plan",
        "min-time",
        "--accuracy",
        "0.1",
        "--algorithm",
        "fastest",
    ]);
    command.arg(profile).args(more);
    command
}

#[test]
fn a_plan_is_made_of_the_times_of_the_state_that_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("profile");
    publish(&profile);
    let json = |more: &[&str]| -> serde_json::Value {
        let said = succeed(plan(&profile, &["--json"]).args(more));
        serde_json::from_str(&said).expect("JSON")
    };
    let (usual, cold) = (json(&[]), json(&["--thermal", "cold"]));
    assert_eq!(usual, cold);
    let steady = json(&["--thermal", "steady"]);
    let combination = |plan: &serde_json::Value| plan["outcomes"][0]["plan"]["combination"].clone();
    assert_eq!(combination(&cold), "11111111111");
    assert_eq!(combination(&steady), "00000000000");
    assert_eq!(cold["source"]["thermal"], serde_json::Value::Null);
    assert_eq!(steady["source"]["thermal"], "steady");
    let said = succeed(&mut plan(&profile, &["--thermal", "steady"]));
    assert!(said.contains("those of the steady state"), "{said}");
}

#[test]
fn states_that_were_not_measured_and_cold_verification_of_steady_plans_are_refused() {
    let cold = root().join("profiles/published/oneplus7/vocnet-mini");
    let run = output(&mut plan(&cold, &["--thermal", "steady"]));
    assert_fails(&run, 3, &["no steady times", "--steady"]);
    let run = output(&mut plan(&cold, &["--thermal", "warm"]));
    assert_eq!(run.status.code(), Some(2));
    let folder = tempfile::tempdir().expect("a folder");
    let profile = folder.path().join("profile");
    publish(&profile);
    let model = root().join("tests/models/vocnet-mini.onnx");
    let mut command = plan(&profile, &["--thermal", "steady", "--verify", "oneplus7"]);
    let run = output(command.arg("--model").arg(model));
    assert_fails(
        &run,
        3,
        &["--verify measures a cool device", "--thermal cold"],
    );
}

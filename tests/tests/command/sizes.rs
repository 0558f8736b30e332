//! A model with an open dimension: profiled at several sizes by one command, and calculated between them.

use std::path::Path;
use std::process::Command;

use layerlab_tests::{layerlab, model, output, succeed};
use serde_json::Value;

use super::assert_fails;

fn profile(sizes: &str, out: &Path) -> Command {
    let mut command = layerlab();
    command
        .arg("profile")
        .arg("--model")
        .arg(model("variants/symbolic-size"));
    command.args(["--device", "mate10pro", "--dim", "W=32", "--dim", sizes]);
    command.arg("--out").arg(out);
    command
}

fn interpolate(height: u64, folders: &[&Path]) -> Command {
    let mut command = layerlab();
    command
        .arg("interpolate")
        .arg("--model")
        .arg(model("variants/symbolic-size"));
    command.args(["--dim", "W=32", "--dim", &format!("H={height}")]);
    command.args(folders);
    command
}

/// The time of all layers on each processor.
fn wholes(profile: &Value) -> Vec<f64> {
    let processors = profile["whole"].as_array().expect("processors");
    assert_eq!(processors.len(), 2);
    let times = processors.iter().map(|one| one["time_ns"].as_f64());
    times.collect::<Option<_>>().expect("times")
}

/// An open batch is an open dimension like others.
#[test]
fn batches_are_profiled_as_other_sizes_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("batches");
    let of_batch = |subcommand: &str, dim: &str| {
        let mut command = layerlab();
        let model = model("variants/symbolic-batch");
        command
            .args([subcommand, "--dim", dim, "--model"])
            .arg(model);
        command
    };
    let mut profile = of_batch("profile", "N=1,4");
    succeed(profile.args(["--device", "mate10pro", "--out"]).arg(&out));
    let folders = [1_u64, 4].map(|batch| (batch, out.join(format!("N={batch}"))));
    for (batch, folder) in &folders {
        let header = std::fs::read(folder.join("profile.json")).expect("published");
        let header: Value = serde_json::from_slice(&header).expect("JSON");
        let shape = &header["model"]["inputs"][0]["shape"];
        assert_eq!(*shape, serde_json::json!([batch, 3, 8, 8]));
    }
    let [one, two, four] = [1, 2, 4].map(|batch| {
        let mut command = of_batch("interpolate", &format!("N={batch}"));
        command.args(folders.each_ref().map(|(_, folder)| folder));
        let said = succeed(command.arg("--json"));
        wholes(&serde_json::from_str(&said).expect("JSON"))
    });
    let ascends =
        |processor: usize| one[processor] < two[processor] && two[processor] < four[processor];
    assert!(ascends(0) && ascends(1), "{one:?}, {two:?}, {four:?}");
}

#[test]
fn what_lies_between_two_sizes_is_what_is_measured_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join("sizes").join(name);
    succeed(&mut profile("H=64,256,1024", &folder.path().join("sizes")));
    let folders = [at("H=64"), at("H=256"), at("H=1024")];
    let folders: Vec<&Path> = folders.iter().map(|it| it.as_path()).collect();
    let said = succeed(interpolate(640, &folders).arg("--json"));
    let calculated: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(calculated["simulated"], true);
    assert_eq!(
        calculated["sizes"],
        serde_json::json!({ "H": 640, "W": 32 })
    );
    // At a size that was profiled it is what was measured there, and so is what one between two others is compared with.
    let itself = succeed(interpolate(256, &folders).arg("--json"));
    let itself: Value = serde_json::from_str(&itself).expect("JSON");
    let left_out = calculated["left_out"].as_array().expect("one size");
    assert_eq!(left_out.len(), 1);
    assert_eq!(left_out[0]["profile"], at("H=256").to_str().expect("UTF-8"));
    let without = succeed(interpolate(256, &[folders[0], folders[2]]).arg("--json"));
    let without: Value = serde_json::from_str(&without).expect("JSON");
    let processors = left_out[0]["processors"].as_array().expect("processors");
    assert_eq!(processors.len(), 2);
    for (place, missed) in processors.iter().enumerate() {
        let share = wholes(&without)[place] / wholes(&itself)[place] - 1.0;
        assert!((missed["whole_error"].as_f64().expect("a share") - share).abs() < 1e-6);
        // The simulator's times are linear in operations and bytes, but for what its phone's clock and noise do.
        assert!(share.abs() < 0.05, "{missed}");
    }
    let measured = folder.path().join("measured");
    succeed(&mut profile("H=640", &measured));
    let measured = succeed(interpolate(640, &[&measured, folders[0]]).arg("--json"));
    let measured: Value = serde_json::from_str(&measured).expect("JSON");
    for (calculated, measured) in wholes(&calculated).iter().zip(wholes(&measured)) {
        let apart = calculated / measured - 1.0;
        assert!(apart.abs() < 0.05, "{calculated} instead of {measured}");
    }
    let table = succeed(&mut interpolate(640, &folders));
    assert!(
        table.contains("calculated from the profiles of 3 sizes for H=640, W=32"),
        "{table}"
    );
    assert!(table.contains("H=256: all layers on cpu"), "{table}");
}

#[test]
fn what_cannot_be_calculated_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let sizes = folder.path().join("sizes");
    succeed(&mut profile("H=16,32", &sizes));
    let (small, large) = (sizes.join("H=16"), sizes.join("H=32"));
    let outside = output(&mut interpolate(48, &[&small, &large]));
    assert_fails(
        &outside,
        3,
        &["outside of what was profiled", "a larger one"],
    );
    let alone = output(&mut interpolate(16, &[&small]));
    assert_fails(&alone, 3, &["two sizes or more"]);
    let mut command = layerlab();
    command
        .arg("interpolate")
        .arg("--model")
        .arg(model("variants/residual"));
    let other = output(command.args([&small, &large]));
    assert_fails(
        &other,
        3,
        &["of another model", "give the model that was profiled"],
    );
    let mut twice = layerlab();
    twice
        .arg("profile")
        .arg("--model")
        .arg(model("variants/symbolic-size"));
    twice.args([
        "--device",
        "mate10pro",
        "--dim",
        "W=8,16",
        "--dim",
        "H=8,16",
        "--out",
    ]);
    let twice = output(twice.arg(folder.path().join("twice")));
    assert_fails(&twice, 2, &["W and H both have several sizes"]);
    assert!(!folder.path().join("twice").exists());
}

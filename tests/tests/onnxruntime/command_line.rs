//! The options of layerlab itself: the runtimes go to the host's agent, and what is wrong with them is said in one
//! sentence, with the exit code of unusable input.

use std::path::PathBuf;
use std::process::Command;

use layerlab_tests::{layerlab, model, output, stderr};

use super::{SOC, folders};

/// `layerlab` on a host that has ONNX Runtime of the first of `folders`.
pub(super) fn on_host(folders: &(PathBuf, PathBuf)) -> Command {
    let mut command = layerlab();
    command.env("LAYERLAB_ONNXRUNTIME", &folders.0);
    command
}

/// The same with an emulated Hexagon, by the libraries of the second.
pub(super) fn on_hexagon(folders: &(PathBuf, PathBuf)) -> Command {
    let mut command = on_host(folders);
    command
        .env("LAYERLAB_QNN", &folders.1)
        .env("LAYERLAB_EMULATE", SOC);
    command
}

const INPUT: i32 = 3;

/// `command` with these options refuses to list what the host has, in one sentence with all of `words`.
#[track_caller]
fn refuses(mut command: Command, options: &[&str], words: &[&str]) {
    command.args(["model", "support", "--device", "host"]);
    let output = output(command.arg(model("alexnet")).args(options));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(INPUT), "{said}");
    assert_eq!(said.lines().count(), 1, "one sentence: {said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
}

#[test]
fn a_folder_without_onnx_runtime_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("plain text");
    refuses(
        layerlab(),
        &["--onnxruntime", path],
        &[path, "libonnxruntime.so"],
    );
    refuses(layerlab(), &["--qnn", path], &["--qnn", "--onnxruntime"]);
    refuses(
        layerlab(),
        &["--as-accelerator", "cpu:ort-all"],
        &["--as-accelerator", "--onnxruntime"],
    );
}

#[test]
fn a_chip_that_nobody_knows_is_refused_with_those_that_are_known() {
    let Some(folders) = folders() else {
        return;
    };
    let (onnxruntime, qnn) = (
        folders.0.display().to_string(),
        folders.1.display().to_string(),
    );
    let unknown = ["--qnn", &qnn, "--emulate", "SM1"];
    refuses(on_host(&folders), &unknown, &["SM1", SOC]);
    // A computer has no Hexagon of its own.
    refuses(on_host(&folders), &["--qnn", &qnn], &["--emulate"]);
    refuses(
        on_host(&folders),
        &["--as-accelerator", "cpu:ort-none"],
        &["cpu:ort-none", "cpu:ort-all"],
    );
    // Its own folder has no provider of Qualcomm's.
    let wrong = ["--qnn", &onnxruntime, "--emulate", SOC];
    refuses(
        on_host(&folders),
        &wrong,
        &["libonnxruntime_providers_qnn.so"],
    );
}

#[test]
fn a_quantised_model_without_pairs_is_refused() {
    let mut command = layerlab();
    command.args(["model", "support", "--device", "host"]);
    command.arg(model("alexnet"));
    let output = output(command.arg("--quantised").arg(model("alexnet")));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(INPUT), "{said}");
    let sentence =
        "has no pair of QuantizeLinear and DequantizeLinear: make one with `layerlab quantise`";
    assert!(said.contains(sentence), "{said}");
}

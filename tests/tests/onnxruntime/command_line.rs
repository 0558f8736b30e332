//! The options of layerlab itself: the runtimes go to the host's agent, and what is wrong with them is said in one
//! sentence, with the exit code of unusable input.

use std::path::PathBuf;
use std::process::Command;

use layerlab_tests::{layerlab, model, output, stderr};

use super::{SOC, folders};

/// `layerlab` on a host that has ONNX Runtime of the first of `folders`.
pub(super) fn on_host(folders: &(PathBuf, PathBuf)) -> Command {
    let mut command = layerlab();
    command.arg("--onnxruntime").arg(&folders.0);
    command
}

/// The same with an emulated Hexagon, by the libraries of the second.
pub(super) fn on_hexagon(folders: &(PathBuf, PathBuf)) -> Command {
    let mut command = on_host(folders);
    command
        .arg("--qnn")
        .arg(&folders.1)
        .args(["--emulate", SOC]);
    command
}

const INPUT: i32 = 3;

/// `command` refuses to list what the host has, in one sentence with all of `words`.
#[track_caller]
fn refuses(command: &mut Command, words: &[&str]) {
    let output = output(
        command
            .args(["model", "support", "--device", "host"])
            .arg(model("alexnet")),
    );
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
        layerlab().args(["--onnxruntime", path]),
        &[path, "libonnxruntime.so"],
    );
    refuses(
        layerlab().args(["--qnn", path]),
        &["--qnn", "--onnxruntime"],
    );
    refuses(
        layerlab().args(["--as-accelerator", "cpu:ort-all"]),
        &["--as-accelerator", "--onnxruntime"],
    );
}

#[test]
fn a_chip_that_nobody_knows_is_refused_with_those_that_are_known() {
    let Some(folders) = folders() else {
        return;
    };
    let mut command = on_host(&folders);
    command.arg("--qnn").arg(&folders.1);
    refuses(command.args(["--emulate", "SM1"]), &["SM1", SOC]);
    // A computer has no Hexagon of its own.
    let mut command = on_host(&folders);
    refuses(command.arg("--qnn").arg(&folders.1), &["--emulate"]);
    let mut command = on_host(&folders);
    refuses(
        command.args(["--as-accelerator", "cpu:ort-none"]),
        &["cpu:ort-none", "cpu:ort-all"],
    );
    // Its own folder has no provider of Qualcomm's.
    let mut command = on_host(&folders);
    command
        .arg("--qnn")
        .arg(&folders.0)
        .args(["--emulate", SOC]);
    refuses(&mut command, &["libonnxruntime_providers_qnn.so"]);
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

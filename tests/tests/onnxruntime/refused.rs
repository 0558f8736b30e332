//! What is wrong with the options is said in one sentence, with the exit code of unusable input.

use std::process::Command;

use layerlab_tests::{layerlab, model, output, stderr};

use super::{Libraries, SOC};

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
    let Some(libraries) = Libraries::find() else {
        return;
    };
    let mut command = libraries.on_host();
    command.arg("--qnn").arg(&libraries.qnn);
    refuses(command.args(["--emulate", "SM1"]), &["SM1", SOC]);
    // A computer has no Hexagon of its own.
    let mut command = libraries.on_host();
    refuses(command.arg("--qnn").arg(&libraries.qnn), &["--emulate"]);
    let mut command = libraries.on_host();
    refuses(
        command.args(["--as-accelerator", "cpu:ort-none"]),
        &["cpu:ort-none", "cpu:ort-all"],
    );
    // Its own folder has no provider of Qualcomm's.
    let mut command = libraries.on_host();
    command
        .arg("--qnn")
        .arg(&libraries.onnxruntime)
        .args(["--emulate", SOC]);
    refuses(&mut command, &["libonnxruntime_providers_qnn.so"]);
}

//! int8 models by the real program: from pictures to a model that is read again; and whatever is wrong with either.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_tests::{layerlab, model, output, root, succeed};

use super::assert_fails;

const USAGE: i32 = 2;
const INPUT: i32 = 3;
const OUTPUT: i32 = 5;

/// The first ten committed scenes as an evaluation set.
fn scenes(folder: &Path, size: &str) -> PathBuf {
    let scenes = root().join("tests/models/scenes");
    let out = folder.join(format!("{size}.set"));
    let mut set = layerlab();
    set.arg("set")
        .arg("--coco")
        .arg(scenes.join("annotations.json"));
    set.arg("--images").arg(scenes.join("images"));
    set.args([
        "--size",
        size,
        "--metric",
        "multi-label",
        "--limit",
        "10",
        "--out",
    ]);
    succeed(set.arg(&out));
    out
}

fn quantise(model: &Path, set: &Path, out: &Path) -> Command {
    let mut command = layerlab();
    command.arg("quantise").arg(model);
    command.arg("--set").arg(set).arg("--out").arg(out);
    command
}

fn layers(model: &Path) -> serde_json::Value {
    let mut inspect = layerlab();
    let said = succeed(inspect.args(["model", "inspect", "--json"]).arg(model));
    serde_json::from_str(&said).expect("JSON")
}

#[test]
fn vocnet_mini_has_the_same_layers_in_8_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = scenes(folder.path(), "112x112");
    let float = model("vocnet-mini");
    let mut made = Vec::new();
    for name in ["one.onnx", "two.onnx"] {
        let out = folder.path().join(name);
        let said = succeed(quantise(&float, &set, &out).arg("--json"));
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        assert_eq!(said["layers"], 11);
        assert_eq!(said["weights"], 8);
        assert_eq!(
            (&said["images"], &said["images_of_set"]),
            (&5.into(), &10.into())
        );
        made.push(std::fs::read(&out).expect("a model"));
        assert_eq!(said["sha256"], layerlab_profiles::sha256(&made[0]));
    }
    assert_eq!(made[0], made[1], "the same pictures give the same bytes");
    assert!(made[0].len() * 3 < std::fs::metadata(&float).expect("a model").len() as usize);

    let (before, after) = (layers(&float), layers(&folder.path().join("one.onnx")));
    let (before, after) = (
        before.as_array().expect("rows"),
        after.as_array().expect("rows"),
    );
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(after) {
        for column in ["name", "input_bytes", "output_bytes"] {
            assert_eq!(before[column], after[column]);
        }
        let operators = after["operators"].as_array().expect("operators");
        assert!(operators.contains(&"DequantizeLinear".into()), "{after}");
    }

    let other = folder.path().join("three.onnx");
    let mut options = quantise(&float, &set, &other);
    options.args([
        "--weights",
        "per-tensor",
        "--ranges",
        "percentile",
        "--limit",
        "3",
    ]);
    let said = succeed(&mut options);
    assert!(
        said.contains("ranges of 3 of 10 images: every second one"),
        "{said}"
    );
    assert_ne!(std::fs::read(&other).expect("a model"), made[0]);
}

#[test]
fn what_cannot_be_quantised_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = scenes(folder.path(), "64x64");
    let out = folder.path().join("out.onnx");
    let (vocnet, inception) = (model("vocnet-mini"), model("inception"));

    let said = output(
        layerlab()
            .arg("quantise")
            .arg(&vocnet)
            .arg("--out")
            .arg(&out),
    );
    assert_eq!(said.status.code(), Some(USAGE));
    let fails = |command: &mut Command, code, words: &[&str]| {
        assert_fails(&output(command), code, words);
        assert!(!out.exists());
    };
    fails(
        &mut quantise(&vocnet, &set, &out),
        INPUT,
        &["1x3x112x112", "1x3x64x64"],
    );
    fails(
        &mut quantise(&vocnet, &folder.path().join("none.set"), &out),
        INPUT,
        &["none.set"],
    );
    let quantised = root().join("tests/models/quantised/inception.onnx");
    fails(
        &mut quantise(&quantised, &set, &out),
        INPUT,
        &["quantised already", "inception.onnx"],
    );

    std::fs::write(&out, "mine").expect("room");
    let said = output(&mut quantise(&inception, &set, &out));
    assert_fails(&said, OUTPUT, &["out.onnx", "--replace"]);
    assert_eq!(std::fs::read(&out).expect("still there"), b"mine");
    succeed(quantise(&inception, &set, &out).arg("--replace"));
    assert_ne!(std::fs::read(&out).expect("a model"), b"mine");
}

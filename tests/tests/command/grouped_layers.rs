//! `layerlab model group`: a transformer by its blocks, through the whole way to a profile; and rules that are wrong.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_tests::{layerlab, model, output, root, succeed};

use super::assert_fails;

const INPUT: i32 = 3;
const OUTPUT: i32 = 5;

fn rules(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("layers.toml");
    std::fs::write(&path, text).expect("a file");
    path
}

fn group(model: &Path, rules: &Path, out: &Path) -> Command {
    let mut command = layerlab();
    command.args(["model", "group"]).arg(model);
    command.arg("--layers").arg(rules).arg("--out").arg(out);
    command
}

#[test]
fn a_transformer_is_profiled_by_its_blocks() {
    let folder = tempfile::tempdir().expect("a folder");
    let committed = root().join("tests/models/bert-layers.toml");
    let out = folder.path().join("bert-blocks.onnx");
    let said = succeed(&mut group(&model("bert"), &committed, &out));
    assert!(
        said.starts_with("bert: 27 layers, 98 before; 25 of them are named by "),
        "{said}"
    );
    let inspected = succeed(layerlab().args(["model", "inspect", "--json"]).arg(&out));
    let layers: serde_json::Value = serde_json::from_str(&inspected).expect("JSON");
    let names: Vec<&str> = (layers.as_array().expect("rows").iter())
        .map(|layer| layer["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        names[..4],
        ["embeddings", "attention 0", "mlp 0", "attention 1"]
    );
    assert_eq!(names[25..], ["/pooler/dense/Gemm", "/classifier/Gemm"]);

    let profile = folder.path().join("profile");
    let mut run = layerlab();
    run.args(["profile", "--device", "pixel6", "--budget", "5s", "--model"])
        .arg(&out);
    succeed(run.arg("--out").arg(&profile));
    let table = std::fs::read_to_string(profile.join("layers.csv")).expect("layers");
    assert!(
        table.contains("attention 11") && table.contains("mlp 11"),
        "{table}"
    );

    // The copy has its layers, and is not grouped again.
    assert_fails(
        &output(&mut group(
            &out,
            &committed,
            &folder.path().join("again.onnx"),
        )),
        INPUT,
        &["names its layers already: give the model that it was made of"],
    );
    assert_fails(
        &output(&mut group(&model("bert"), &committed, &out)),
        OUTPUT,
        &["exists already"],
    );
}

#[test]
fn rules_that_are_wrong_are_refused_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.onnx");
    for (text, sentence) in [
        (
            "[[layer]]\nnodes = 'x'\n",
            "missing field `name`; write `[[layer]]` with `nodes` and `name` for each rule",
        ),
        (
            "[[layer]]\nnodes = '('\nname = \"a\"\n",
            "`nodes` of rule 1 is no regular expression: error: unclosed group",
        ),
        ("nodes = \n", "is no TOML, line 1"),
        ("layer = []\n", "there is no rule; write `[[layer]]`"),
        (
            "[[layer]]\nnodes = '^/decoder/'\nname = \"a\"\n",
            "rule 1 (`^/decoder/`) decides for no node of the model, whose nodes are called \
             `/embeddings/word_embeddings/Gather` and the like",
        ),
        (
            "[[layer]]\nnodes = '/query/|/classifier/'\nname = \"a\"\n[[layer]]\nnodes = '/pooler/'\nname = \"b\"\n",
            "the layers `a` and `b` need what the other gives, so that neither can run first: make them one layer",
        ),
    ] {
        assert_fails(
            &output(&mut group(
                &model("bert"),
                &rules(folder.path(), text),
                &out,
            )),
            INPUT,
            &[sentence],
        );
        assert!(!out.exists());
    }
    assert_fails(
        &output(&mut group(
            &model("bert"),
            &folder.path().join("none.toml"),
            &out,
        )),
        INPUT,
        &["cannot read the file of layer rules"],
    );
}

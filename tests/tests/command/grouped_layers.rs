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

/// A decoder's cache belongs to the layers that read it: what crosses its cuts is one tensor, and the profile says what else each
/// layer takes and gives.
#[test]
fn a_decoder_is_profiled_with_its_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let committed = root().join("tests/models/gpt2-layers.toml");
    let out = folder.path().join("gpt2-blocks.onnx");
    let said = succeed(&mut group(&model("gpt2-decode"), &committed, &out));
    assert!(
        said.starts_with("gpt2-decode: 6 layers, 13 before; 6 of them are named by "),
        "{said}"
    );
    for (device, processor) in [("host", "cpu:all"), ("pixel6", "npu")] {
        let profile = folder.path().join(device);
        let mut run = layerlab();
        run.args(["profile", "--device", device, "--budget", "5s", "--model"])
            .arg(&out);
        succeed(run.arg("--out").arg(&profile));
        let table = std::fs::read_to_string(profile.join("layers.csv")).expect("layers");
        // Two caches of two heads, 32 words and 8 values go into an attention, and come back with one word more.
        let mut sizes = Vec::new();
        for row in table.lines() {
            let cells: Vec<&str> = row.split(',').collect();
            sizes.push([1, 4, 5, 8, 9].map(|column| cells[column]).join(" "));
        }
        assert_eq!(
            sizes,
            [
                "name input_bytes output_bytes model_input_bytes model_output_bytes",
                "embeddings 8 64 0 0",
                "attention 0 64 64 4096 4224",
                "mlp 0 64 64 0 0",
                "attention 1 64 64 4096 4224",
                "mlp 1 64 64 0 0",
                "head 64 4188 0 0",
            ]
        );
        succeed(layerlab().arg("check").arg(&profile));
        let shown = succeed(layerlab().args(["show", "--wide"]).arg(&profile));
        for word in ["model input", "4.1 KiB", processor] {
            assert!(shown.contains(word), "`{word}` is missing in: {shown}");
        }
    }
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

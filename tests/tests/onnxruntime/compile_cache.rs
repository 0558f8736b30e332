//! What was compiled once is not compiled again, gives the same bits, and is compiled again where it was damaged.

use std::path::PathBuf;
use std::process::Command;

use layerlab_tests::{agent_program, succeed};

use super::{Lab, SOC, folders, input, network, with_hexagon};

/// The compiled models of a lab.
fn compiled(lab: &Lab) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(lab.state.path().join("compiled")).expect("a folder");
    let files = entries.map(|entry| entry.expect("an entry").path());
    files
        .filter(|file| file.extension().is_some_and(|ending| ending == "onnx"))
        .collect()
}

#[test]
fn a_segment_from_the_cache_gives_the_bits_of_a_fresh_one() {
    let Some(folders) = folders() else { return };
    let mut lab = Lab::open(with_hexagon(folders, SOC));
    assert_eq!(compiled(&lab).len(), 0, "a probe is not kept");
    let model = network("vocnet-mini");
    let whole = (1, model.model().layer_count());
    let input = input(&model);
    let mut session = lab.load("qnn-htp-f16", &model, whole);
    let fresh = session.outputs(&input).expect("outputs");
    let proof = session.placed();
    assert_eq!(session.compiled(), Some(true));
    drop(session);
    let files = compiled(&lab);
    assert_eq!(files.len(), 1, "{files:?}");
    let content = std::fs::read(&files[0]).expect("a file");
    let written = std::fs::metadata(&files[0])
        .and_then(|data| data.created())
        .ok();

    let mut session = lab.load("qnn-htp-f16", &model, whole);
    assert_eq!(session.outputs(&input).expect("outputs"), fresh);
    assert_eq!(session.compiled(), Some(false));
    // The proof is that of the nodes that were compiled.
    assert_eq!(session.placed(), proof);
    drop(session);
    assert_eq!(compiled(&lab), files);
    let again = std::fs::metadata(&files[0])
        .and_then(|data| data.created())
        .ok();
    assert_eq!(written, again, "it was compiled again");

    std::fs::write(&files[0], &content[..content.len() / 2]).expect("damaged");
    assert_eq!(lab.outputs("qnn-htp-f16", &model, whole, &input), fresh);
    assert_eq!(compiled(&lab), files);
    assert_eq!(
        std::fs::read(&files[0]).expect("a file").len(),
        content.len()
    );
}

#[test]
fn another_soc_finds_nothing_of_it() {
    let Some(folders) = folders() else { return };
    let model = network("vocnet-mini");
    let name = |soc| {
        let mut lab = Lab::open(with_hexagon(folders.clone(), soc));
        lab.load("qnn-htp-f16", &model, (1, 1));
        compiled(&lab)[0].file_name().expect("a name").to_owned()
    };
    assert_ne!(name(SOC), name("SM8650"));
    assert_eq!(name(SOC), name(SOC));
}

#[test]
fn what_was_compiled_for_another_soc_is_not_run() {
    let Some(folders) = folders() else { return };
    let model = network("vocnet-mini");
    let whole = (1, model.model().layer_count());
    let input = input(&model);
    let mut lab = Lab::open(with_hexagon(folders.clone(), SOC));
    let mut other = Lab::open(with_hexagon(folders, "SM8350"));
    let expected = lab.outputs("qnn-htp-f16", &model, whole, &input);
    other.load("qnn-htp-f32", &model, whole);
    // Under the name that this one's has, and with a hash that is right.
    let (ours, theirs) = (compiled(&lab).remove(0), compiled(&other).remove(0));
    for ending in ["onnx", "json"] {
        let (from, to) = (theirs.with_extension(ending), ours.with_extension(ending));
        std::fs::copy(from, to).expect("a copy");
    }
    let mut session = lab.load("qnn-htp-f16", &model, whole);
    assert_eq!(session.compiled(), Some(true), "it was read from the cache");
    assert_eq!(session.outputs(&input).expect("outputs"), expected);
}

#[test]
fn nothing_is_written_at_home_nor_where_the_agent_was_started() {
    let Some((onnxruntime, qnn)) = folders() else {
        return;
    };
    let (home, current) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let mut describe = Command::new(agent_program());
    describe.current_dir(&current).env("HOME", home.path());
    describe
        .arg("describe")
        .arg("--onnxruntime")
        .arg(onnxruntime);
    describe.arg("--qnn").arg(qnn).args(["--emulate", SOC]);
    assert!(succeed(&mut describe).contains("qnn-htp-i8"));
    for folder in [home.path(), current.path()] {
        let left = std::fs::read_dir(folder).expect("a folder").count();
        assert_eq!(left, 0, "something was left in {}", folder.display());
    }
}

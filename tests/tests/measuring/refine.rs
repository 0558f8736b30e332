//! `plan --refine`: what may change a plan is measured on the device, kept beside the profile, and learnt from later.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_profiles::Placement;
use layerlab_profiles::document::ProfileDigest;
use layerlab_tests::{device, file, layerlab, model, output, stderr, succeed};
use serde_json::Value;

const INPUT: i32 = 3;
const USAGE: i32 = 2;

/// A published profile with the accuracy of 60 random placements on 40 scenes, and these scenes.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench {
            folder: tempfile::tempdir().expect("a folder"),
        };
        bench.make_set("scenes.set", "40");
        let mut profile = layerlab();
        profile
            .arg("profile")
            .arg("--model")
            .arg(model("vocnet-mini"));
        profile.arg("--device").arg(device("oneplus7"));
        profile.args(["--design", "local", "--samples", "6", "--gap-us", "0"]);
        profile.arg("--set").arg(bench.path("scenes.set"));
        profile.args(["--placements", "60"]);
        succeed(profile.arg("--out").arg(bench.profile()));
        bench
    }

    fn make_set(&self, name: &str, images: &str) {
        let scenes = file("models/scenes");
        let mut command = layerlab();
        command.args(["set", "--metric", "multi-label"]);
        command.arg("--coco").arg(scenes.join("annotations.json"));
        command.arg("--images").arg(scenes.join("images"));
        command.args(["--size", "112x112", "--limit", images]);
        succeed(command.arg("--out").arg(self.path(name)));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn profile(&self) -> PathBuf {
        self.path("profile")
    }

    fn plan(&self, options: &[&str]) -> Command {
        let mut command = layerlab();
        command.args(["plan", "max-accuracy", "--time", "1500us"]);
        command.args(options).arg(self.profile());
        command
    }

    /// The same with all that refining needs, on this phone and these images.
    fn refine(&self, phone: &Path, set: &str) -> Command {
        let mut command = self.plan(&["--refine", "6"]);
        command.arg("--rows").arg(self.path("rows.json"));
        command.arg("--verify").arg(phone);
        command.arg("--model").arg(model("vocnet-mini"));
        command.arg("--set").arg(self.path(set));
        command
    }

    fn rows(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path("rows.json")).expect("rows");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(document["format"], "layerlab-measured-rows");
        let runs = document["runs"].as_array().expect("runs");
        let rows = document["rows"].as_array().expect("rows").clone();
        for row in &rows {
            assert!(runs.iter().any(|run| run["run"] == row["run"]), "{row}");
        }
        rows
    }
}

#[track_caller]
fn refused(command: &mut Command, code: i32, words: &[&str]) {
    let output = output(command);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
}

#[test]
fn what_may_change_a_plan_is_measured_and_kept_beside_the_profile() {
    let bench = Bench::new();
    let phone = device("oneplus7");
    let digest = ProfileDigest::of_folder(&bench.profile()).expect("a digest");

    let said = succeed(&mut bench.refine(&phone, "scenes.set"));
    let rows = bench.rows();
    assert!((1..=6).contains(&rows.len()), "{rows:?}");
    assert!(
        said.contains(&format!("rows.json: {}.", rows.len())),
        "{said}"
    );
    let is_sure = said.contains("Sure (placements measured");
    assert!(is_sure || rows.len() == 6, "{said}");
    assert!(
        is_sure || said.contains("Not sure (placements measured: 6 of 6)"),
        "{said}"
    );
    let measured = |line: &str| line.starts_with("accuracy ") && line.ends_with(", measured");
    assert!(said.lines().any(measured), "{said}");
    let since = format!("with placements measured since: {}.", rows.len());
    assert!(said.contains(&since), "{said}");
    // Each as the device answers it, and beside the profile, which is as it was.
    for row in &rows {
        let placement: Placement = row["combination"]
            .as_str()
            .and_then(|digits| digits.parse().ok())
            .expect("digits");
        let mut evaluate = layerlab();
        evaluate.args(["evaluate", "--json", "--combination"]);
        evaluate.arg(placement.to_string());
        evaluate.arg("--model").arg(model("vocnet-mini"));
        evaluate.arg("--device").arg(&phone);
        evaluate.arg("--set").arg(bench.path("scenes.set"));
        let json: Value = serde_json::from_str(&succeed(&mut evaluate)).expect("JSON");
        let found = json["combinations"].as_array().expect("rows").iter();
        let mut found = found.filter(|one| one["combination"] == row["combination"]);
        assert_eq!(found.next().expect("evaluated")["loss"], row["loss"]);
    }
    let after = ProfileDigest::of_folder(&bench.profile()).expect("a digest");
    assert_eq!(digest.to_string(), after.to_string());

    // A later plan learns from them, on whichever machine, and measures no placement twice.
    let rows_file = bench.path("rows.json");
    let mut later = bench.plan(&[]);
    later.arg("--rows").arg(&rows_file);
    let planned = succeed(&mut later);
    assert!(planned.contains(&since), "{planned}");
    succeed(&mut bench.refine(&phone, "scenes.set"));
    let mut all: Vec<String> = bench
        .rows()
        .iter()
        .map(|row| row["combination"].to_string())
        .collect();
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "a placement was measured twice");

    // Rows belong to one profile.
    let text = std::fs::read_to_string(&rows_file).expect("rows");
    let other = text.replace(&digest.to_string(), &"0".repeat(64));
    std::fs::write(&rows_file, other).expect("room");
    refused(&mut later, INPUT, &["rows.json", "name another file"]);
    std::fs::write(&rows_file, "{}").expect("room");
    refused(&mut later, INPUT, &["holds no measured rows"]);
    std::fs::remove_file(&rows_file).expect("it was there");
    refused(&mut later, INPUT, &["rows.json"]);
}

#[test]
fn refining_without_images_or_on_another_phone_is_refused() {
    let bench = Bench::new();
    let phone = device("oneplus7");
    refused(
        &mut bench.plan(&["--refine", "6"]),
        USAGE,
        &["--verify", "--set"],
    );
    let mut heuristic = bench.refine(&phone, "scenes.set");
    heuristic.args(["--algorithm", "heuristic"]);
    refused(
        &mut heuristic,
        USAGE,
        &["--refine is for the algorithm mlmp"],
    );
    let mut other = bench.refine(&device("mate10pro"), "scenes.set");
    refused(
        &mut other,
        INPUT,
        &["the profile is of the device", "--verify"],
    );
    bench.make_set("fewer.set", "30");
    let mut fewer = bench.refine(&phone, "fewer.set");
    refused(&mut fewer, INPUT, &["another evaluation set"]);
    assert!(!bench.path("rows.json").exists());
}

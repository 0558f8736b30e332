//! Every version of the format that was published is read, and its example never changes: profiles outlive programs.
//!
//! The examples lie in `tests/versions`. DO NOT CHANGE their bytes; a new version of the format gets an example of its
//! own.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::everything::{everything, everything_of_version_4};
use common::{CPU, NPU, good_profile};
use layerlab_profiles::check::{Finding, Severity, check};
use layerlab_profiles::document::{DIGEST_FILE, Method, PROFILE_JSON, Profile, Provenance};
use layerlab_profiles::{Nanos, sha256};

/// The SHA-256 of each example's `profile.json`, which has those of the tables.
const EXAMPLES: [(&str, &str); 3] = [
    (
        "3",
        "7e7f5aead6e2dae4681db0ae622232fd1fb4cc3260221bf4ee5a124fbed44399",
    ),
    (
        "4",
        "00f51ed9683ab09bb2de945603580fba32cbf6c7b3624f07cc3e4b98092f09e2",
    ),
    (
        "5",
        "93d3127df1036df142861143909fb094ff3dc3cc0c117c7c6f6a26aafdc6e3fa",
    ),
];

/// Likewise of the profiles that ship with the repository, which are of version 3.
const PUBLISHED: [(&str, &str); 4] = [
    (
        "mate10pro/vocnet-mini",
        "9f58e06e0013c729491137a21fd9bf4572f325c0c9727bbe2224e0b557403b22",
    ),
    (
        "mate10pro/yolo-mini",
        "06ca97b2cf71b644366cb6aea367d9dd0173b7c27c9bcb29f7027ec74cd851b2",
    ),
    (
        "oneplus7/vocnet-mini",
        "933a0c3dfdff8a4d7db385e2175f2139ce28316ebc15234d1354748b8e4697ff",
    ),
    (
        "oneplus7/yolo-mini",
        "0307a43e615b66e9aad535401a6ac56c8982157fa5a4c9571aebb552acfb6a8a",
    ),
];

fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn example(version: &str) -> PathBuf {
    in_crate("tests/versions").join(version)
}

/// `LAYERLAB_UPDATE_EXAMPLE=1` writes the newest version's, which only who makes that version may do.
#[test]
fn the_examples_are_what_they_were() {
    if std::env::var_os("LAYERLAB_UPDATE_EXAMPLE").is_some() {
        for (name, bytes) in everything().to_files().expect("plain names") {
            fs::create_dir_all(example("5")).expect("a folder");
            fs::write(example("5").join(name), bytes).expect("the source folder can be written");
        }
    }
    let examples = EXAMPLES.map(|(version, hash)| (example(version), hash));
    let published = PUBLISHED.map(|(name, hash)| (in_crate("published").join(name), hash));
    for (folder, expected) in examples.into_iter().chain(published) {
        let json = fs::read(folder.join(PROFILE_JSON)).expect("an example");
        assert_eq!(sha256(&json), expected, "{}", folder.display());
        // Reading it compares the hashes of its tables.
        let profile = Profile::read(&folder).expect("of a known version");
        let mut findings = check(&profile);
        findings.retain(|finding| finding.severity == Severity::Error);
        assert_eq!(findings, Vec::<Finding>::new(), "{}", folder.display());
    }
}

/// What version 3 did not say is absent, not made up.
#[test]
fn a_profile_of_version_3_is_read_as_the_newest_without_what_it_did_not_say() {
    let mut expected = good_profile();
    expected.header.model.external_weights = None;
    for processor in &mut expected.header.processors {
        processor.runtime_options = None;
        processor.runtime_libraries = None;
    }
    expected.header.written_by = None;
    expected.loads.clear();
    // The sentinels of this example were made up.
    for block in &mut expected.blocks {
        block.before.sentinel = Nanos::from_millis(1);
        block.after.sentinel = Nanos::from_millis(1);
    }
    expected.placements.clear();
    assert_eq!(Profile::read(&example("3")).expect("version 3"), expected);
}

/// Likewise version 4: its phone and what that told is nobody's guess.
#[test]
fn a_profile_of_version_4_is_read_as_the_newest_without_what_it_did_not_say() {
    let read = Profile::read(&example("4")).expect("version 4");
    assert_eq!(read, everything_of_version_4());
    for (name, bytes) in read.to_files().expect("plain names") {
        let is_other = ["blocks.csv", DIGEST_FILE, PROFILE_JSON].contains(&name);
        let committed = fs::read(example("4").join(name)).expect("an example");
        assert_eq!(bytes == committed, !is_other, "{name}");
    }
}

#[test]
fn a_profile_of_version_5_is_read_as_it_was_written() {
    let read = Profile::read(&example("5")).expect("version 5");
    assert_eq!(read, everything());
    for (name, bytes) in read.to_files().expect("plain names") {
        let committed = fs::read(example("5").join(name)).expect("an example");
        assert!(bytes == committed, "{name}");
    }
}

/// The tables of a published profile follow from its samples with the arithmetic of today.
#[test]
fn published_profiles_give_the_same_tables_again() {
    for (name, _) in PUBLISHED {
        let folder = in_crate("published").join(name);
        let profile = Profile::read(&folder).expect("a profile");
        let again = profile.rederive(Method::Graph).expect("complete");
        for (file, bytes) in again.to_files().expect("plain names") {
            let is_new = [
                "blocks.csv",
                "unsupported.csv",
                "loads.csv",
                "placements.csv",
                "probes.csv",
                DIGEST_FILE,
                PROFILE_JSON,
            ]
            .contains(&file);
            if !is_new {
                let committed = fs::read(folder.join(file)).expect("a table");
                assert!(bytes == committed, "{name}: {file}");
            }
        }
    }
}

/// How an evaluation was measured could be unknown in version 3, and could be known.
#[test]
fn the_provenance_of_an_evaluation_of_version_3_is_read() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    for entry in fs::read_dir(example("3")).expect("an example") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_owned();
        fs::copy(&path, folder.path().join(name)).expect("room");
    }
    let path = folder.path().join(PROFILE_JSON);
    let mut json: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
    let own = json["provenance"].clone();
    let evaluation = |provenance: serde_json::Value| {
        serde_json::json!({
            "cpu": CPU, "accelerator": NPU, "set": "ten", "set_sha256": "5e".repeat(32),
            "preprocessing": {"resize": "stretch", "channels": "rgb", "mean": [], "scale": 1.0},
            "metric": {"type": "top-k", "k": 1}, "answers": 10, "samples": 300, "seed": 7,
            "stop_at_half_width": null, "executed_flop": 500, "naive_flop": 1000,
            "provenance": provenance,
        })
    };
    json["evaluations"] = serde_json::json!([evaluation(own), evaluation(serde_json::Value::Null)]);
    fs::write(&path, json.to_string()).expect("room");
    let read = Profile::read(folder.path()).expect("version 3");
    let provenances: Vec<Option<&Provenance>> = read
        .evaluations
        .iter()
        .map(|one| one.provenance.as_ref())
        .collect();
    assert_eq!(provenances, [Some(&read.header.provenance), None]);
}

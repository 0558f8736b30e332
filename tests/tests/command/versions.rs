//! Profiles outlive programs: those of older versions of the format are read by every command, those of a newer one are
//! refused in one sentence.

use std::path::{Path, PathBuf};

use layerlab_profiles::document::Profile;
use layerlab_tests::{layerlab, output, root, succeed};

use super::assert_fails;

const INPUT: i32 = 3;

/// The version that profiles are written in.
const NEWEST: u64 = layerlab_profiles::document::VERSION as u64;

/// A profile that was published in version 3.
fn version_3() -> PathBuf {
    root().join("profiles/published/oneplus7/vocnet-mini")
}

fn version(profile: &Path) -> u64 {
    let json = std::fs::read(profile.join("profile.json")).expect("a profile");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    json["version"].as_u64().expect("a number")
}

/// The profile derived anew, by the method that gave its times: the newest version of it.
fn newest(folder: &Path) -> PathBuf {
    let out = folder.join("newest");
    let mut derive = layerlab();
    derive.arg("derive").arg(version_3());
    derive.args(["--method", "graph", "--out"]).arg(&out);
    succeed(&mut derive);
    assert_eq!((version(&version_3()), version(&out)), (3, NEWEST));
    out
}

#[test]
fn a_profile_of_version_3_is_checked_shown_and_planned_with() {
    let said = succeed(layerlab().arg("check").arg(version_3()));
    assert!(said.contains("vocnet-mini"), "{said}");
    let said = succeed(layerlab().arg("show").arg(version_3()));
    assert!(said.contains("OnePlus 7"), "{said}");
    let mut plan = layerlab();
    plan.args(["plan", "min-time", "--accuracy", "0.2"]);
    plan.arg(version_3());
    let said = succeed(&mut plan);
    assert!(said.contains("npu"), "{said}");
}

#[test]
fn the_newest_version_of_a_profile_has_the_same_tables_and_compares_equal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let newest = newest(folder.path());
    for table in [
        "layers",
        "times",
        "cuts",
        "segments",
        "samples",
        "combinations",
    ] {
        let file = format!("{table}.csv");
        let read = |profile: &Path| std::fs::read(profile.join(&file)).expect("a table");
        assert!(read(&version_3()) == read(&newest), "{file}");
    }
    // Newer blocks have more columns, which nobody had measured.
    let blocks = |profile: &Path| Profile::read(profile).expect("a profile").blocks;
    assert_eq!(blocks(&version_3()), blocks(&newest));
    succeed(layerlab().arg("check").arg(&newest));
    let said = succeed(layerlab().arg("compare").arg(version_3()).arg(&newest));
    let none = |line: &str| line.starts_with("0 of ") && line.contains("differ significantly");
    assert!(said.lines().any(none), "{said}");
}

#[test]
fn versions_that_were_not_published_are_refused_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let profile = newest(folder.path());
    let path = profile.join("profile.json");
    let text = std::fs::read_to_string(&path).expect("a profile");
    for (version, words) in [
        (
            NEWEST + 1,
            ["was written by a newer layerlab", "update layerlab"],
        ),
        (2, ["version 2 of the profile format", "measure again"]),
        (1, ["version 1 of the profile format", "measure again"]),
    ] {
        let other = text.replacen(
            &format!("\"version\": {NEWEST}"),
            &format!("\"version\": {version}"),
            1,
        );
        assert_ne!(other, text);
        std::fs::write(&path, other).expect("room");
        for command in ["check", "show"] {
            let refused = output(layerlab().arg(command).arg(&profile));
            assert_fails(&refused, INPUT, &words);
        }
    }
}

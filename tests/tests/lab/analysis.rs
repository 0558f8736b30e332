//! What the lab publishes, in the tables for analysis.

use std::path::{Path, PathBuf};

use layerlab_profiles::document::ProfileDigest;
use layerlab_tests::lab::Lab;
use layerlab_tests::wait::wait_for;

use super::{EACH, SIMULATED, job, wait_for_job};

/// A lab that appends to the tables in `folder`.
fn lab(folder: &Path) -> Lab {
    Lab::new(&format!("[lab]\nanalysis = {folder:?}\n{SIMULATED}"))
}

/// The names of the files of a table, without their ending.
fn profiles(table: &Path) -> Vec<String> {
    let months = std::fs::read_dir(table.join("model=alexnet"))
        .into_iter()
        .flatten();
    let files = months
        .flat_map(|month| std::fs::read_dir(month.expect("a month").path()).expect("a month"));
    let names = files.map(|file| {
        file.expect("a file")
            .file_name()
            .into_string()
            .expect("UTF-8")
    });
    let mut names: Vec<String> = names
        .filter_map(|name| Some(name.strip_suffix(".parquet")?.to_owned()))
        .collect();
    names.sort();
    names
}

/// The digests of what the lab has published.
fn published(lab: &Lab) -> Vec<String> {
    let folders = lab.kept().runs.into_values().filter_map(|run| run.profile);
    let digest = |folder: PathBuf| {
        ProfileDigest::of_folder(&folder)
            .expect("a profile")
            .to_string()
    };
    let mut digests: Vec<String> = folders.map(digest).collect();
    digests.sort();
    digests
}

#[test]
fn each_publication_is_appended_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let tables = folder.path().join("tables");
    let lab = lab(&tables);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    let expected = published(&lab);
    assert_eq!(expected.len(), 2);
    lab.wait_for("all published profiles in the tables", || {
        profiles(&tables.join("layers")) == expected
    });
    daemon.stop();
    for table in ["layers", "segments", "samples"] {
        assert_eq!(profiles(&tables.join(table)), expected, "{table}");
    }
    // The command finds the same.
    let said = lab.succeed(&[
        "export",
        "--format",
        "parquet",
        "--published",
        "--out",
        tables.to_str().expect("UTF-8"),
    ]);
    assert!(said.starts_with("2 profiles in "), "{said}");
    assert_eq!(profiles(&tables.join("layers")), expected);
    // A profile that is gone keeps its rows.
    let run = lab.kept().runs.into_values().next().expect("a run");
    std::fs::remove_dir_all(run.profile.expect("published")).expect("it is there");
    let daemon = lab.daemon();
    lab.wait_until_open();
    daemon.stop();
    assert_eq!(profiles(&tables.join("layers")), expected);
}

#[test]
fn what_cannot_be_appended_is_told_fails_no_run_and_is_made_up_for() {
    let folder = tempfile::tempdir().expect("a folder");
    // Nobody can make a folder in a file, whoever runs the tests.
    let tables = folder.path().join("file/tables");
    std::fs::write(folder.path().join("file"), "").expect("room");
    let lab = lab(&tables);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    lab.wait_for("a report of the trouble", || {
        let report = lab.succeed(&["report"]);
        report.contains("Trouble of the lab")
            && report.contains("not in the tables for analysis: cannot write to ")
    });
    assert_eq!(lab.runs_done(), 2);
    assert!(lab.log().contains("WARN"), "{}", lab.log());
    daemon.stop();
    std::fs::remove_file(folder.path().join("file")).expect("it is there");
    let daemon = lab.daemon();
    let expected = published(&lab);
    wait_for(
        "what was published before",
        || profiles(&tables.join("layers")) == expected,
        || lab.log(),
    );
    daemon.stop();
}

//! `layerlab export --format parquet`: the tables hold what the profiles say, and the queries of docs/analysis.md answer what they
//! ask. DuckDB, pandas and pyarrow read the tables, which share no code with what writes them.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_profiles::document::Profile;
use layerlab_tests::fleet::Fleet;
use layerlab_tests::proof::energy::PHONE;
use layerlab_tests::skip::skip;
use layerlab_tests::small_disk::small_disk;
use layerlab_tests::{file, layerlab, model, output, root, succeed};

use super::assert_fails;

/// A script of `tests/analysis`, run by a Python that has the wheels; nothing where they are missing.
fn script(name: &str) -> Option<Command> {
    let wheels = root().join("target/analysis");
    if !wheels.join("requirements.txt").exists() {
        let remedy = "have them installed beside the build: tests/analysis/wheels target/analysis";
        skip("Python with DuckDB, pandas and pyarrow", remedy);
        return None;
    }
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", wheels)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(file("analysis").join(name));
    Some(command)
}

/// The profiles that ship with the repository.
fn published() -> Vec<PathBuf> {
    let devices =
        ["mate10pro", "oneplus7"].map(|device| root().join("profiles/published").join(device));
    let profiles = devices
        .iter()
        .flat_map(|device| ["vocnet-mini", "yolo-mini"].map(|model| device.join(model)));
    profiles.collect()
}

fn export(profiles: &[PathBuf], out: &Path) -> Command {
    let mut command = layerlab();
    command
        .args(["export", "--format", "parquet", "--out"])
        .arg(out)
        .args(profiles);
    command
}

/// All files below `folder` with their content, by their paths.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("a file").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push((path.clone(), std::fs::read(&path).expect("a file"))),
        }
    }
    found.sort();
    found
}

#[test]
fn tables_hold_the_numbers_of_the_csv_tables_to_the_last_digit() {
    let Some(mut same_numbers) = script("same_numbers.py") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    // Beside what ships, one with energies and one of steady times, whose model has a name that no folder could have.
    let name = folder.path().join("a 100% odd=name.onnx");
    std::fs::copy(model("alexnet"), &name).expect("a model");
    let hot = folder.path().join("hot");
    // Slow: half an hour of its inferences is simulated soon.
    let phone = folder.path().join("phone.toml");
    std::fs::write(&phone, PHONE).expect("room");
    let mut profile = layerlab();
    profile.args([
        "profile",
        "--design",
        "local",
        "--samples",
        "6",
        "--energy",
        "30s",
        "--steady",
        "12m",
        "--model",
    ]);
    succeed(
        profile
            .arg(&name)
            .arg("--device")
            .arg(&phone)
            .arg("--out")
            .arg(&hot),
    );
    let mut profiles = published();
    profiles.push(hot.clone());
    let out = folder.path().join("tables");
    let said = succeed(&mut export(&profiles, &out));
    assert!(said.starts_with("5 profiles in "), "{said}");
    if hot.join("steady").exists() {
        profiles.push(hot.join("steady"));
    }
    let said = succeed(same_numbers.arg(&out).args(&profiles));
    assert!(said.ends_with(" numbers are the same\n"), "{said}");
    let escaped = out.join("layers/model=a%20100%25%20odd%3Dname");
    assert!(escaped.is_dir(), "{:?}", files(&out));
}

#[test]
fn each_query_of_the_page_answers_what_follows_from_the_csv_tables() {
    let Some(mut questions) = script("questions.py") else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let mut profiles = published();
    let template = Profile::read(&profiles[0]).expect("a profile");
    let fleet = Fleet {
        phones: 6,
        nights: 6,
        days_between: 10,
    };
    for (phone, night) in
        (0..fleet.phones).flat_map(|phone| (0..fleet.nights).map(move |night| (phone, night)))
    {
        let out = folder.path().join(format!("phone-{phone}-night-{night}"));
        std::fs::create_dir(&out).expect("room");
        fleet
            .profile(&template, phone, night)
            .write(&out)
            .expect("room");
        profiles.push(out);
    }
    succeed(&mut export(&profiles, &folder.path().join("tables")));
    let said = succeed(questions.args(&profiles).current_dir(folder.path()));
    assert!(
        said.contains("odd: 2 rows"),
        "the odd phone, on both processors: {said}"
    );
}

#[test]
fn exporting_again_replaces_what_was_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let profiles = published();
    let first = succeed(&mut export(&profiles, folder.path()));
    let files_of_first = files(folder.path());
    assert_eq!(files_of_first.len(), 3 * profiles.len());
    let again = succeed(&mut export(&profiles, folder.path()));
    assert_eq!(first, again);
    assert_eq!(files_of_first, files(folder.path()));
}

#[test]
fn an_export_that_runs_out_of_room_leaves_what_was_there_and_nothing_else() {
    let name = "analysis::an_export_that_runs_out_of_room_leaves_what_was_there_and_nothing_else";
    let Some(disk) = small_disk("1m", name) else {
        return;
    };
    let folder = tempfile::tempdir_in(disk).expect("a folder");
    let profiles = published();
    succeed(&mut export(&profiles[..1], folder.path()));
    let before = files(folder.path());
    let filler = folder.path().join("filler");
    let mut writer = std::fs::File::create(&filler).expect("room");
    while std::io::Write::write_all(&mut writer, &[0; 4096]).is_ok() {}
    drop(writer);
    let refused = output(&mut export(&profiles[1..2], folder.path()));
    assert_fails(&refused, 5, &["cannot write to ", "make room"]);
    std::fs::remove_file(&filler).expect("it is there");
    assert_eq!(before, files(folder.path()));
    succeed(&mut export(&profiles[1..2], folder.path()));
    assert_eq!(files(folder.path()).len(), before.len() + 3);
}

#[test]
fn what_cannot_be_exported_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let (out, nowhere) = (folder.path().join("tables"), folder.path().join("nowhere"));
    let profiles = published();
    let refused = output(&mut export(std::slice::from_ref(&nowhere), &out));
    assert_fails(&refused, 3, &["cannot read ", "nowhere/profile.json"]);
    // Nobody can make a folder in a file, whoever runs the tests.
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("room");
    let refused = output(&mut export(&profiles[..1], &file));
    assert_fails(&refused, 5, &["cannot write to ", "choose another folder"]);
    // One whose table was changed.
    let broken = folder.path().join("broken");
    std::fs::create_dir(&broken).expect("room");
    for (path, mut content) in files(&profiles[0]) {
        if path.ends_with("samples.csv") {
            content.pop();
        }
        std::fs::write(broken.join(path.file_name().expect("a file")), content).expect("room");
    }
    let refused = output(&mut export(std::slice::from_ref(&broken), &out));
    assert_fails(&refused, 3, &["samples.csv"]);
    assert!(files(&out).is_empty());
    for (arguments, word) in [
        (["--format", "parquet"].as_slice(), "--out"),
        (&["--format", "csv", "--out", "tables"], "--format parquet"),
        (&["--format", "orc"], "orc"),
    ] {
        let refused = output(layerlab().arg("export").args(arguments).arg(&profiles[0]));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(word), "{said}");
    }
    let refused = output(
        layerlab()
            .args(["export", "--format", "json"])
            .args(&profiles),
    );
    assert_fails(&refused, 2, &["4 profiles", "--format parquet"]);
}

#[test]
fn a_profile_that_cannot_be_read_keeps_no_other_from_the_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut profiles = published();
    profiles.insert(1, folder.path().join("nowhere"));
    let out = folder.path().join("tables");
    let refused = output(&mut export(&profiles, &out));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(
        said.contains("nowhere/profile.json") && said.contains("1 of 5 profiles"),
        "{said}"
    );
    assert_eq!(files(&out).len(), 3 * 4);
}

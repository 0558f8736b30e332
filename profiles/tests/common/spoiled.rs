//! Published profiles of which one number is changed so that all hashes follow: does `check` notice?

use std::fs;
use std::path::Path;

use layerlab_profiles::check::{Finding, Rule, Severity, check_directory};
use layerlab_profiles::document::{PROFILE_JSON, Profile};

pub(crate) fn errors(findings: Vec<Finding>) -> Vec<Rule> {
    let errors = findings
        .into_iter()
        .filter(|one| one.severity == Severity::Error);
    errors.map(|one| one.rule).collect()
}

pub(crate) fn written(profile: &Profile) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    profile.write(folder.path()).expect("room");
    folder
}

/// The table with a number in this row, counted from 0 below the columns, one more; `None` where there is no number.
pub(crate) fn changed(table: &str, row: usize, column: usize) -> Option<String> {
    let mut reader = csv::ReaderBuilder::new();
    let mut reader = reader.has_headers(false).from_reader(table.as_bytes());
    let mut rows: Vec<Vec<String>> = reader
        .records()
        .map(|row| row.expect("a row").iter().map(str::to_owned).collect())
        .collect();
    let field = &mut rows[row + 1][column];
    *field = (field.parse::<i64>().ok()? + 1).to_string();
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.write_record(row).expect("equally long rows");
    }
    let bytes = writer.into_inner().expect("a vector takes all");
    Some(String::from_utf8(bytes).expect("UTF-8"))
}

/// Whether `check` finds an error in the profile in `folder` once a file of it says something else and all hashes follow.
pub(crate) fn finds(folder: &Path, file: &str, text: &str) -> bool {
    let before = fs::read_to_string(folder.join(file)).expect("a file");
    let json_before = fs::read_to_string(folder.join(PROFILE_JSON)).expect("the header");
    let hash = |text: &str| layerlab_profiles::sha256(text.as_bytes());
    fs::write(folder.join(file), text).expect("room");
    if file != PROFILE_JSON {
        let json = json_before.replace(&hash(&before), &hash(text));
        assert_ne!(json, json_before);
        fs::write(folder.join(PROFILE_JSON), json).expect("room");
    }
    let json = fs::read_to_string(folder.join(PROFILE_JSON)).expect("the header");
    let digest = format!("{}  {PROFILE_JSON}\n", hash(&json));
    fs::write(folder.join("profile.json.sha256"), digest).expect("room");
    let found = check_directory(folder).map(|(_, findings)| errors(findings));
    fs::write(folder.join(file), before).expect("room");
    fs::write(folder.join(PROFILE_JSON), json_before).expect("room");
    found.map_or(true, |rules| !rules.is_empty())
}

//! The committed JSON Schema is the one that the code gives, and FORMAT.md speaks of all there is.

use crate::common;

use std::fs;
use std::path::Path;

use common::everything::everything;
use layerlab_profiles::check::Rule;
use layerlab_profiles::document::schema;

fn beside_manifest(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// `LAYERLAB_UPDATE_SCHEMA=1` writes it instead.
#[test]
fn the_committed_schema_is_up_to_date() {
    let path = beside_manifest("profile.schema.json");
    let mut expected = serde_json::to_string_pretty(&schema()).expect("a schema is JSON");
    expected.push('\n');
    if std::env::var_os("LAYERLAB_UPDATE_SCHEMA").is_some() {
        fs::write(&path, &expected).expect("the source folder can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == expected,
        "profile.schema.json is not what the code gives; run this test with LAYERLAB_UPDATE_SCHEMA=1"
    );
}

/// Every object's fields, `files.layers.csv` included, wherever they are in the document.
fn fields(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (name, value) in object {
                found.push(name.clone());
                // What runtimes call their options is their own affair.
                if name != "runtime_options" {
                    fields(value, found);
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| fields(value, found)),
        _ => {}
    }
}

#[test]
fn format_md_names_every_file_field_and_column() {
    let page = fs::read_to_string(beside_manifest("FORMAT.md")).expect("FORMAT.md");
    let mut names = Vec::new();
    for (file, bytes) in everything().to_files().expect("plain names") {
        names.push(file.to_owned());
        if file == "profile.json" {
            let json = serde_json::from_slice(&bytes).expect("JSON");
            fields(&json, &mut names);
        } else if file.ends_with(".csv") {
            let mut table = csv::Reader::from_reader(bytes.as_slice());
            let columns = table.headers().expect("columns").iter().map(str::to_owned);
            names.extend(columns);
        }
    }
    for name in names {
        assert!(
            page.contains(&format!("`{name}`")),
            "FORMAT.md lacks `{name}`"
        );
    }
}

#[test]
fn format_md_names_every_finding_with_its_severity() {
    let page = fs::read_to_string(beside_manifest("FORMAT.md")).expect("FORMAT.md");
    let lists = |rule: &Rule| page.contains(&format!("| `{rule}` | {} |", rule.severity()));
    let absent: Vec<_> = Rule::ALL.iter().filter(|rule| !lists(rule)).collect();
    assert!(absent.is_empty(), "{absent:?}");
}

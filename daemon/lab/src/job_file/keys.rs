//! Tables of TOML, key by key, so that what is wrong is said with the key that it stands under.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::toml_file::TomlFileError;

/// A key whose value cannot be.
#[derive(Debug, PartialEq)]
pub(super) struct BadKey {
    /// The key with those that it stands under.
    pub(super) key: String,
    /// What is wrong and what to write.
    pub(super) problem: String,
}

impl BadKey {
    /// The error of the file that it stands in.
    pub(super) fn within(self, path: PathBuf) -> TomlFileError {
        let BadKey { key, problem } = self;
        TomlFileError::Key { path, key, problem }
    }
}

/// `table`, which stands under `above`, as a type that has a default for each key.
pub(super) fn parse<T: DeserializeOwned>(table: &Table, above: &str) -> Result<T, BadKey> {
    for (key, value) in table {
        let mut alone = Table::new();
        alone.insert(key.clone(), value.clone());
        // Errors of a whole table do not say which key they are about.
        alone.try_into::<T>().map_err(|error| BadKey {
            key: format!("{above}{key}"),
            problem: in_a_sentence(error.message(), value),
        })?;
    }
    table.clone().try_into().map_err(|error| BadKey {
        key: above.trim_end_matches('.').to_owned(),
        problem: error.message().to_owned(),
    })
}

/// What is wrong with `value`, where serde says `message`.
fn in_a_sentence(message: &str, value: &Value) -> String {
    if message.starts_with("unknown field") {
        let known = message
            .split_once("expected ")
            .map_or("", |(_, known)| known);
        return format!(
            "there is no such key; write {}",
            known.trim_start_matches("one of ")
        );
    }
    let foreign = ["invalid type", "invalid value", "unknown variant"];
    match message.rsplit_once("expected ") {
        Some((said, expected)) if foreign.iter().any(|start| said.starts_with(start)) => {
            format!("`{value}` cannot stand here; write {}", plainly(expected))
        }
        _ => message.to_owned(),
    }
}

/// What serde expects, in the words of TOML's users.
fn plainly(expected: &str) -> &str {
    match expected {
        "a string" | "a borrowed string" => "a text in quotes",
        "a sequence" => "a list in brackets",
        "a boolean" => "true or false",
        "f64" => "a number",
        "i32" | "i64" => "a whole number",
        "u32" | "u64" | "usize" => "a whole number of at least 0",
        other if other.starts_with("struct ") || other == "a map" => "a table",
        other => other,
    }
}

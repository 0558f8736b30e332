//! Which file is read, and its values put over the defaults, one by one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{Config, DEFAULT};
use crate::toml_file::{self, TomlFileError};
use crate::webhook::without_secrets;

/// A configuration and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The values that are in force: the defaults, and over them what the file says.
    pub config: Config,
    /// The files that were read.
    pub read: Vec<PathBuf>,
    /// What differs from the defaults.
    pub changes: Vec<ConfigChange>,
}

/// A value that is not the default.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConfigChange {
    /// The key with its section, such as `gates.poll`.
    pub key: String,
    /// The value that the file gives and that is in force; of a webhook's URL only the host.
    pub value: Value,
    /// What would hold.
    pub default: Value,
}

/// Why a file is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read, or has a value that cannot be.
    #[error(transparent)]
    File(#[from] TomlFileError),
    /// A key that there is not.
    #[error(
        "{}: `{key}` is unknown; `{nearest}` is the nearest key that there is, and `layerlab config default` \
         explains all of them", path.display()
    )]
    Unknown {
        /// The configuration file with the key.
        path: PathBuf,
        /// The key with its section.
        key: String,
        /// The key that was probably meant.
        nearest: String,
    },
    /// A section's name with a value.
    #[error("{}: `{section}` is a section; write [{section}] and its keys under it", path.display())]
    Section {
        /// The configuration file with the key.
        path: PathBuf,
        /// The name of the section.
        section: String,
    },
}

impl Config {
    /// Reads `file`, which must exist, or else the first of [`places`] that does; the defaults where
    /// there is none. `variable` looks an environment variable up.
    pub fn load(
        file: Option<&Path>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Loaded, ConfigError> {
        let first = || {
            let exists = |path: &PathBuf| path.symlink_metadata().is_ok();
            places(variable).into_iter().find(exists)
        };
        match file.map(Path::to_owned).or_else(first) {
            Some(path) => over_defaults(path),
            None => Ok(Loaded {
                config: Config::default(),
                read: Vec::new(),
                changes: Vec::new(),
            }),
        }
    }
}

/// Where a configuration may be, in the order in which files are looked for.
pub fn places(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let folder = |name: &str| {
        let path = PathBuf::from(variable(name)?);
        path.is_absolute().then_some(path)
    };
    let own = folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
    own.into_iter()
        .chain([PathBuf::from("/etc")])
        .map(|folder| folder.join("layerlab/config.toml"))
        .collect()
}

fn over_defaults(path: PathBuf) -> Result<Loaded, ConfigError> {
    let file = toml_file::read("configuration", &path)?;
    let defaults = defaults();
    let mut merged = defaults.clone();
    let mut config = Config::default();
    let mut changes = Vec::new();
    for (section, keys) in file {
        let Some(known) = defaults.get(&section).and_then(Value::as_table) else {
            let key = section;
            let nearest = nearest(&key, keys.is_table(), &defaults);
            return Err(ConfigError::Unknown { path, key, nearest });
        };
        let Value::Table(keys) = keys else {
            return Err(ConfigError::Section { path, section });
        };
        for (name, value) in keys {
            let key = format!("{section}.{name}");
            let Some(default) = known.get(&name) else {
                let nearest = nearest(&key, false, &defaults);
                return Err(ConfigError::Unknown { path, key, nearest });
            };
            put(&mut merged, &section, &name, &value);
            // All was well before this value.
            config = match shape(&key, &value, default).and_then(|()| parse(&merged)) {
                Ok(config) => config,
                Err(problem) => return Err(TomlFileError::Key { path, key, problem }.into()),
            };
            if value != *default {
                changes.push(ConfigChange {
                    value: shown(&key, value),
                    key,
                    default: default.clone(),
                });
            }
        }
    }
    Ok(Loaded {
        config,
        read: vec![path],
        changes,
    })
}

/// The value of a key as people may see it: a webhook's URL is as good as a password.
fn shown(key: &str, value: Value) -> Value {
    match value {
        Value::String(url) if key == WEBHOOK => Value::String(without_secrets(&url)),
        value => value,
    }
}

/// A key whose value is shown to nobody.
const WEBHOOK: &str = "report.webhook";
/// A key whose value is shown to nobody unless it is right, and then has no password.
const STORE: &str = "lab.store";
/// And this one.
const OBJECTS: &str = "lab.objects";

fn defaults() -> Table {
    toml::from_str(DEFAULT).expect("default-config.toml is TOML, as a test holds")
}

fn put(table: &mut Table, section: &str, key: &str, value: &Value) {
    if let Some(Value::Table(section)) = table.get_mut(section) {
        section.insert(key.to_owned(), value.clone());
    }
}

fn parse(merged: &Table) -> Result<Config, String> {
    Config::deserialize(merged.clone()).map_err(|error| error.message().to_owned())
}

/// Refuses a value that is of another kind than the default.
fn shape(key: &str, value: &Value, default: &Value) -> Result<(), String> {
    let texts = |value: &Value| {
        let list = value.as_array();
        list.is_some_and(|list| list.iter().all(Value::is_str))
    };
    let all = |value: &Value, kind: &dyn Fn(&Value) -> bool| {
        let table = value.as_table();
        table.is_some_and(|table| table.values().all(kind))
    };
    let (right, remedy) = match (key, default) {
        ("phones.pools", _) => (
            all(value, &texts),
            "pools and their lists of serials, such as { night = [\"emulator-5554\"] }".to_owned(),
        ),
        (_, Value::Table(_)) => (
            all(value, &Value::is_str),
            "serials and the devices that they play, such as { emulator-5554 = \"pixel6\" }"
                .to_owned(),
        ),
        (_, Value::Array(_)) => (
            texts(value),
            "a list of texts, such as [\"one\", \"other\"]".to_owned(),
        ),
        (_, Value::Boolean(_)) => (value.is_bool(), "true or false".to_owned()),
        (_, Value::String(_)) => (
            value.is_str(),
            format!("a text in quotes, such as {default}"),
        ),
        _ => (
            value.is_integer() || value.is_float(),
            format!("a number, such as {default}"),
        ),
    };
    if right {
        return Ok(());
    }
    if [WEBHOOK, STORE, OBJECTS].contains(&key) {
        return Err(format!("what stands here cannot; write {remedy}"));
    }
    Err(format!("`{value}` cannot stand here; write {remedy}"))
}

/// The known key, or section, that is most like `key`.
fn nearest(key: &str, section: bool, defaults: &Table) -> String {
    let (folder, name) = key.rsplit_once('.').unwrap_or(("", key));
    let likeness = |known: &str| {
        let (other, known) = known.rsplit_once('.').unwrap_or(("", known));
        let here = if other == folder { 0.1 } else { 0.0 };
        strsim::normalized_damerau_levenshtein(name, known) + here
    };
    let known = defaults.iter().flat_map(|(name, keys)| {
        let keys = keys.as_table().filter(|_| !section).into_iter().flatten();
        let keys = keys.map(move |(key, _)| format!("{name}.{key}"));
        keys.chain(section.then(|| name.clone()))
    });
    let known = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    known.unwrap_or_default()
}

//! Files of TOML that users write, read so that what is wrong is said with its line or its key.

use std::path::{Path, PathBuf};

use toml::Table;

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum TomlFileError {
    /// It cannot be read.
    #[error("cannot read the {what} {}: {source}", path.display())]
    Read {
        /// What the file is.
        what: &'static str,
        /// The path of the file that cannot be read.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no TOML.
    #[error("{} is no TOML, line {line}: {problem}", path.display())]
    Syntax {
        /// The path of the file with the mistake.
        path: PathBuf,
        /// The line of the mistake, counted from 1.
        line: usize,
        /// What the parser said.
        problem: String,
    },
    /// A value that cannot be, or that is missing.
    #[error("{}: `{key}`: {problem}", path.display())]
    Key {
        /// The path of the file with the value.
        path: PathBuf,
        /// The key with its section.
        key: String,
        /// What is wrong and what to write.
        problem: String,
    },
}

/// What is in the file at `path`, which is a `what`.
pub(super) fn read(what: &'static str, path: &Path) -> Result<Table, TomlFileError> {
    let text = std::fs::read_to_string(path).map_err(|source| TomlFileError::Read {
        what,
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|error| syntax(path, &text, &error))
}

fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> TomlFileError {
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = &text.as_bytes()[..start];
    let words: Vec<&str> = error.message().split_whitespace().collect();
    TomlFileError::Syntax {
        path: path.to_owned(),
        line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        problem: words.join(" "),
    }
}

//! Files of TOML that users write, read so that what is wrong is said with its line or its key.

use std::fs::File;
use std::io::Read;
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
    /// It never ends, or may not.
    #[error("the {what} {} is no regular file; write it into one", path.display())]
    NoFile {
        /// What the file should be.
        what: &'static str,
        /// What is there instead.
        path: PathBuf,
    },
    /// It is longer than any.
    #[error("the {what} {} is longer than {} KiB, and so not one that people write; split it", path.display(), MOST_BYTES >> 10)]
    TooLong {
        /// What the file should be.
        what: &'static str,
        /// The path of the long file.
        path: PathBuf,
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

/// Longer files are nobody's: a job with a thousand models on a thousand phones is shorter.
const MOST_BYTES: u64 = 256 << 10;

/// What is in the file at `path`, which is a `what`.
///
/// # Errors
/// When it cannot be read, is longer than people write, or is no TOML.
pub fn read(what: &'static str, path: &Path) -> Result<Table, TomlFileError> {
    let failed = |source| TomlFileError::Read {
        what,
        path: path.to_owned(),
        source,
    };
    // A pipe that nobody writes to would not even be opened.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        let path = path.to_owned();
        return Err(TomlFileError::NoFile { what, path });
    }
    let file = File::open(path).map_err(failed)?;
    let mut text = String::new();
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    read.map_err(failed)?;
    if text.len() as u64 > MOST_BYTES {
        let path = path.to_owned();
        return Err(TomlFileError::TooLong { what, path });
    }
    parse(path, &text)
}

/// The table that `text` is, which came under the name `path`.
pub(super) fn parse(path: &Path, text: &str) -> Result<Table, TomlFileError> {
    toml::from_str(text).map_err(|error| syntax(path, text, &error))
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

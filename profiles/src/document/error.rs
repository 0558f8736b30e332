//! What can be wrong with a profile's files.

use std::io;
use std::path::PathBuf;

use super::Origin;
use crate::segment::SegmentError;

/// Why a profile could not be read or written. Each message is one sentence with the file in it.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// A file or the directory could not be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// What the operating system says.
        reason: io::Error,
    },
    /// A file or the directory could not be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// What the operating system says.
        reason: io::Error,
    },
    /// The directory to write to has something in it.
    #[error("{} is not empty; a profile is written to an empty directory", path.display())]
    NotEmpty {
        /// The directory that is not empty.
        path: PathBuf,
    },
    /// `profile.json` is some other document.
    #[error("{} is no layerlab profile: its field `format` is not \"{}\"", path.display(), super::FORMAT)]
    Format {
        /// The path of the `profile.json` that was read.
        path: PathBuf,
    },
    /// The profile has a version of the format that came after this program.
    #[error(
        "{} was written by a newer layerlab, in version {version} of the profile format, of which this one knows \
         versions {} to {}; update layerlab",
        path.display(),
        super::versions::OLDEST,
        super::VERSION
    )]
    Newer {
        /// The path of the `profile.json` that was read.
        path: PathBuf,
        /// The version that it states.
        version: u64,
    },
    /// The profile has a version of the format from before the first that was published.
    #[error(
        "{} has version {version} of the profile format, which was given up before any profile of it was \
         published; measure again",
        path.display(),
    )]
    NeverPublished {
        /// The path of the `profile.json` that was read.
        path: PathBuf,
        /// The version that it states.
        version: u64,
    },
    /// A profile in memory claims to be of another version than the one that is written.
    #[error(
        "profiles are written in version {} of the format, and the header of this one says {version}",
        super::VERSION
    )]
    NotWritten {
        /// The version that the header states.
        version: u32,
    },
    /// `profile.json` lacks a field, has an unknown one or is no JSON.
    #[error("{} is not as FORMAT.md says: {reason}", path.display())]
    Json {
        /// The path of the `profile.json` that was read.
        path: PathBuf,
        /// The field and the place.
        reason: serde_json::Error,
    },
    /// A table's first row is not the columns of this version.
    #[error("{}: column {place} is {} and should be {}", path.display(), or_nothing(found), or_nothing(expected))]
    Column {
        /// The path of the table.
        path: PathBuf,
        /// The place of the first wrong column, counted from 1.
        place: usize,
        /// What is there, if anything is.
        found: Option<String>,
        /// What should be there, if anything should.
        expected: Option<String>,
    },
    /// A table is no CSV of equally long rows in UTF-8.
    #[error("{} is no table: {reason}", path.display())]
    Csv {
        /// The path of the table.
        path: PathBuf,
        /// The row and what is wrong with it.
        reason: csv::Error,
    },
    /// A row does not say what its columns promise.
    #[error("{}, line {line}: {reason}", path.display())]
    Row {
        /// The path of the table.
        path: PathBuf,
        /// The line on which the row starts, counted from 1.
        line: u64,
        /// What is wrong with the row.
        reason: RowError,
    },
    /// The files contradict each other; `check` lists all such places.
    #[error("{}: {contradiction}", path.display())]
    Contradiction {
        /// The directory of the profile.
        path: PathBuf,
        /// The first contradiction.
        contradiction: Contradiction,
    },
    /// A layer has an operator whose name the table cannot hold.
    #[error(
        "layer {layer} has an operator named `{operator}`, which the tables cannot hold: \
         names are joined by `+` and must not be empty or contain it"
    )]
    Operator {
        /// The layer's number.
        layer: u32,
        /// The operator's name.
        operator: String,
    },
}

/// What is wrong with one row of a table.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// A field is not of its column's type.
    #[error("column {column}: {reason}")]
    Field {
        /// The column's name.
        column: String,
        /// What is wrong.
        reason: String,
    },
    /// Some field is none of the words that its column allows.
    #[error("{0}")]
    Word(String),
    /// The row names layers that are no segment.
    #[error("{0}")]
    Segment(#[from] SegmentError),
    /// A value that may be empty only together with others.
    #[error("columns {value}_ns and {value}_ci95_*_ns: an interval needs both ends and a value")]
    HalfInterval {
        /// The columns' common beginning.
        value: &'static str,
    },
    /// `compute_includes` says something unknown.
    #[error(
        "column compute_includes: `{0}` is none of to_processor, from_processor, \
         to_processor+from_processor and nothing"
    )]
    Includes(String),
    /// A combination is not one.
    #[error("column combination: {0}")]
    Placement(String),
    /// A clock cap is not `group=kHz`.
    #[error(
        "columns frequency_caps_*_khz and frequencies_*_khz: `{0}` is not a group of cores, `=` and a number of kHz"
    )]
    FrequencyCap(String),
    /// `unresolved` is not what the row's intervals say.
    #[error(
        "column unresolved is `{found}` and should be `{expected}`: it names the numbers whose interval \
         contains zero"
    )]
    Unresolved {
        /// What the row says.
        found: String,
        /// What follows from its intervals.
        expected: String,
    },
}

fn or_nothing(column: &Option<String>) -> String {
    column
        .as_ref()
        .map_or_else(|| "nothing".to_owned(), |name| format!("`{name}`"))
}

/// Files of a profile that can each be read but do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// A table is not the one that `profile.json` was written with.
    #[error(
        "{file} was changed after the profile was written: its SHA-256 is not the one in profile.json"
    )]
    FileChanged {
        /// The name of the table, such as `times.csv`.
        file: &'static str,
    },
    /// `profile.json` is not the one that the profile was written with.
    #[error(
        "profile.json was changed after the profile was written: its SHA-256 is {}, not the one in {}",
        found.short(),
        super::DIGEST_FILE
    )]
    HeaderChanged {
        /// Its digest now.
        found: super::ProfileDigest,
    },
    /// The steady profile in it is not the one that it was written with.
    #[error(
        "{}/profile.json was changed after the profile was written: its SHA-256 is not the one in profile.json",
        super::STEADY_FOLDER
    )]
    SteadyChanged,
    /// The steady profile in it says that it has another one in it.
    #[error(
        "{}/profile.json names a steady profile of its own",
        super::STEADY_FOLDER
    )]
    SteadyInSteady,
    /// Rows state another origin than follows from `profile.json`.
    #[error("{file}, line {line}: the origin is {found}, but {expected} according to profile.json")]
    Origin {
        /// The name of the table, such as `times.csv`.
        file: &'static str,
        /// The first such row's line, counted from 1.
        line: u64,
        /// What the row says.
        found: Origin,
        /// What follows from `profile.json`.
        expected: Origin,
    },
}

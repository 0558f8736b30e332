//! What stands in a report's tables: the same words for a terminal and for HTML, where states are badges and profiles are
//! links.

use std::fmt;
use std::path::PathBuf;

use super::RunOutcome;
use crate::record::JobState;

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Words as they came.
    Text(String),
    /// What became of a run.
    Run(RunOutcome),
    /// What became of a job.
    Job(JobState),
    /// Where a profile was published.
    Profile {
        /// Its folder.
        folder: PathBuf,
        /// The beginning of its digest, if its folder was looked into.
        digest: Option<String>,
        /// Whether its folder was looked for and is not there any more.
        gone: bool,
    },
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<RunOutcome> for Cell {
    fn from(outcome: RunOutcome) -> Cell {
        Cell::Run(outcome)
    }
}

impl From<JobState> for Cell {
    fn from(state: JobState) -> Cell {
        Cell::Job(state)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Text(text) => f.write_str(text),
            Cell::Run(outcome) => outcome.fmt(f),
            Cell::Job(state) => state.fmt(f),
            Cell::Profile {
                folder,
                digest: Some(digest),
                ..
            } => write!(f, "{} ({digest})", folder.display()),
            Cell::Profile { folder, .. } => folder.display().fmt(f),
        }
    }
}

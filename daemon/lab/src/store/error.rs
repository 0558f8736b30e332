//! What goes wrong with the lab's store.

use std::io;
use std::path::PathBuf;

use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;
use sqlx::sqlite::SqliteError;

use super::place::StorePlace;

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A lab has one daemon.
    #[error(
        "another layerlab daemon{} has the lab in {}; stop it first, or use another LAYERLAB_STATE",
        process.map(|id| format!(" (process {id})")).unwrap_or_default(),
        folder.display()
    )]
    Taken {
        /// The lab's folder.
        folder: PathBuf,
        /// The other daemon, if it has said so.
        process: Option<u32>,
    },
    /// There is nothing to read.
    #[error("no lab has been here yet; start `layerlab daemon`")]
    Missing,
    /// Its tables have changed since this program was made.
    #[error(
        "{place} was written by a newer layerlab (its tables have version {version}); use that one, or another LAYERLAB_STATE"
    )]
    Newer {
        /// Where the store is.
        place: StorePlace,
        /// The version of its tables.
        version: i64,
    },
    /// One of its records has changed since this program was made.
    #[error(
        "{place} holds {what} that was written by a newer layerlab (version {version} of its kind); update layerlab, or use another LAYERLAB_STATE"
    )]
    NewerRecord {
        /// Where the store is.
        place: StorePlace,
        /// What the record is called, with its article.
        what: &'static str,
        /// The version of its body.
        version: u32,
    },
    /// Its tables have not been changed to what this program reads.
    #[error(
        "{place} was written by an older layerlab; start `layerlab daemon`, which brings it up to date"
    )]
    Older {
        /// Where the store is.
        place: StorePlace,
    },
    /// It is no store, or no longer a whole one.
    #[error(
        "{place} is damaged ({reason}); restore it from a backup, or move it away to begin a new lab"
    )]
    Damaged {
        /// Where the store is.
        place: StorePlace,
        /// What is wrong.
        reason: String,
    },
    /// The folder, or the lock in it, cannot be made.
    #[error("cannot use {} for the lab: {source}", path.display())]
    Folder {
        /// The folder or the lock.
        path: PathBuf,
        /// What the system said about the folder.
        source: io::Error,
    },
    /// The file cannot be opened or read.
    #[error("the lab cannot use {place}: {reason}; {remedy}")]
    Unusable {
        /// Where the store is.
        place: StorePlace,
        /// What SQLite said.
        reason: String,
        /// What may help.
        remedy: &'static str,
    },
    /// It would contradict what was kept before. Nothing of the call was kept.
    #[error("the lab's store refuses what contradicts it: {reason}; this is a bug of layerlab")]
    Refused {
        /// What is wrong.
        reason: String,
    },
    /// Nothing is written any more.
    #[error("the lab's store no longer works; start `layerlab daemon` again")]
    Gone,
}

impl StoreError {
    pub(super) fn of_database(place: &StorePlace, error: &sqlx::Error) -> StoreError {
        let place = place.clone();
        let reason = sentence(error);
        match error {
            sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => {
                StoreError::Damaged { place, reason }
            }
            _ => match result_code(error) {
                Some(CORRUPT | NOT_A_DATABASE) => StoreError::Damaged { place, reason },
                _ => StoreError::Unusable {
                    place,
                    reason,
                    remedy: remedy(error),
                },
            },
        }
    }

    pub(super) fn of_migration(place: &StorePlace, error: MigrateError) -> StoreError {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                StoreError::of_database(place, &error)
            }
            MigrateError::VersionMissing(version) => StoreError::Newer {
                place: place.clone(),
                version,
            },
            other => StoreError::Damaged {
                place: place.clone(),
                reason: other.to_string(),
            },
        }
    }

    pub(super) fn unreadable(
        place: &StorePlace,
        what: &str,
        error: &serde_json::Error,
    ) -> StoreError {
        StoreError::Damaged {
            place: place.clone(),
            reason: format!("{what} is not as layerlab writes it: {error}"),
        }
    }
}

/// SQLite's result codes, as far as they are told apart.
const ERROR: i32 = 1;
const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const READ_ONLY: i32 = 8;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANNOT_OPEN: i32 = 14;
const NOT_A_DATABASE: i32 = 26;

/// The primary code: extended ones have it in their lowest byte.
fn result_code(error: &sqlx::Error) -> Option<i32> {
    let error = error
        .as_database_error()?
        .try_downcast_ref::<SqliteError>()?;
    let code = error.code()?.parse::<i32>().ok()?;
    Some(code & 0xff)
}

/// Whether a table is not there.
pub(super) fn is_about_tables(error: &sqlx::Error) -> bool {
    result_code(error) == Some(ERROR)
}

/// What the database says, without the driver's frame.
pub(super) fn sentence(error: &sqlx::Error) -> String {
    match error.as_database_error() {
        Some(error) => error.message().to_owned(),
        None => error.to_string(),
    }
}

pub(super) fn remedy(error: &sqlx::Error) -> &'static str {
    match result_code(error) {
        Some(FULL) => "make room",
        Some(BUSY | LOCKED) => "end the program that has it open",
        Some(READ_ONLY | CANNOT_OPEN) => "see that it and its folder are there, and can be written",
        Some(CORRUPT | NOT_A_DATABASE) => {
            "stop the daemon, and restore it from a backup or move it away"
        }
        _ => "see that its disk works and has room",
    }
}

//! What keeps a change from being made, or a question from being answered.

use layerlab_protocol::RunId;

use super::cause::{is_about_data, sentence};
use super::error::StoreError;
use super::lost::LostLease;

/// Why a change is not made.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// The change itself is wrong: it will never be made.
    Refused {
        reason: String,
        journal: Option<RunId>,
    },
    /// It can be made when the database works again.
    Database(sqlx::Error),
}

impl From<sqlx::Error> for Obstacle {
    fn from(error: sqlx::Error) -> Obstacle {
        match is_about_data(&error) {
            true => Obstacle::Refused {
                reason: sentence(&error),
                journal: None,
            },
            false => Obstacle::Database(error),
        }
    }
}

/// What came of a call.
pub(super) type Outcome = Result<(), RefusedCall>;

/// Why a call is not kept, ever.
#[derive(Clone, Debug)]
pub(super) struct RefusedCall {
    pub(super) reason: String,
    pub(super) journal: Option<RunId>,
}

/// Why a batch of calls is not kept.
#[derive(Debug)]
pub(super) enum Unkept {
    /// It can be kept when the database works again.
    Database(sqlx::Error),
    /// It never will be by this daemon.
    Lost(LostLease),
}

impl From<sqlx::Error> for Unkept {
    fn from(error: sqlx::Error) -> Unkept {
        Unkept::Database(error)
    }
}

impl From<serde_json::Error> for Obstacle {
    fn from(error: serde_json::Error) -> Obstacle {
        Obstacle::Refused {
            reason: format!("it cannot be written as JSON: {error}"),
            journal: None,
        }
    }
}

/// Why a question has no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The database does not answer it.
    Database(sqlx::Error),
    /// What it answers is no record.
    Record(StoreError),
}

impl From<sqlx::Error> for Unanswered {
    fn from(error: sqlx::Error) -> Unanswered {
        Unanswered::Database(error)
    }
}

impl From<StoreError> for Unanswered {
    fn from(error: StoreError) -> Unanswered {
        Unanswered::Record(error)
    }
}

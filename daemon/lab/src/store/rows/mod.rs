//! Records as they stand in the bodies of the store's rows: types of their own, so that a record can change without what
//! is stored. Each body says its version; what earlier versions wrote is read for ever, and the newest one is written.

mod device;
mod event;
mod happening;
mod job;
mod job_spec;
mod quarantine;
mod reservation;
mod run;
mod states;
#[cfg(test)]
mod tests;
mod verdict;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A record that the store keeps.
pub(super) trait StoredRecord: Clone {
    /// What it is called in a sentence, with its article.
    const WHAT: &'static str;
    /// The version in which its body is written. Bodies before version 1 do not say theirs.
    const VERSION: u32;
    /// Its body.
    type Row: Serialize + DeserializeOwned + From<Self> + Into<Self>;
}

/// Why a body gives no record.
#[derive(Debug)]
pub(super) enum BodyError {
    /// A newer layerlab wrote it, in this version.
    Newer(u32),
    /// No layerlab wrote it so.
    Unreadable(serde_json::Error),
}

/// A body without its version, or only its version.
#[derive(Serialize)]
struct Versioned<'a, R> {
    version: u32,
    #[serde(flatten)]
    row: &'a R,
}

#[derive(Deserialize)]
struct BodyVersion {
    #[serde(default)]
    version: u32,
}

/// The body of `record`.
pub(super) fn body<T: StoredRecord>(record: &T) -> Result<String, serde_json::Error> {
    let row = T::Row::from(record.clone());
    serde_json::to_string(&Versioned {
        version: T::VERSION,
        row: &row,
    })
}

/// The record of which `body` is the body.
pub(super) fn record<T: StoredRecord>(body: &str) -> Result<T, BodyError> {
    let parsed: Result<T::Row, serde_json::Error> = serde_json::from_str(body);
    // What a newer version means is not known, even if it can be parsed.
    let BodyVersion { version } = serde_json::from_str(body).map_err(BodyError::Unreadable)?;
    if version > T::VERSION {
        return Err(BodyError::Newer(version));
    }
    parsed.map(Into::into).map_err(BodyError::Unreadable)
}

//! Records out of the bodies of rows.

use super::error::StoreError;
use super::place::StorePlace;
use super::rows::{self, BodyError, StoredRecord};

/// The record in a body of the store at `place`.
pub(super) fn record<T: StoredRecord>(place: &StorePlace, body: &str) -> Result<T, StoreError> {
    rows::record(body).map_err(|error| match error {
        BodyError::Newer(version) => StoreError::NewerRecord {
            place: place.clone(),
            what: T::WHAT,
            version,
        },
        BodyError::Unreadable(error) => StoreError::unreadable(place, T::WHAT, &error),
    })
}

//! The report of a stretch of time, from the store.

use jiff::{SignedDuration, Timestamp};

use crate::report::Report;
use crate::store::{Reader, StoreError};

/// What lies before a report's period and explains it: a device that was left alone before may still be.
const EARLIER: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What the lab was asked for from `since` to `until`, and what came of it.
pub async fn report(
    reader: &Reader,
    since: Timestamp,
    until: Timestamp,
) -> Result<Report, StoreError> {
    let kept = reader.all().await?;
    let earlier = since.checked_sub(EARLIER).unwrap_or(since);
    let events = reader.events(earlier, until).await?;
    Ok(Report::of(&kept, &events, since, until))
}

//! Waits until the lab publishes something.

use std::path::Path;

use tokio::sync::watch;

use crate::record::What;
use crate::store::{Reader, StoreError};

/// How many events are looked at together.
const AT_ONCE: u32 = 1000;

/// Waits until something is published after the event of number `seen` of the store in `folder`; false if the lab has ended.
/// `last_event` is the number of the store's last event.
pub(crate) async fn published_after(
    folder: &Path,
    mut seen: i64,
    last_event: &mut watch::Receiver<i64>,
) -> Result<bool, StoreError> {
    let reader = Reader::open(folder).await?;
    loop {
        if last_event.wait_for(|&last| last > seen).await.is_err() {
            return Ok(false);
        }
        let events = reader.events_after(seen, AT_ONCE).await?;
        let is_publication = |what: &What| {
            matches!(
                what,
                What::Published { .. } | What::VideoPublished { .. } | What::LinkPublished { .. }
            )
        };
        if events.iter().any(|event| is_publication(&event.what)) {
            return Ok(true);
        }
        seen = events.last().map_or(seen, |event| event.number);
    }
}

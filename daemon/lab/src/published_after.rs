//! Waits until the lab publishes something.

use std::collections::BTreeSet;
use std::path::Path;

use tokio::sync::watch;

use crate::record::{Run, RunNumber, What};
use crate::store::{Reader, StoreError};

/// How many events are looked at together.
const AT_ONCE: u32 = 1000;

/// What was published.
#[derive(Debug)]
pub(crate) struct Publications {
    /// The runs that did.
    pub(crate) runs: Vec<Run>,
    /// The number of the last event that was looked at.
    pub(crate) seen: i64,
}

/// Waits until something is published after the event of number `seen` of the store in `folder`, and says what; nothing if the lab
/// has ended. `last_event` is the number of the store's last event.
pub(crate) async fn published_after(
    folder: &Path,
    mut seen: i64,
    last_event: &mut watch::Receiver<i64>,
) -> Result<Option<Publications>, StoreError> {
    let reader = Reader::open(folder).await?;
    loop {
        if last_event.wait_for(|&last| last > seen).await.is_err() {
            return Ok(None);
        }
        let events = reader.events_after(seen, AT_ONCE).await?;
        seen = events.last().map_or(seen, |event| event.number);
        let is_publication = |what: &What| {
            matches!(
                what,
                What::Published { .. } | What::VideoPublished { .. } | What::LinkPublished { .. }
            )
        };
        let published = events.iter().filter(|event| is_publication(&event.what));
        let numbers: BTreeSet<RunNumber> = published.filter_map(|event| event.run).collect();
        if !numbers.is_empty() {
            let runs = reader.runs(&numbers).await?;
            return Ok(Some(Publications { runs, seen }));
        }
    }
}

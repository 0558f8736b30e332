//! What the lab has published and what it publishes, for whoever follows that.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::record::{Kept, Run, RunNumber, What};
use crate::store::{Reader, StoreError};

/// How many events are looked at together.
const AT_ONCE: u32 = 1000;

/// How soon a store is asked again that did not answer.
const AGAIN: Duration = Duration::from_secs(60);

/// What is published in the store in a folder.
pub(crate) struct Publications {
    store: PathBuf,
    /// The number of the store's last event.
    last_event: watch::Receiver<i64>,
    /// The number of the last event that was looked at.
    seen: i64,
}

impl Publications {
    /// Those of the store in the folder `store`, the number of whose last event is `last_event`.
    pub(crate) fn of(store: PathBuf, mut last_event: watch::Receiver<i64>) -> Publications {
        let seen = *last_event.borrow_and_update();
        Publications {
            store,
            last_event,
            seen,
        }
    }

    /// All that is known of the lab, and so what was published so far, once the store answers.
    pub(crate) async fn so_far(&self) -> Kept {
        loop {
            let looked = async { Reader::open(&self.store).await?.all().await };
            match looked.await {
                Ok(kept) => return kept,
                Err(error) => {
                    tracing::warn!(%error, "what was published before is not known");
                    sleep(AGAIN).await;
                }
            }
        }
    }

    /// The runs that have published something since this was asked last, once there are any. None of them after `at_most`, or if
    /// the store did not answer; nothing if the lab has ended.
    pub(crate) async fn next(&mut self, at_most: Option<Duration>) -> Option<Vec<Run>> {
        let found = match at_most {
            None => self.find().await,
            Some(at_most) => match timeout(at_most, self.find()).await {
                Ok(found) => found,
                Err(_) => return Some(Vec::new()),
            },
        };
        match found {
            Ok(runs) => runs,
            Err(error) => {
                tracing::warn!(%error, "what is published is not known");
                sleep(AGAIN).await;
                Some(Vec::new())
            }
        }
    }

    async fn find(&mut self) -> Result<Option<Vec<Run>>, StoreError> {
        let reader = Reader::open(&self.store).await?;
        loop {
            let seen = self.seen;
            if (self.last_event.wait_for(|&last| last > seen).await).is_err() {
                return Ok(None);
            }
            let events = reader.events_after(seen, AT_ONCE).await?;
            let is_publication = |what: &What| {
                matches!(
                    what,
                    What::Published { .. }
                        | What::VideoPublished { .. }
                        | What::LinkPublished { .. }
                )
            };
            let published = events.iter().filter(|event| is_publication(&event.what));
            let numbers: BTreeSet<RunNumber> = published.filter_map(|event| event.run).collect();
            let runs = match numbers.is_empty() {
                true => Vec::new(),
                false => reader.runs(&numbers).await?,
            };
            // Not before the runs are at hand: this may be given up at any moment.
            self.seen = events.last().map_or(seen, |event| event.number);
            if !runs.is_empty() {
                return Ok(Some(runs));
            }
        }
    }
}

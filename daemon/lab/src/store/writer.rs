//! The one task that writes: it keeps what has gathered while it wrote, in one transaction, until it is written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use layerlab_protocol::RunId;
use sqlx::AnyConnection;
use sqlx::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use super::apart::apart;
use super::entries::LastEntries;
use super::error::{StoreError, remedy, sentence};
use super::lock::Lock;
use super::make::make;
use super::obstacle::Obstacle;
use super::place::StorePlace;
use crate::record::RecordChange;

/// How many calls wait before callers have to; also the most that share a transaction.
pub(super) const QUEUE: usize = 256;

/// The pause before the same is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What one call wants kept.
pub(super) struct KeepRequest {
    pub(super) changes: Vec<RecordChange>,
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
}

/// Writes what comes until no one is left who could send anything.
pub(super) async fn write(
    mut requests: mpsc::Receiver<KeepRequest>,
    mut hand: StoreHand,
    trouble: watch::Sender<Option<String>>,
    last_event: watch::Sender<i64>,
) {
    let mut bulletin = Bulletin {
        disk: None,
        journals: BTreeMap::new(),
        trouble,
        last_event,
    };
    let mut waiting = Vec::with_capacity(QUEUE);
    while requests.recv_many(&mut waiting, QUEUE).await > 0 {
        let mut batch = Batch::of(std::mem::take(&mut waiting));
        let outcomes = loop {
            let result;
            match apart(move || async move {
                let result = hand.keep(&batch.calls).await;
                (hand, batch, result)
            })
            .await
            {
                Ok(back) => (hand, batch, result) = back,
                // The work itself broke off. Whoever waits is told by the channel's end.
                Err(_) => return,
            }
            match result {
                Ok(outcomes) => break outcomes,
                Err(error) => {
                    bulletin.cannot_write(&hand, &error);
                    tokio::time::sleep(RETRY).await;
                }
            }
        };
        bulletin.wrote(&batch.calls, &outcomes);
        for (answer, outcome) in batch.answers.into_iter().zip(outcomes) {
            let outcome = outcome.map_err(|refusal| StoreError::Refused {
                reason: refusal.reason,
            });
            // Who does not wait any more does not need the answer.
            let _ = answer.send(outcome);
        }
    }
    // The lock is given back last, and only then can it be seen that the writer is gone.
    let _ = apart(move || hand.end()).await;
    tracing::debug!("the store is closed");
}

/// The calls that share a transaction.
struct Batch {
    calls: Vec<Vec<RecordChange>>,
    answers: Vec<oneshot::Sender<Result<(), StoreError>>>,
}

impl Batch {
    fn of(requests: Vec<KeepRequest>) -> Batch {
        let (calls, answers) = requests
            .into_iter()
            .map(|request| (request.changes, request.answer))
            .unzip();
        Batch { calls, answers }
    }
}

/// Why a call is not kept, ever.
#[derive(Debug)]
struct RefusedCall {
    reason: String,
    journal: Option<RunId>,
}

/// What the writing is done with.
pub(super) struct StoreHand {
    place: StorePlace,
    /// None after an error: what state the old one is in then is hard to tell, a new one is sound.
    connection: Option<AnyConnection>,
    last_entries: LastEntries,
    /// Here, so that no thread writes any more when it is given back.
    lock: Arc<Lock>,
}

impl StoreHand {
    pub(super) fn new(place: StorePlace, connection: AnyConnection, lock: Arc<Lock>) -> StoreHand {
        StoreHand {
            place,
            connection: Some(connection),
            last_entries: LastEntries::new(),
            lock,
        }
    }

    /// All calls or none, apart from those that are refused.
    async fn keep(
        &mut self,
        calls: &[Vec<RecordChange>],
    ) -> Result<Vec<Result<(), RefusedCall>>, sqlx::Error> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.place.connect().await?,
        };
        match in_one_transaction(&mut connection, &mut self.last_entries, calls).await {
            Ok(outcomes) => {
                let is_removed =
                    |change: &RecordChange| matches!(change, RecordChange::JournalGone(_));
                // What was removed stays removed if its room is not given back.
                if calls.iter().flatten().any(is_removed)
                    && let Err(error) = self.place.shrink(&mut connection).await
                {
                    tracing::warn!(%error, "the store does not shrink yet");
                }
                self.connection = Some(connection);
                Ok(outcomes)
            }
            Err(error) => {
                self.last_entries.clear();
                // The error that counts is the one that led here.
                let _ = connection.close().await;
                Err(error)
            }
        }
    }

    async fn end(self) {
        if let Some(connection) = self.connection
            && let Err(error) = connection.close().await
        {
            tracing::warn!("cannot close {}: {error}", self.place);
        }
        drop(self.lock);
    }
}

async fn in_one_transaction(
    connection: &mut AnyConnection,
    last_entries: &mut LastEntries,
    calls: &[Vec<RecordChange>],
) -> Result<Vec<Result<(), RefusedCall>>, sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let mut outcomes = Vec::with_capacity(calls.len());
    for changes in calls {
        // A savepoint: a call that is refused leaves nothing behind, and the others of the transaction stay.
        let mut call = transaction.begin().await?;
        match make_all(&mut call, last_entries, changes).await {
            Ok(()) => {
                call.commit().await?;
                outcomes.push(Ok(()));
            }
            Err(Obstacle::Refused { reason, journal }) => {
                call.rollback().await?;
                last_entries.clear();
                outcomes.push(Err(RefusedCall { reason, journal }));
            }
            Err(Obstacle::Database(error)) => return Err(error),
        }
    }
    transaction.commit().await?;
    Ok(outcomes)
}

async fn make_all(
    to: &mut AnyConnection,
    last_entries: &mut LastEntries,
    changes: &[RecordChange],
) -> Result<(), Obstacle> {
    for change in changes {
        make(change, to, last_entries).await?;
    }
    Ok(())
}

/// What is wrong, for everybody to see.
struct Bulletin {
    disk: Option<String>,
    /// Journals of which entries were refused, until they go on as they should.
    journals: BTreeMap<RunId, String>,
    trouble: watch::Sender<Option<String>>,
    /// The number of the last event that was written.
    last_event: watch::Sender<i64>,
}

impl Bulletin {
    fn cannot_write(&mut self, hand: &StoreHand, error: &sqlx::Error) {
        let trouble = format!(
            "the lab cannot write {}: {}; {}",
            hand.place,
            sentence(error),
            remedy(error)
        );
        if self.disk.as_ref() != Some(&trouble) {
            tracing::error!("{trouble}");
        }
        self.disk = Some(trouble);
        self.publish();
    }

    fn wrote(&mut self, calls: &[Vec<RecordChange>], outcomes: &[Result<(), RefusedCall>]) {
        if self.disk.take().is_some() {
            tracing::info!("the lab can write again");
        }
        for (changes, outcome) in calls.iter().zip(outcomes) {
            match outcome {
                Ok(()) => {
                    for change in changes {
                        match change {
                            RecordChange::Entries { run, .. } | RecordChange::JournalGone(run) => {
                                self.journals.remove(run);
                            }
                            RecordChange::Event(event) => self.happened(event.number),
                            _ => {}
                        }
                    }
                }
                Err(refusal) => {
                    let trouble = StoreError::Refused {
                        reason: refusal.reason.clone(),
                    };
                    tracing::error!("{trouble}");
                    if let Some(run) = &refusal.journal {
                        self.journals.insert(run.clone(), trouble.to_string());
                    }
                }
            }
        }
        self.publish();
    }

    fn happened(&self, number: i64) {
        self.last_event.send_if_modified(|last| {
            let is_newer = number > *last;
            *last = number.max(*last);
            is_newer
        });
    }

    fn publish(&self) {
        let now = self.disk.as_ref().or(self.journals.values().next());
        self.trouble.send_if_modified(|before| {
            let differs = before.as_ref() != now;
            if differs {
                *before = now.cloned();
            }
            differs
        });
    }
}

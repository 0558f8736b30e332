//! The one task that writes: it keeps what has gathered while it wrote, in one transaction, until it is written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use layerlab_protocol::RunId;
use sqlx::AnyConnection;
use sqlx::Connection;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::apart::apart;
use super::cause::{remedy, sentence};
use super::entries::LastEntries;
use super::error::StoreError;
use super::in_time::in_time;
use super::lock::Lock;
use super::make::make;
use super::obstacle::{Obstacle, Outcome, RefusedCall, Unkept};
use super::owner::{self, Owner, Standing};
use super::place::StorePlace;
use super::schema;
use crate::record::RecordChange;

/// How many calls wait before callers have to; also the most that share a transaction.
pub(super) const QUEUE: usize = 256;

/// The pause before the same is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How often a daemon that has nothing to write looks whether its server can be reached and the store is still its own.
const LOOK: Duration = Duration::from_secs(60);

/// What one call wants kept.
pub(super) struct KeepRequest {
    pub(super) changes: Vec<RecordChange>,
    pub(super) answer: oneshot::Sender<Result<(), StoreError>>,
}

/// What the writer tells whoever wants to know.
pub(super) struct WriterNews {
    /// Why nothing can be written now, or why a journal cannot go on.
    pub(super) trouble: watch::Sender<Option<String>>,
    /// The number of the last event that was written.
    pub(super) last_event: watch::Sender<i64>,
    /// Who has taken the store from this daemon.
    pub(super) replaced: watch::Sender<Option<String>>,
}

/// Writes what comes until no one is left who could send anything.
pub(super) async fn write(
    mut requests: mpsc::Receiver<KeepRequest>,
    mut hand: StoreHand,
    news: WriterNews,
) {
    let mut bulletin = Bulletin {
        writing: None,
        journals: BTreeMap::new(),
        news,
    };
    let mut waiting = Vec::with_capacity(QUEUE);
    loop {
        let receiving = requests.recv_many(&mut waiting, QUEUE);
        let received = match hand.owner {
            Some(_) => timeout(LOOK, receiving).await,
            None => Ok(receiving.await),
        };
        if received == Ok(0) {
            break;
        }
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
                Err(Unkept::Database(error)) => {
                    bulletin.cannot_write(&hand.place, &error);
                    tokio::time::sleep(RETRY).await;
                }
                Err(Unkept::Replaced(by)) => {
                    let place = hand.place.clone();
                    let _ = apart(move || hand.end()).await;
                    return refuse_all(&place, by, batch, requests, &bulletin).await;
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

/// Tells everybody that the store is another daemon's, until nobody is left.
async fn refuse_all(
    place: &StorePlace,
    by: String,
    batch: Batch,
    mut requests: mpsc::Receiver<KeepRequest>,
    bulletin: &Bulletin,
) {
    let replaced = || StoreError::Replaced {
        place: place.clone(),
        by: by.clone(),
    };
    bulletin.news.replaced.send_replace(Some(by.clone()));
    for answer in batch.answers {
        let _ = answer.send(Err(replaced()));
    }
    while let Some(request) = requests.recv().await {
        let _ = request.answer.send(Err(replaced()));
    }
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

/// What the writing is done with.
pub(super) struct StoreHand {
    place: StorePlace,
    /// None after an error: what state the old one is in then is hard to tell, a new one is sound.
    connection: Option<AnyConnection>,
    last_entries: LastEntries,
    /// On a server: that the store is this daemon's.
    owner: Option<Owner>,
    /// Here, so that no thread writes any more when it is given back.
    lock: Arc<Lock>,
}

impl StoreHand {
    /// What writes to the store at `place`, of which the tables are brought up to date.
    pub(super) async fn open(place: StorePlace, lock: Arc<Lock>) -> Result<StoreHand, StoreError> {
        let failed = |error: sqlx::Error| StoreError::of_database(&place, &error);
        let mut connection = place.connect().await.map_err(failed)?;
        if place.is_on_server() {
            // First of all: nobody else makes or changes tables meanwhile.
            owner::lock(&place, &mut connection).await?;
        }
        schema::prepare(&place, &mut connection).await?;
        place.let_shrink(&mut connection).await;
        let owner = match place.is_on_server() {
            true => Some(Owner::begin(&mut connection).await.map_err(failed)?),
            false => None,
        };
        Ok(StoreHand {
            place,
            connection: Some(connection),
            last_entries: LastEntries::new(),
            owner,
            lock,
        })
    }

    /// All calls or none, apart from those that are refused.
    async fn keep(&mut self, calls: &[Vec<RecordChange>]) -> Result<Vec<Outcome>, Unkept> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                if let Some(owner) = &mut self.owner {
                    owner.lost_connection();
                }
                self.place.connect().await?
            }
        };
        match self.keep_by(&mut connection, calls).await {
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
                self.place.leave(connection).await;
                Err(error)
            }
        }
    }

    async fn keep_by(
        &mut self,
        connection: &mut AnyConnection,
        calls: &[Vec<RecordChange>],
    ) -> Result<Vec<Outcome>, Unkept> {
        let Some(owner) = &mut self.owner else {
            return in_one_transaction(connection, &mut self.last_entries, None, calls).await;
        };
        in_time(owner.hold(connection)).await?;
        if calls.iter().all(Vec::is_empty) {
            return match in_time(owner.look(connection)).await? {
                Standing::Replaced(by) => Err(Unkept::Replaced(by)),
                _ => Ok(calls.iter().map(|_| Ok(())).collect()),
            };
        }
        let outcomes =
            in_one_transaction(connection, &mut self.last_entries, Some(owner), calls).await?;
        owner.committed();
        Ok(outcomes)
    }

    async fn end(self) {
        if let Some(mut connection) = self.connection {
            if let Some(owner) = self.owner
                && let Err(error) = in_time(owner.end(&mut connection)).await
            {
                tracing::warn!("cannot give {} back: {}", self.place, sentence(&error));
            }
            self.place.leave(connection).await;
        }
        drop(self.lock);
    }
}

async fn in_one_transaction(
    connection: &mut AnyConnection,
    last_entries: &mut LastEntries,
    mut owner: Option<&mut Owner>,
    calls: &[Vec<RecordChange>],
) -> Result<Vec<Outcome>, Unkept> {
    let mut transaction = in_time(connection.begin()).await?;
    if let Some(owner) = &mut owner {
        match in_time(owner.confirm(&mut transaction)).await? {
            Standing::Write => {}
            Standing::Written(outcomes) => return Ok(outcomes),
            Standing::Replaced(by) => return Err(Unkept::Replaced(by)),
        }
    }
    let mut outcomes = Vec::with_capacity(calls.len());
    for changes in calls {
        // A savepoint: a call that is refused leaves nothing behind, and the others of the transaction stay.
        let mut call = in_time(transaction.begin()).await?;
        match make_all(&mut call, last_entries, changes).await {
            Ok(()) => {
                in_time(call.commit()).await?;
                outcomes.push(Ok(()));
            }
            Err(Obstacle::Refused { reason, journal }) => {
                in_time(call.rollback()).await?;
                last_entries.clear();
                outcomes.push(Err(RefusedCall { reason, journal }));
            }
            Err(Obstacle::Database(error)) => return Err(error.into()),
        }
    }
    if let Some(owner) = &mut owner {
        owner.commits(&outcomes);
    }
    in_time(transaction.commit()).await?;
    Ok(outcomes)
}

async fn make_all(
    to: &mut AnyConnection,
    last_entries: &mut LastEntries,
    changes: &[RecordChange],
) -> Result<(), Obstacle> {
    for change in changes {
        in_time(make(change, to, last_entries)).await?;
    }
    Ok(())
}

/// What is wrong, for everybody to see.
struct Bulletin {
    /// Why nothing can be written now.
    writing: Option<String>,
    /// Journals of which entries were refused, until they go on as they should.
    journals: BTreeMap<RunId, String>,
    news: WriterNews,
}

impl Bulletin {
    fn cannot_write(&mut self, place: &StorePlace, error: &sqlx::Error) {
        let trouble = format!(
            "the lab cannot write {place}: {}; {}",
            sentence(error),
            remedy(error)
        );
        if self.writing.as_ref() != Some(&trouble) {
            tracing::error!("{trouble}");
        }
        self.writing = Some(trouble);
        self.publish();
    }

    fn wrote(&mut self, calls: &[Vec<RecordChange>], outcomes: &[Outcome]) {
        if self.writing.take().is_some() {
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
        self.news.last_event.send_if_modified(|last| {
            let is_newer = number > *last;
            *last = number.max(*last);
            is_newer
        });
    }

    fn publish(&self) {
        let now = self.writing.as_ref().or(self.journals.values().next());
        self.news.trouble.send_if_modified(|before| {
            let differs = before.as_ref() != now;
            if differs {
                *before = now.cloned();
            }
            differs
        });
    }
}

//! The one task that writes: it keeps what has gathered while it wrote, in one transaction, until it is written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use layerlab_protocol::RunId;
use sqlx::{Any, AnyConnection, Connection, Transaction};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::apart::apart;
use super::cause::{remedy, sentence};
use super::entries::LastEntries;
use super::error::StoreError;
use super::in_time::{in_time, no_answer};
use super::lease::{self, HostLease, LEASE, Standing};
use super::lock::Lock;
use super::lost::LostLease;
use super::make::make;
use super::obstacle::{Obstacle, Outcome, RefusedCall, Unkept};
use super::place::StorePlace;
use super::request::KeepRequest;
use super::schema;
use super::turn::{self, OthersChanges};
use crate::record::RecordChange;

/// How many calls wait before callers have to; also the most that share a transaction.
pub(super) const QUEUE: usize = 256;

/// The pause before the same is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How often a daemon that has nothing to write looks whether its server can be reached, and renews its lease.
const LOOK: Duration = Duration::from_secs(LEASE.as_secs() / 4);

/// How long whoever has the lab's turn may think.
const THINKING: Duration = Duration::from_secs(5);

/// What is asked of the writer.
pub(super) enum WriterRequest {
    Keep(KeepRequest),
    /// The lab's turn, where there are several hosts.
    Turn(TurnRequest),
}

/// Where the turn goes: what others have changed, and where to send what is to be kept.
pub(super) struct TurnRequest {
    pub(super) answer: oneshot::Sender<Result<TurnAnswer, StoreError>>,
}

/// What other hosts have changed, and where to send what is to be kept.
pub(super) type TurnAnswer = (OthersChanges, oneshot::Sender<KeepRequest>);

/// What the writer tells whoever wants to know.
pub(super) struct WriterNews {
    /// Why nothing can be written now, or why a journal cannot go on.
    pub(super) trouble: watch::Sender<Option<String>>,
    /// The number of the last event that was written.
    pub(super) last_event: watch::Sender<i64>,
    /// How this daemon lost the right to write, if it has.
    pub(super) lost: watch::Sender<Option<LostLease>>,
}

/// Writes what comes until no one is left who could send anything.
pub(super) async fn write(
    mut requests: mpsc::Receiver<WriterRequest>,
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
        let received = match hand.lease {
            Some(_) => timeout(LOOK, receiving).await,
            None => Ok(receiving.await),
        };
        if received == Ok(0) {
            break;
        }
        let mut works = work(std::mem::take(&mut waiting)).into_iter();
        while let Some(work) = works.next() {
            let place = hand.place.clone();
            match hand.finish(work, &mut bulletin).await {
                Finished::Done(back) => hand = *back,
                // The work itself broke off. Whoever waits is told by the channel's end.
                Finished::BrokeOff => return,
                Finished::Lost(lost, answers) => {
                    bulletin.news.lost.send_replace(Some(lost.clone()));
                    let refusal = || StoreError::of_lease(&place, lost.clone());
                    for answer in answers {
                        let _ = answer.send(Err(refusal()));
                    }
                    works.for_each(|work| work.refuse(refusal));
                    // Everybody is told, until nobody is left.
                    while let Some(request) = requests.recv().await {
                        work_of(request).refuse(refusal);
                    }
                    return;
                }
            }
        }
    }
    // The lock is given back last, and only then can it be seen that the writer is gone.
    let _ = apart(move || hand.end()).await;
    tracing::debug!("the store is closed");
}

/// What is done at once: the calls that share a transaction, or a turn.
enum Work {
    Batch(Batch),
    Turn(TurnRequest),
}

impl Work {
    /// Tells whoever waits for it why it is not done.
    fn refuse(self, refusal: impl Fn() -> StoreError) {
        match self {
            Work::Batch(batch) => {
                for answer in batch.answers {
                    let _ = answer.send(Err(refusal()));
                }
            }
            Work::Turn(turn) => drop(turn.answer.send(Err(refusal()))),
        }
    }
}

fn work_of(request: WriterRequest) -> Work {
    match request {
        WriterRequest::Keep(call) => Work::Batch(Batch::of(vec![call])),
        WriterRequest::Turn(turn) => Work::Turn(turn),
    }
}

/// What is to be done about `requests`, in their order. Nothing to write is a batch as well: it looks in.
fn work(requests: Vec<WriterRequest>) -> Vec<Work> {
    let mut works = Vec::new();
    let mut calls = Vec::new();
    let is_idle = requests.is_empty();
    for request in requests {
        match request {
            WriterRequest::Keep(call) => calls.push(call),
            WriterRequest::Turn(turn) => {
                if !calls.is_empty() {
                    works.push(Work::Batch(Batch::of(std::mem::take(&mut calls))));
                }
                works.push(Work::Turn(turn));
            }
        }
    }
    if is_idle || !calls.is_empty() {
        works.push(Work::Batch(Batch::of(calls)));
    }
    works
}

/// What came of a work.
enum Finished {
    Done(Box<StoreHand>),
    BrokeOff,
    /// This daemon may not write any more; these wait for an answer.
    Lost(LostLease, Vec<oneshot::Sender<Result<(), StoreError>>>),
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
    /// On a server: that this host may write.
    lease: Option<HostLease>,
    /// The last change of the lab that this daemon knows of.
    revision: i64,
    /// Here, so that no thread writes any more when it is given back.
    lock: Arc<Lock>,
}

impl StoreHand {
    /// What writes to the store at `place`, of which the tables are brought up to date.
    pub(super) async fn open(place: StorePlace, lock: Arc<Lock>) -> Result<StoreHand, StoreError> {
        let failed = |error: sqlx::Error| StoreError::of_database(&place, &error);
        let mut connection = place.connect().await.map_err(failed)?;
        let (lease, revision) = if place.is_on_server() {
            lease::enter(&place, &mut connection).await?;
            let lease = HostLease::begin(&place, &mut connection).await?;
            let revision = turn::revision(&mut connection).await.map_err(failed)?;
            (Some(lease), revision)
        } else {
            schema::prepare(&place, &mut connection).await?;
            place.let_shrink(&mut connection).await;
            (None, 0)
        };
        Ok(StoreHand {
            place,
            connection: Some(connection),
            last_entries: LastEntries::new(),
            lease,
            revision,
            lock,
        })
    }

    /// The number of this host's row, where there are several.
    pub(super) fn host(&self) -> Option<i64> {
        self.lease.as_ref().map(HostLease::id)
    }

    /// Does `work`, however long the database cannot.
    async fn finish(self, work: Work, bulletin: &mut Bulletin) -> Finished {
        match work {
            Work::Batch(batch) => self.finish_batch(batch, None, bulletin).await,
            Work::Turn(request) => self.finish_turn(request, bulletin).await,
        }
    }

    /// Writes a batch. That of a turn, which ended too early, goes on from the change `from`, and from no later one.
    async fn finish_batch(
        self,
        mut batch: Batch,
        from: Option<i64>,
        bulletin: &mut Bulletin,
    ) -> Finished {
        let mut hand = self;
        let outcomes = loop {
            let result;
            match apart(move || async move {
                let result = hand.keep(&batch.calls, from).await;
                (hand, batch, result)
            })
            .await
            {
                Ok(back) => (hand, batch, result) = back,
                Err(_) => return Finished::BrokeOff,
            }
            match result {
                Ok(outcomes) => break outcomes,
                Err(Unkept::Database(error)) => {
                    bulletin.cannot_write(&hand.place, &error);
                    tokio::time::sleep(RETRY).await;
                }
                Err(Unkept::Lost(lost)) => {
                    let _ = apart(move || hand.end()).await;
                    return Finished::Lost(lost, batch.answers);
                }
            }
        };
        hand.wrote(batch, outcomes, bulletin)
    }

    fn wrote(self, batch: Batch, outcomes: Vec<Outcome>, bulletin: &mut Bulletin) -> Finished {
        bulletin.wrote(&batch.calls, &outcomes);
        for (answer, outcome) in batch.answers.into_iter().zip(outcomes) {
            let outcome = outcome.map_err(|refusal| StoreError::Refused {
                reason: refusal.reason,
            });
            // Who does not wait any more does not need the answer.
            let _ = answer.send(outcome);
        }
        Finished::Done(Box::new(self))
    }

    /// Gives whoever asks for it the lab's turn, and writes what comes back.
    async fn finish_turn(self, request: TurnRequest, bulletin: &mut Bulletin) -> Finished {
        let (mut hand, mut request) = (self, request);
        loop {
            let result;
            match apart(move || async move {
                let result = hand.turn(request).await;
                (hand, result)
            })
            .await
            {
                Ok(back) => (hand, result) = back,
                Err(_) => return Finished::BrokeOff,
            }
            match result {
                Ok(None) => {
                    bulletin.wrote(&[], &[]);
                    return Finished::Done(Box::new(hand));
                }
                Ok(Some((batch, outcomes))) => return hand.wrote(batch, outcomes, bulletin),
                Err(NoTurn::Away(back, error)) => {
                    request = back;
                    if request.answer.is_closed() {
                        return Finished::Done(Box::new(hand));
                    }
                    bulletin.cannot_write(&hand.place, &error);
                    tokio::time::sleep(RETRY).await;
                }
                Err(NoTurn::Ended(error)) => {
                    tracing::debug!(%error, "a turn ended with its connection");
                    return Finished::Done(Box::new(hand));
                }
                // What was decided in the turn is written as long as nobody else has changed anything.
                Err(NoTurn::Unkept(batch, error)) => {
                    bulletin.cannot_write(&hand.place, &error);
                    let from = hand.revision;
                    return Box::pin(hand.finish_batch(batch, Some(from), bulletin)).await;
                }
                Err(NoTurn::Lost(lost, answers)) => {
                    let _ = apart(move || hand.end()).await;
                    return Finished::Lost(lost, answers);
                }
                Err(NoTurn::Unreadable(back, error)) => {
                    let _ = back.answer.send(Err(error));
                    return Finished::Done(Box::new(hand));
                }
            }
        }
    }

    /// The connection that writes; a new one after an error.
    async fn connection(&mut self) -> Result<AnyConnection, sqlx::Error> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        if let Some(lease) = &mut self.lease {
            lease.lost_connection();
        }
        self.place.connect().await
    }

    /// Lets a connection go on which something went wrong.
    async fn leave(&mut self, connection: AnyConnection) {
        self.last_entries.clear();
        self.place.leave(connection).await;
    }

    /// All calls or none, apart from those that are refused.
    async fn keep(
        &mut self,
        calls: &[Vec<RecordChange>],
        from: Option<i64>,
    ) -> Result<Vec<Outcome>, Unkept> {
        let mut connection = self.connection().await?;
        match self.keep_by(&mut connection, calls, from).await {
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
                self.leave(connection).await;
                Err(error)
            }
        }
    }

    async fn keep_by(
        &mut self,
        connection: &mut AnyConnection,
        calls: &[Vec<RecordChange>],
        from: Option<i64>,
    ) -> Result<Vec<Outcome>, Unkept> {
        if let Some(lease) = &mut self.lease {
            in_time(lease.hold(connection)).await?;
            if calls.iter().all(Vec::is_empty) {
                return match in_time(lease.look(connection)).await? {
                    Standing::Lost(lost) => Err(Unkept::Lost(lost)),
                    _ => Ok(calls.iter().map(|_| Ok(())).collect()),
                };
            }
        }
        let mut transaction = in_time(connection.begin()).await?;
        if let Some(lease) = &mut self.lease {
            let mut revision = None;
            if calls.iter().flatten().any(RecordChange::is_shared) {
                revision = Some(in_time(turn::take(&mut transaction)).await?);
            }
            match in_time(lease.confirm(&mut transaction)).await? {
                Standing::Write => {}
                Standing::Written(outcomes) => {
                    lease.committed();
                    in_time(transaction.rollback()).await?;
                    return Ok(outcomes);
                }
                Standing::Lost(lost) => return Err(Unkept::Lost(lost)),
            }
            if let (Some(from), Some(revision)) = (from, revision)
                && revision != from + 1
            {
                return Err(Unkept::Lost(LostLease::Overtaken));
            }
        }
        let outcomes = self.make_calls(&mut transaction, calls).await?;
        in_time(transaction.commit()).await?;
        if let Some(lease) = &mut self.lease {
            lease.committed();
        }
        Ok(outcomes)
    }

    /// Makes the changes of each call, in a transaction in which this host may write.
    async fn make_calls(
        &mut self,
        transaction: &mut AnyConnection,
        calls: &[Vec<RecordChange>],
    ) -> Result<Vec<Outcome>, sqlx::Error> {
        let host = self.host();
        let mut outcomes = Vec::with_capacity(calls.len());
        for changes in calls {
            // A savepoint: a call that is refused leaves nothing behind, and the others of the transaction stay.
            let mut call = in_time(transaction.begin()).await?;
            match make_all(&mut call, &mut self.last_entries, changes, host).await {
                Ok(()) => {
                    in_time(call.commit()).await?;
                    outcomes.push(Ok(()));
                }
                Err(Obstacle::Refused { reason, journal }) => {
                    in_time(call.rollback()).await?;
                    self.last_entries.clear();
                    outcomes.push(Err(RefusedCall { reason, journal }));
                }
                Err(Obstacle::Database(error)) => return Err(error),
            }
        }
        if let (Some(lease), Some(host)) = (&mut self.lease, host) {
            if calls.iter().flatten().any(RecordChange::is_shared) {
                in_time(turn::tell(transaction, host)).await?;
            }
            lease.commits(&outcomes);
        }
        Ok(outcomes)
    }

    /// A turn, of which nothing or the batch that was written comes.
    async fn turn(
        &mut self,
        request: TurnRequest,
    ) -> Result<Option<(Batch, Vec<Outcome>)>, NoTurn> {
        let mut connection = match self.connection().await {
            Ok(connection) => connection,
            Err(error) => return Err(NoTurn::Away(request, error)),
        };
        let result = self.turn_by(&mut connection, request).await;
        match &result {
            Ok(_) | Err(NoTurn::Unreadable(..)) => self.connection = Some(connection),
            Err(_) => self.leave(connection).await,
        }
        result
    }

    async fn turn_by(
        &mut self,
        connection: &mut AnyConnection,
        request: TurnRequest,
    ) -> Result<Option<(Batch, Vec<Outcome>)>, NoTurn> {
        let begun = match self.begin_turn(connection).await {
            Ok(begun) => begun,
            Err(Unkept::Database(error)) => return Err(NoTurn::Away(request, error)),
            Err(Unkept::Lost(lost)) => {
                let error = StoreError::of_lease(&self.place, lost.clone());
                let _ = request.answer.send(Err(error));
                return Err(NoTurn::Lost(lost, Vec::new()));
            }
        };
        let (mut transaction, revision, others) = begun;
        let others = match others {
            Ok(others) => others,
            Err(error) => return Err(NoTurn::Unreadable(request, error)),
        };
        let (keep, mut decided) = oneshot::channel();
        let is_taken = request.answer.send(Ok((others, keep))).is_ok();
        if is_taken {
            // What others have changed is known now, whatever comes of the turn.
            self.revision = revision - 1;
        }
        let decision = timeout(THINKING, &mut decided).await;
        let batch = match decision {
            Ok(Ok(decided)) => Batch::of(vec![decided]),
            // Who has the turn and does nothing with it has dropped it. The next host does not wait until this one writes again.
            Ok(Err(_)) => {
                return match in_time(transaction.rollback()).await {
                    Ok(()) => Ok(None),
                    Err(error) => Err(NoTurn::Ended(error)),
                };
            }
            Err(_) => {
                drop(transaction);
                return match decided.await {
                    Ok(decided) => {
                        let batch = Batch::of(vec![decided]);
                        Err(NoTurn::Unkept(batch, no_answer(THINKING)))
                    }
                    Err(_) => Err(NoTurn::Ended(no_answer(THINKING))),
                };
            }
        };
        let made = self.make_calls(&mut transaction, &batch.calls).await;
        let outcomes = match made {
            Ok(outcomes) => outcomes,
            Err(error) => return Err(NoTurn::Unkept(batch, error)),
        };
        if let Err(error) = in_time(transaction.commit()).await {
            return Err(NoTurn::Unkept(batch, error));
        }
        if let Some(lease) = &mut self.lease {
            lease.committed();
        }
        self.revision = revision;
        Ok(Some((batch, outcomes)))
    }

    /// Waits for the turn: its transaction, which change of the lab it is, and what others have changed before it.
    async fn begin_turn<'a>(
        &mut self,
        connection: &'a mut AnyConnection,
    ) -> Result<(Transaction<'a, Any>, i64, Result<OthersChanges, StoreError>), Unkept> {
        let Some(lease) = &mut self.lease else {
            // One host has all turns.
            return Err(Unkept::Database(sqlx::Error::WorkerCrashed));
        };
        in_time(lease.hold(connection)).await?;
        let mut transaction = in_time(connection.begin()).await?;
        let revision = in_time(turn::take(&mut transaction)).await?;
        match in_time(lease.confirm(&mut transaction)).await? {
            // Nothing is in doubt: a turn begins when what was kept before is known.
            Standing::Write | Standing::Written(_) => {}
            Standing::Lost(lost) => return Err(Unkept::Lost(lost)),
        }
        let (host, patience) = (lease.id(), self.place.host_patience());
        in_time(turn::fence(&mut transaction, host, patience)).await?;
        let others = turn::others(&self.place, &mut transaction, host, self.revision);
        let others = in_time(others).await?;
        Ok((transaction, revision, others))
    }

    async fn end(self) {
        if let Some(mut connection) = self.connection {
            if let Some(lease) = self.lease
                && let Err(error) = in_time(lease.end(&mut connection)).await
            {
                tracing::warn!("cannot give {} back: {}", self.place, sentence(&error));
            }
            self.place.leave(connection).await;
        }
        drop(self.lock);
    }
}

/// Why nothing came of a turn.
enum NoTurn {
    /// It did not begin: the database does not work now.
    Away(TurnRequest, sqlx::Error),
    /// It did not begin: what others have changed cannot be read.
    Unreadable(TurnRequest, StoreError),
    /// Nothing was decided in it; how it is to end is told by a new connection.
    Ended(sqlx::Error),
    /// What was decided in it is not kept, or it is not known whether it is.
    Unkept(Batch, sqlx::Error),
    /// This daemon may not write any more; these wait for an answer.
    Lost(LostLease, Vec<oneshot::Sender<Result<(), StoreError>>>),
}

async fn make_all(
    to: &mut AnyConnection,
    last_entries: &mut LastEntries,
    changes: &[RecordChange],
    host: Option<i64>,
) -> Result<(), Obstacle> {
    for change in changes {
        in_time(make(change, to, last_entries, host)).await?;
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

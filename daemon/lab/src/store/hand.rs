//! What writes to the database: a connection, and on a server the lease of this host.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{Any, AnyConnection, Connection, Transaction};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::bulletin::tell_last_event;
use super::cause::sentence;
use super::entries::LastEntries;
use super::error::StoreError;
use super::in_time::{in_time, no_answer};
use super::lease::{self, HostLease, Standing};
use super::lock::Lock;
use super::lost::LostLease;
use super::make::make;
use super::obstacle::{Obstacle, Outcome, RefusedCall, Unkept};
use super::place::StorePlace;
use super::request::Batch;
use super::schema;
use super::turn::{self, OthersChanges, TurnRequest};
use crate::record::RecordChange;

/// How long whoever has the lab's turn may think.
const THINKING: Duration = Duration::from_secs(5);

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

    /// Where it writes.
    pub(super) fn place(&self) -> &StorePlace {
        &self.place
    }

    /// The last change of the lab that this daemon knows of.
    pub(super) fn revision(&self) -> i64 {
        self.revision
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
    pub(super) async fn keep(
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
            let changes = || calls.iter().flatten();
            if changes().any(RecordChange::is_shared) {
                let is_to_decide = changes().any(RecordChange::concerns_other_hosts);
                in_time(turn::tell(transaction, host, is_to_decide)).await?;
            }
            lease.commits(&outcomes);
        }
        Ok(outcomes)
    }

    /// A turn, of which nothing or the batch that was written comes. Who has it knows the last event in the store, and so does
    /// whoever waits for events: a notification may have been missed.
    pub(super) async fn turn(
        &mut self,
        request: TurnRequest,
        last_event: &watch::Sender<i64>,
    ) -> Result<Option<(Batch, Vec<Outcome>)>, NoTurn> {
        let mut connection = match self.connection().await {
            Ok(connection) => connection,
            Err(error) => return Err(NoTurn::Away(request, error)),
        };
        let result = self.turn_by(&mut connection, request, last_event).await;
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
        last_event: &watch::Sender<i64>,
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
        tell_last_event(last_event, others.last.0);
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
        let lease = self.lease.as_mut();
        let lease = lease.expect("only hosts that share a store wait for turns");
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
        if others.as_ref().is_ok_and(OthersChanges::has_runs) {
            // Their journals may have gone on.
            self.last_entries.clear();
        }
        Ok((transaction, revision, others))
    }

    pub(super) async fn end(self) {
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
pub(super) enum NoTurn {
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

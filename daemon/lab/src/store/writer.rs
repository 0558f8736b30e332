//! The one task that writes: it keeps what has gathered while it wrote, in one transaction, until it is written.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::apart::apart;
use super::bulletin::{Bulletin, WriterNews};
use super::error::StoreError;
use super::hand::{NoTurn, StoreHand};
use super::lease::LEASE;
use super::lost::LostLease;
use super::obstacle::{Outcome, Unkept};
use super::request::{Batch, KeepRequest};
use super::turn::TurnRequest;

/// How many calls wait before callers have to; also the most that share a transaction.
pub(super) const QUEUE: usize = 256;

/// The pause before the same is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How often a daemon that has nothing to write looks whether its server can be reached, and renews its lease.
const LOOK: Duration = Duration::from_secs(LEASE.as_secs() / 4);

/// What is asked of the writer.
pub(super) enum WriterRequest {
    Keep(KeepRequest),
    /// The lab's turn, where there are several hosts.
    Turn(TurnRequest),
}

/// Writes what comes until no one is left who could send anything.
pub(super) async fn write(
    mut requests: mpsc::Receiver<WriterRequest>,
    mut hand: StoreHand,
    news: WriterNews,
) {
    let mut bulletin = Bulletin::of(news);
    let mut waiting = Vec::with_capacity(QUEUE);
    loop {
        let receiving = requests.recv_many(&mut waiting, QUEUE);
        let received = match hand.host() {
            Some(_) => timeout(LOOK, receiving).await,
            None => Ok(receiving.await),
        };
        if received == Ok(0) {
            break;
        }
        let mut works = work(std::mem::take(&mut waiting)).into_iter();
        while let Some(work) = works.next() {
            let place = hand.place().clone();
            match hand.finish(work, &mut bulletin).await {
                Finished::Done(back) => hand = *back,
                // The work itself broke off. Whoever waits is told by the channel's end.
                Finished::BrokeOff => return,
                Finished::Lost(lost, answers) => {
                    bulletin.lost(lost.clone());
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

impl StoreHand {
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
                    bulletin.cannot_write(hand.place(), &error);
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
            let last_event = bulletin.last_event();
            match apart(move || async move {
                let result = hand.turn(request, &last_event).await;
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
                    bulletin.cannot_write(hand.place(), &error);
                    tokio::time::sleep(RETRY).await;
                }
                Err(NoTurn::Ended(error)) => {
                    tracing::debug!(%error, "a turn ended with its connection");
                    return Finished::Done(Box::new(hand));
                }
                // What was decided in the turn is written as long as nobody else has changed anything.
                Err(NoTurn::Unkept(batch, error)) => {
                    bulletin.cannot_write(hand.place(), &error);
                    let from = hand.revision();
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
}

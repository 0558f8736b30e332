//! Has an agent work off a run's orders and follows its journal, across lost links and dead agents.

use std::collections::BTreeMap;
use std::time::Duration;

use layerlab_profiles::Nanos;
use layerlab_profiles::document::{Block, BlockEnd, Measured, Rejected, Sample};
use layerlab_protocol::{Entry, Event, FailureKind, Order, Refusal, Request, Response, RunId};
use tokio::time::{Instant, sleep, timeout_at};

use super::orders::{News, Orders};
use crate::device::{Connection, ConnectionError, Link, LinkError};

/// How often to ask an agent that says nothing whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// An agent that says nothing at all for this long is taken for dead.
const SILENCE_DEADLINE: Duration = Duration::from_secs(15);

/// An agent that is there but journals nothing for this long hangs. The longest inference and the
/// longest compilation of a segment are well below.
const PROGRESS_DEADLINE: Duration = Duration::from_secs(600);

/// How often in a row a link may fail without a single new entry before the run is given up.
const ATTEMPTS: u32 = 5;

/// The wait after a failure; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Why a run ended without its samples.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The device cannot be reached.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The device was lost again and again.
    #[error(
        "gave up after {ATTEMPTS} failures in a row without a new result; the last one: {last}"
    )]
    GaveUp {
        /// The last failure.
        last: LinkError,
    },
    /// The agent could not do an order.
    #[error("{message}")]
    Order {
        /// What sort of failure it is.
        kind: FailureKind,
        /// The agent's sentence.
        message: String,
    },
    /// The journal has a gap: entries were lost, which must not happen.
    #[error(
        "the agent's journal continues with entry {found} where {expected} should come; remove the agent's state folder and run again"
    )]
    Gap {
        /// The number that should have come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// The journal ends a block that it did not start, so that nothing vouches for its samples.
    #[error(
        "the agent's journal ends block {block} of order {order} without having started it; remove the agent's state folder and run again"
    )]
    NeverStarted {
        /// The order.
        order: u32,
        /// The block.
        block: u32,
    },
    /// The agent is there but does nothing.
    #[error("the agent has done nothing for {} minutes; its runtime may hang: restart the device", PROGRESS_DEADLINE.as_secs() / 60)]
    Stuck,
}

/// Works off `orders`, all of one run, and returns every sample and block in the order of the journal.
/// `on_entry` sees each entry once, as it comes.
///
/// An agent that dies or is cut off is connected to again, and continues where its journal ends.
pub async fn drive<L: Link>(
    link: &L,
    run: &RunId,
    orders: &mut dyn Orders,
    on_entry: &mut (dyn FnMut(&Entry) + Send),
) -> Result<Measured, RunError> {
    let open = orders.next(&[]);
    let mut progress = Progress {
        run,
        received: 0,
        open: open
            .into_iter()
            .map(|order| (order.number, order))
            .collect(),
        orders,
        measured: Measured::default(),
        rested: Nanos::ZERO,
        started: None,
        block: Vec::new(),
        on_entry,
    };
    let mut failures = 0;
    loop {
        let received = progress.received;
        let error = match session(link, &mut progress).await {
            Ok(()) => return Ok(progress.measured),
            Err(RunError::Link(error)) if error.is_transient() => error,
            Err(error) => return Err(error),
        };
        failures = if progress.received > received {
            1
        } else {
            failures + 1
        };
        tracing::warn!(%error, failures, "lost the agent");
        if failures >= ATTEMPTS {
            return Err(RunError::GaveUp { last: error });
        }
        sleep(FIRST_PAUSE * 2_u32.pow(failures)).await;
    }
}

/// What has come so far.
struct Progress<'a> {
    run: &'a RunId,
    /// The number of the last entry.
    received: u64,
    /// Orders without a final entry, by number.
    open: BTreeMap<u32, Order>,
    orders: &'a mut dyn Orders,
    measured: Measured,
    /// How long the device has rested since the last block started.
    rested: Nanos,
    /// How the block in progress started.
    started: Option<BlockEnd>,
    /// The samples of the block in progress; orders and their blocks come one after the other.
    block: Vec<Sample>,
    on_entry: &'a mut (dyn FnMut(&Entry) + Send),
}

/// One connection: submits what is open, follows the journal to its end and has it forgotten.
async fn session<L: Link>(link: &L, progress: &mut Progress<'_>) -> Result<(), RunError> {
    let mut connection = link.connect().await?;
    for order in progress.open.values() {
        submit(&mut connection, order).await?;
    }
    let (run, after) = (progress.run.clone(), progress.received);
    send(
        &mut connection,
        &Request::Follow {
            run: run.clone(),
            after,
        },
    )
    .await?;
    let mut last_progress = Instant::now();
    while !progress.open.is_empty() {
        if last_progress.elapsed() > PROGRESS_DEADLINE {
            return Err(RunError::Stuck);
        }
        if let Some(entry) = next_entry(&mut connection).await? {
            for order in progress.take(entry)? {
                submit(&mut connection, &order).await?;
            }
            last_progress = Instant::now();
        }
    }
    // Whether the agent hears this changes nothing for the run.
    let _ = connection.send(&Request::Forget { run }).await;
    Ok(())
}

impl Progress<'_> {
    /// Takes one entry in, and returns the orders that follow from it.
    fn take(&mut self, entry: Entry) -> Result<Vec<Order>, RunError> {
        let expected = self.received + 1;
        if entry.sequence != expected {
            return Err(RunError::Gap {
                expected,
                found: entry.sequence,
            });
        }
        self.received = expected;
        (self.on_entry)(&entry);
        let sample = self.sample(&entry);
        let news = News::of(entry.order, &entry.event, sample.as_ref());
        self.block.extend(sample);
        match entry.event {
            Event::CooledDown { rested_ns, .. } => self.rested = self.rested + rested_ns,
            Event::BlockStarted {
                sentinel_ns,
                conditions,
                ..
            } => {
                self.started = Some(BlockEnd {
                    sentinel: sentinel_ns,
                    conditions,
                });
            }
            Event::BlockEnded {
                block,
                sentinel_ns,
                conditions,
                rejection,
            } => {
                let after = BlockEnd {
                    sentinel: sentinel_ns,
                    conditions,
                };
                if let Some(rejection) = &rejection {
                    tracing::warn!(%rejection, "a block was rejected");
                }
                let reason = rejection.map(|rejection| rejection.reason());
                self.end_block(entry.order, block, after, reason)?;
            }
            Event::Finished => {
                self.open.remove(&entry.order);
            }
            Event::Failed { failure } => {
                return Err(RunError::Order {
                    kind: failure.kind,
                    message: failure.message,
                });
            }
            _ => {}
        }
        let orders = news.map_or_else(Vec::new, |news| self.orders.next(&[news]));
        self.open
            .extend(orders.iter().map(|order| (order.number, order.clone())));
        Ok(orders)
    }

    /// The entry as a sample, if it is one of an order that is open.
    fn sample(&self, entry: &Entry) -> Option<Sample> {
        let Event::Sample {
            block,
            index,
            segment,
            started_ns,
            duration_ns,
        } = entry.event
        else {
            return None;
        };
        Some(Sample {
            processor: self
                .open
                .get(&entry.order)?
                .processor_of(segment)
                .to_owned(),
            segment,
            order: entry.order,
            block,
            index,
            started: started_ns,
            duration: duration_ns,
        })
    }

    /// Files the samples of the block in progress under what became of it.
    fn end_block(
        &mut self,
        order: u32,
        number: u32,
        after: BlockEnd,
        rejection: Option<Rejected>,
    ) -> Result<(), RunError> {
        let samples = std::mem::take(&mut self.block);
        let rested = std::mem::replace(&mut self.rested, Nanos::ZERO);
        let (Some(before), Some(open)) = (self.started.take(), self.open.get(&order)) else {
            return Err(RunError::NeverStarted {
                order,
                block: number,
            });
        };
        self.measured.blocks.push(Block {
            processor: open.processor.clone(),
            order,
            number,
            rested,
            before,
            after,
            rejection,
        });
        match rejection {
            None => self.measured.samples.extend(samples),
            Some(_) => self.measured.rejected.extend(samples),
        }
        Ok(())
    }
}

/// The next journal entry, or `None` when the agent only showed that it is there.
async fn next_entry(connection: &mut Connection) -> Result<Option<Entry>, RunError> {
    let silent_since = Instant::now();
    let mut ping_at = silent_since + PING_INTERVAL;
    loop {
        let response = match timeout_at(ping_at, connection.receive()).await {
            Ok(response) => response.map_err(LinkError::from)?,
            Err(_) if silent_since.elapsed() >= SILENCE_DEADLINE => {
                let error = LinkError::Deadline {
                    what: "answer",
                    deadline: SILENCE_DEADLINE,
                };
                return Err(error.into());
            }
            Err(_) => {
                send(connection, &Request::Ping).await?;
                ping_at += PING_INTERVAL;
                continue;
            }
        };
        return match response {
            Response::Entry { entry, .. } => Ok(Some(entry)),
            Response::Pong | Response::Accepted { .. } | Response::Forgotten { .. } => Ok(None),
            Response::Refused { refusal, message } => Err(refused(refusal, message)),
            Response::Hello { .. } => Err(LinkError::from(ConnectionError::NotAnAgent).into()),
        };
    }
}

fn refused(refusal: Refusal, message: String) -> RunError {
    LinkError::from(ConnectionError::Refused { refusal, message }).into()
}

async fn submit(connection: &mut Connection, order: &Order) -> Result<(), RunError> {
    let order = order.clone();
    send(connection, &Request::Submit { order }).await
}

async fn send(connection: &mut Connection, request: &Request) -> Result<(), RunError> {
    Ok(connection.send(request).await.map_err(LinkError::from)?)
}

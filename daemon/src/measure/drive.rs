//! Has an agent work off a run's orders and follows its journal, across lost links and dead agents.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::time::Duration;

use layerlab_profiles::Nanos;
use layerlab_profiles::document::{Block, BlockEnd, Measured, Rejected, Sample};
use layerlab_protocol::{Entry, Event, FailureKind, Order, Refusal, Request, Response, RunId};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::orders::{News, Orders, PlannerError};
use crate::device::{Connection, ConnectionError, Link, LinkError};

/// How often to ask an agent that says nothing whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// An agent that says nothing at all for this long is taken for dead.
const SILENCE_DEADLINE: Duration = Duration::from_secs(15);

/// An agent that is there but journals nothing for this long hangs. The longest inference and the
/// longest compilation of a segment are well below; a device that cools down, which is journaled when it is cool, gives up
/// after 20 minutes.
const PROGRESS_DEADLINE: Duration = Duration::from_secs(1800);

/// How often files may arrive that the agent does not find right. A link that damages more of them is broken.
const PUSHES: u32 = 3;

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
        /// The number of the block's order.
        order: u32,
        /// The block's number in its order.
        block: u32,
    },
    /// What came so far does not say what to measure next.
    #[error(transparent)]
    Planner(#[from] PlannerError),
    /// The agent is there but does nothing.
    #[error("the agent has done nothing for {} minutes; its runtime may hang: restart the device", PROGRESS_DEADLINE.as_secs() / 60)]
    Stuck,
    /// The follower asked for it. The agent keeps the journal.
    #[error("the run was parked")]
    Parked,
}

/// Who follows a run.
pub trait Follower: Send {
    /// Hears, once, how many samples the run will have; `None` if that turns out while it measures.
    fn planned(&mut self, _samples: Option<u64>) {}

    /// Sees each entry once, as it comes. The next one is not read before this returns.
    fn entry(&mut self, entry: &Entry) -> impl Future<Output = ()> + Send;

    /// Ends when the run is to be parked. Waited for again and again, and dropped in between.
    fn park_asked(&mut self) -> impl Future<Output = ()> + Send {
        pending()
    }
}

impl<F: FnMut(&Entry) + Send> Follower for F {
    async fn entry(&mut self, entry: &Entry) {
        self(entry);
    }
}

/// A run, and what is known of it already.
#[derive(Clone, Debug)]
pub struct Run {
    /// The name of the run's journal on the device.
    pub id: RunId,
    /// Entries of its journal, from the first, that were followed before. The follower does not see them again.
    pub known: Vec<Entry>,
}

/// A file that the device must have.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// What it is called there.
    pub sha256: &'a str,
    /// What is in it.
    pub content: &'a [u8],
}

impl From<RunId> for Run {
    /// A run of which nothing is known.
    fn from(id: RunId) -> Run {
        Run {
            id,
            known: Vec::new(),
        }
    }
}

/// Puts `files` on the device, works off `orders`, all of one run, and returns every sample and block in the order of
/// the journal.
///
/// The agent proves the files before it takes an order on; what arrived damaged is pushed again.
/// An agent that dies or is cut off is connected to again, and continues where its journal ends. The journal stays on
/// the device until it is [forgotten](forget).
pub async fn drive<L: Link, F: Follower>(
    link: &L,
    run: &Run,
    files: &[File<'_>],
    orders: &mut dyn Orders,
    follower: &mut F,
) -> Result<Measured, RunError> {
    push(link, files).await?;
    let mut pushes = 1;
    let open = orders.next(&[])?;
    let mut progress = Progress {
        run: &run.id,
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
    };
    for entry in &run.known {
        progress.take(entry.clone())?;
    }
    let mut is_parking = false;
    let mut failures = 0;
    loop {
        let received = progress.received;
        let error = match session(link, &mut progress, follower, &mut is_parking).await {
            Ok(()) => return Ok(progress.measured),
            Err(RunError::Link(error)) if error.is_transient() => error,
            Err(RunError::Link(error)) if lacks_a_file(&error) && pushes < PUSHES => {
                tracing::warn!(%error, "pushing its files again");
                push(link, files).await?;
                pushes += 1;
                continue;
            }
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

async fn push<L: Link>(link: &L, files: &[File<'_>]) -> Result<(), RunError> {
    for file in files {
        link.push_file(file.sha256, file.content).await?;
    }
    Ok(())
}

fn lacks_a_file(error: &LinkError) -> bool {
    let refusal = Refusal::UnknownModel;
    matches!(error, LinkError::Connection(ConnectionError::Refused { refusal: found, .. }) if *found == refusal)
}

/// Has the device delete a run's journal. Whether it hears changes nothing but the room on its storage.
pub async fn forget<L: Link>(link: &L, run: RunId) {
    let Ok(mut connection) = link.connect().await else {
        return;
    };
    let _ = connection.send(&Request::Forget { run }).await;
    // Its answer says that it was done before the connection, or the agent, ends.
    let _ = timeout(PING_INTERVAL, connection.receive()).await;
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
}

/// One connection: submits what is open, and follows the journal to its end or until the run is parked.
async fn session<L: Link, F: Follower>(
    link: &L,
    progress: &mut Progress<'_>,
    follower: &mut F,
    is_parking: &mut bool,
) -> Result<(), RunError> {
    let mut connection = link.connect().await?;
    // What is submitted is worked on: an order of a parked run would end its rest.
    match is_parking {
        true => park(&mut connection, progress.run).await?,
        false => {
            for order in progress.open.values() {
                submit(&mut connection, order).await?;
            }
        }
    }
    let (run, after) = (progress.run.clone(), progress.received);
    send(&mut connection, &Request::Follow { run, after }).await?;
    let mut last_progress = Instant::now();
    let mut length_when_parked = None;
    while !progress.open.is_empty() {
        if length_when_parked.is_some_and(|length| progress.received >= length) {
            return Err(RunError::Parked);
        }
        if last_progress.elapsed() > PROGRESS_DEADLINE {
            return Err(RunError::Stuck);
        }
        match hear(&mut connection, follower, *is_parking).await? {
            Heard::Entry(entry) => {
                let orders = progress.take(Entry::clone(&entry))?;
                follower.entry(&entry).await;
                for order in orders.iter().filter(|_| !*is_parking) {
                    submit(&mut connection, order).await?;
                }
                last_progress = Instant::now();
            }
            Heard::ParkAsked => {
                *is_parking = true;
                park(&mut connection, progress.run).await?;
            }
            Heard::Parked { entries } => length_when_parked = Some(entries),
            Heard::SignOfLife => {}
        }
    }
    Ok(())
}

/// What happens on a connection.
enum Heard {
    Entry(Box<Entry>),
    Parked { entries: u64 },
    SignOfLife,
    ParkAsked,
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
        let orders = match news {
            Some(news) => self.orders.next(&[news])?,
            None => Vec::new(),
        };
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

/// The agent's next message, or the follower's wish.
async fn hear<F: Follower>(
    connection: &mut Connection,
    follower: &mut F,
    is_parking: bool,
) -> Result<Heard, RunError> {
    let silent_since = Instant::now();
    let mut ping_at = silent_since + PING_INTERVAL;
    loop {
        let heard = tokio::select! {
            biased;
            () = follower.park_asked(), if !is_parking => return Ok(Heard::ParkAsked),
            heard = timeout_at(ping_at, connection.receive()) => heard,
        };
        let response = match heard {
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
            Response::Entry { entry, .. } => Ok(Heard::Entry(Box::new(entry))),
            Response::Parked { entries, .. } => Ok(Heard::Parked { entries }),
            Response::Pong | Response::Accepted { .. } | Response::Forgotten { .. } => {
                Ok(Heard::SignOfLife)
            }
            Response::Refused { refusal, message } => Err(refused(refusal, message)),
            Response::Hello { .. } => Err(LinkError::from(ConnectionError::NotAnAgent).into()),
        };
    }
}

async fn park(connection: &mut Connection, run: &RunId) -> Result<(), RunError> {
    let run = run.clone();
    send(connection, &Request::Park { run }).await
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

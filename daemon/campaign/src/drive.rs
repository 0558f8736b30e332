//! Has an agent work off a run's orders and follows its journal, across lost links and dead agents.

mod intake;

use std::collections::BTreeMap;
use std::time::Duration;

use layerlab_profiles::Probe;
use layerlab_profiles::document::Measured;
use layerlab_protocol::{Entry, FailureKind, Order, Refusal, Request, Response, RunId};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::orders::{Orders, PlannerError};
use super::{Follower, KnownJournal};
use intake::JournalIntake;
use layerlab_farm::adb::AdbError;
use layerlab_farm::{Connection, ConnectionError, Link, LinkError};

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

impl RunError {
    /// Whether what the device logged may say why: it, its agent or a runtime on it failed, and is not just gone.
    pub fn may_be_in_logs(&self) -> bool {
        match self {
            RunError::Link(error) => may_be_in_logs(error),
            RunError::GaveUp { .. }
            | RunError::Gap { .. }
            | RunError::NeverStarted { .. }
            | RunError::Stuck => true,
            RunError::Order { kind, .. } => {
                matches!(kind, FailureKind::Device | FailureKind::OutOfMemory)
            }
            RunError::Planner(_) | RunError::Parked => false,
        }
    }
}

fn may_be_in_logs(error: &LinkError) -> bool {
    match error {
        LinkError::Adb(AdbError::GivenUp { .. }) => !error.is_gone(),
        LinkError::Adb(error) => matches!(error, AdbError::AgentStart { .. }),
        LinkError::DiedAtStart { .. } | LinkError::Deadline { .. } | LinkError::Connection(_) => {
            true
        }
        LinkError::Refused { .. } | LinkError::NoAgent { .. } | LinkError::Storage { .. } => false,
    }
}

/// A file that the device must have.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// What it is called there.
    pub sha256: &'a str,
    /// What is in it.
    pub content: &'a [u8],
}

/// Puts `files` on the device, works off `orders`, all of one run, and returns every sample and block in the order of
/// the journal.
///
/// The agent proves the files before it takes an order on; what arrived damaged is pushed again.
/// An agent that dies or is cut off is connected to again, and continues where its journal ends. The journal stays on
/// the device until it is [forgotten](forget).
pub async fn drive<L: Link, F: Follower>(
    link: &L,
    journal: &KnownJournal,
    files: &[File<'_>],
    orders: &mut dyn Orders,
    follower: &mut F,
) -> Result<Measured, RunError> {
    drive_with_probes(link, journal, files, orders, &BTreeMap::new(), follower).await
}

/// The same where some of `files` are `probes`, by the SHA-256 of their models: what is measured of those is kept apart.
/// An order for a probe that fails is over like one that is done; the others go on.
pub(crate) async fn drive_with_probes<L: Link, F: Follower>(
    link: &L,
    journal: &KnownJournal,
    files: &[File<'_>],
    orders: &mut dyn Orders,
    probes: &BTreeMap<String, Probe>,
    follower: &mut F,
) -> Result<Measured, RunError> {
    push(link, files).await?;
    let mut pushes = 1;
    let mut intake = JournalIntake::new(&journal.id, orders, probes)?;
    for entry in &journal.entries {
        intake.take(entry.clone())?;
    }
    let mut is_parking = false;
    let mut failures = 0;
    loop {
        let received = intake.received;
        let error = match session(link, &mut intake, follower, &mut is_parking).await {
            Ok(()) => return Ok(intake.measured),
            Err(RunError::Link(error)) if error.is_transient() => error,
            Err(RunError::Link(error)) if lacks_a_file(&error) && pushes < PUSHES => {
                tracing::warn!(%error, "pushing its files again");
                push(link, files).await?;
                pushes += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        failures = if intake.received > received {
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

/// One connection: submits what is open, and follows the journal to its end or until the run is parked.
async fn session<L: Link, F: Follower>(
    link: &L,
    intake: &mut JournalIntake<'_>,
    follower: &mut F,
    is_parking: &mut bool,
) -> Result<(), RunError> {
    let mut connection = link.connect().await?;
    // What is submitted is worked on: an order of a parked run would end its rest.
    match is_parking {
        true => park(&mut connection, intake.run).await?,
        false => {
            for order in intake.open.values() {
                submit(&mut connection, order).await?;
            }
        }
    }
    let (run, after) = (intake.run.clone(), intake.received);
    send(&mut connection, &Request::Follow { run, after }).await?;
    let mut last_progress = Instant::now();
    let mut length_when_parked = None;
    while !intake.open.is_empty() {
        if length_when_parked.is_some_and(|length| intake.received >= length) {
            return Err(RunError::Parked);
        }
        if last_progress.elapsed() > PROGRESS_DEADLINE {
            return Err(RunError::Stuck);
        }
        match hear(&mut connection, follower, *is_parking).await? {
            Heard::Entry(entry) => {
                let orders = intake.take(Entry::clone(&entry))?;
                follower.entry(&entry).await;
                for order in orders.iter().filter(|_| !*is_parking) {
                    submit(&mut connection, order).await?;
                }
                last_progress = Instant::now();
            }
            Heard::ParkAsked => {
                *is_parking = true;
                park(&mut connection, intake.run).await?;
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
            // Of a link, a plan or a stream nothing is said that was not asked for.
            Response::LinkReached { .. }
            | Response::LinkProgress { .. }
            | Response::LinkSamples { .. }
            | Response::LinkTraces { .. }
            | Response::LinkMeasured { .. }
            | Response::LinkFailed { .. }
            | Response::EdgePlanRan { .. }
            | Response::StreamedFrames { .. }
            | Response::StreamEnded { .. }
            | Response::Pong
            | Response::Accepted { .. }
            | Response::Forgotten { .. } => Ok(Heard::SignOfLife),
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

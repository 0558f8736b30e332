//! The seam between deciding and doing: what works on a run, and what it says meanwhile.

use std::future::Future;
use std::time::Duration;

use layerlab_protocol::Rejection;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::gates::{Gate, Patience, Readings, Thresholds, Verdict};
use super::record::{Device, Job, Run, RunNumber, Spent};
use super::state::{PublicationOutcome, StayOutcome};

/// Where runs are worked on: real devices, or in tests of the lab's decisions devices on a paused clock.
pub trait Bench: Clone + Send + Sync + 'static {
    /// A device that is kept open from one run to the next.
    type Opened: Send;

    /// Works on a run until it ends or is left. Opens the device if it is not open.
    fn work(
        &self,
        open_device: &mut Option<Self::Opened>,
        assignment: &Assignment,
        desk: &Desk,
    ) -> impl Future<Output = (StayOutcome, Spent)> + Send;

    /// Removes from the device what it keeps of a run that is over.
    fn forget(
        &self,
        open_device: &mut Option<Self::Opened>,
        assignment: &Assignment,
    ) -> impl Future<Output = ()> + Send;

    /// Tries once more to publish a run that was left with [`StayOutcome::Unpublished`]. Needs no device.
    fn publish(&self, run: RunNumber) -> impl Future<Output = PublicationOutcome> + Send {
        let _ = run;
        std::future::ready(PublicationOutcome::NotAtHand)
    }

    /// Nobody wants the profile any more of a run that was left with [`StayOutcome::Unpublished`].
    fn discard(&self, run: RunNumber) {
        let _ = run;
    }

    /// What this host lacks to work on runs of `job`, for a person; where several hosts share a lab, another one may have it.
    fn lacks(&self, job: &Job) -> Option<String> {
        let _ = job;
        None
    }

    /// Whether this host must fetch files before it can work on runs of `job`.
    fn must_fetch(&self, job: &Job) -> bool {
        let _ = job;
        false
    }

    /// Fetches them. Needs no device; the error says for a person why it cannot be done.
    fn fetch(&self, job: &Job) -> impl Future<Output = Result<(), String>> + Send {
        let _ = job;
        std::future::ready(Ok(()))
    }

    /// It was decided which runs go where, which took so long.
    fn decided(&self, took: Duration) {
        let _ = took;
    }

    /// Leaves a device as it was found.
    fn close(&self, open_device: Self::Opened) -> impl Future<Output = ()> + Send;
}

/// A run that a device is to work on.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The job of which the run is, as it was when the run was begun.
    pub job: Job,
    /// The run to work on, as it was when it was begun.
    pub run: Run,
    /// The device on which the run is to be worked on.
    pub device: Device,
    /// The name of the lab's store, of which the names of journals are made.
    pub lab: String,
    pub(super) leave: watch::Receiver<LeaveAsked>,
}

/// Whether a run is to leave its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LeaveAsked {
    /// It stays.
    #[default]
    No,
    /// When a block has ended.
    BetweenBlocks,
    /// Whatever it is doing: another host goes on with it.
    AtOnce,
}

impl Assignment {
    /// Whether the run is to leave the device between two blocks.
    pub fn is_asked_to_leave(&self) -> bool {
        *self.leave.borrow() != LeaveAsked::No
    }

    /// Whether another host goes on with the run, so that nothing is to be done with the device any more.
    pub fn is_taken_over(&self) -> bool {
        *self.leave.borrow() == LeaveAsked::AtOnce
    }

    /// Waits until another host goes on with the run.
    pub async fn taken_over(&self) {
        self.asked(|leave| leave == LeaveAsked::AtOnce).await;
    }

    /// Waits until the run is to leave the device between two blocks.
    pub async fn asked_to_leave(&self) {
        self.asked(|leave| leave != LeaveAsked::No).await;
    }

    async fn asked(&self, awaited: impl Fn(LeaveAsked) -> bool) {
        let mut leave = self.leave.clone();
        // A dispatcher that is gone asks nothing any more.
        if leave.wait_for(|&leave| awaited(leave)).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Where a device's work is told.
#[derive(Clone, Debug)]
pub struct Desk {
    pub(super) device: String,
    pub(super) messages: mpsc::Sender<(String, News)>,
}

/// What a device's work tells.
#[derive(Debug)]
pub enum News {
    /// The device is not ready, and why; or it is.
    NotReady(Option<String>),
    /// How the device is, before its run.
    Read(Box<Readings>),
    /// More of the run's journal is in the store.
    Progress {
        /// How many samples and answers that has, and of how many if it is known.
        progress: (u64, Option<u64>),
        /// How long the agent was at work since this was told last, neither loading nor resting.
        busy: Duration,
    },
    /// The names of the device's processors.
    Processors(Vec<String>),
    /// A block has ended, or an answer was judged: the run got on.
    BlockEnded {
        /// Why the block does not count, if it does not.
        rejection: Option<Rejection>,
    },
    /// The run has left the device.
    Left {
        /// How the run ended, or why it left before its end.
        outcome: StayOutcome,
        /// Where its time went.
        spent: Spent,
        /// Told when that is in the store: whether what the device keeps of the run can go.
        kept: oneshot::Sender<bool>,
    },
}

impl Desk {
    /// Tells something. A dispatcher that is gone does not hear it.
    pub async fn tell(&self, news: News) {
        let _ = self.messages.send((self.device.clone(), news)).await;
    }
}

/// What came of waiting at the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Passed {
    /// The device is ready.
    Ready {
        /// What it does not tell, in words.
        unknown: Vec<&'static str>,
    },
    /// The run is to leave it.
    Left,
    /// The device was not ready in time.
    GaveUp(String),
}

/// Waits until `read` says that a device is ready. How long that took.
pub async fn wait_until_ready<F, R>(
    thresholds: Thresholds,
    patience: Patience,
    assignment: &Assignment,
    desk: &Desk,
    mut read: F,
) -> (Passed, Duration)
where
    F: FnMut() -> R + Send,
    R: Future<Output = Result<Readings, String>> + Send,
{
    let began = Instant::now();
    let mut gate = Gate::new(thresholds, patience, Duration::ZERO);
    let mut told = None;
    let passed = loop {
        let readings = tokio::select! {
            readings = read() => readings,
            () = assignment.asked_to_leave() => break Passed::Left,
        };
        if let Ok(readings) = &readings {
            desk.tell(News::Read(Box::new(readings.clone()))).await;
        }
        let verdict = match readings {
            Ok(readings) => gate.look(&readings, began.elapsed()),
            Err(why) => gate.unread(why, began.elapsed()),
        };
        let until = match verdict {
            Verdict::Ready { unknown, .. } => break Passed::Ready { unknown },
            Verdict::GaveUp(gave_up) => break Passed::GaveUp(gave_up.to_string()),
            Verdict::Wait { until } => until,
        };
        let waiting = gate.obstacles();
        if waiting != told {
            desk.tell(News::NotReady(waiting.clone())).await;
            told = waiting;
        }
        tokio::select! {
            () = sleep_until(began + until) => {}
            () = assignment.asked_to_leave() => break Passed::Left,
        }
    };
    if told.is_some() {
        desk.tell(News::NotReady(None)).await;
    }
    (passed, began.elapsed())
}

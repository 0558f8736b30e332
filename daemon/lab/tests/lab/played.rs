//! A lab whose devices are played.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use layerlab_lab::bench::{Assignment, Bench, Desk, Passed, wait_until_ready};
use layerlab_lab::clock::Clock;
use layerlab_lab::config::Config;
use layerlab_lab::dispatcher::{Dispatcher, Message, Question};
use layerlab_lab::gates::{Patience, Readings, Thresholds};
use layerlab_lab::record::Kept;
use layerlab_lab::state::{LabState, Rules, StayOutcome};
use layerlab_lab::store::{Reader, Store, StoreError};
use layerlab_lab::talk::{Answer, Request};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::home::Home;

/// A lab on a paused clock, whose daemon can be stopped and started.
pub(crate) struct PlayedLab<B> {
    home: Home,
    pub(crate) clock: Clock,
    pub(crate) devices: B,
    messages: mpsc::Sender<Message>,
    daemon: JoinHandle<Result<(), StoreError>>,
}

impl<B: Bench + Clone> PlayedLab<B> {
    /// A lab that goes on from the store at `home`.
    pub(crate) async fn new(home: Home, clock: Clock, devices: B) -> PlayedLab<B> {
        let (messages, daemon) = begin(&home, clock, devices.clone()).await;
        PlayedLab {
            home,
            clock,
            devices,
            messages,
            daemon,
        }
    }

    /// Stops the daemon.
    pub(crate) async fn stop(&mut self) {
        self.send(Message::Stop).await;
        let ended = (&mut self.daemon).await;
        ended.expect("no panic").expect("a store");
    }

    /// Ends the daemon as if it were killed; its home stays.
    pub(crate) async fn kill(self) -> Home {
        self.daemon.abort();
        assert!(self.daemon.await.is_err(), "it had ended by itself");
        self.home
    }

    /// Stops the daemon, and starts another one on the same store.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        let devices = self.devices.clone();
        (self.messages, self.daemon) = begin(&self.home, self.clock, devices).await;
    }

    pub(crate) async fn send(&self, message: Message) {
        self.messages.send(message).await.expect("a dispatcher");
    }

    pub(crate) async fn ask(&self, request: Request) -> Answer {
        let (to, answer) = oneshot::channel();
        self.send(Message::Ask(Question {
            request,
            by: None,
            to,
        }))
        .await;
        answer.await.expect("an answer")
    }

    /// What its store tells people.
    pub(crate) async fn reader(&self) -> Reader {
        self.home.reader().await
    }

    /// What its store holds, journals apart.
    pub(crate) async fn kept(&self) -> Kept {
        self.reader().await.all().await.expect("all")
    }

    pub(crate) async fn sleep_until(&self, at: Timestamp) {
        self.clock.sleep_until(Some(at)).await;
    }
}

async fn begin(
    home: &Home,
    clock: Clock,
    devices: impl Bench,
) -> (mpsc::Sender<Message>, JoinHandle<Result<(), StoreError>>) {
    let (store, kept) = Store::open(&home.place).await.expect("a store");
    let state = LabState::new(kept, Rules::of(&Config::default()));
    let dispatcher = Dispatcher::new(state, store.clone(), devices, clock);
    let (messages, inbox) = mpsc::channel(64);
    let daemon = tokio::spawn(async move {
        let ended = dispatcher.run(inbox).await;
        store.close().await;
        ended
    });
    (messages, daemon)
}

/// Has a run wait until its device is ready, for so long; the error is what becomes of one that does not begin.
pub(crate) async fn pass_gates<R: Future<Output = Result<Readings, String>> + Send>(
    assignment: &Assignment,
    desk: &Desk,
    deadline: Duration,
    read: impl Fn() -> R + Send + Sync,
) -> Result<(), StayOutcome> {
    let patience = Patience {
        poll: Duration::from_secs(30),
        deadline,
    };
    let thresholds = Thresholds::default();
    match (wait_until_ready(thresholds, patience, assignment, desk, read).await).0 {
        Passed::Ready { .. } => Ok(()),
        Passed::Left => Err(StayOutcome::Parked),
        Passed::GaveUp(reason) => Err(StayOutcome::NotReady { reason }),
    }
}

/// The outcome of a run that is done.
pub(crate) fn published(run: i64) -> StayOutcome {
    StayOutcome::Published {
        folder: PathBuf::from(format!("profiles/{run}")),
        findings: Vec::new(),
        verdict: None,
    }
}

//! One phone that is reached without an adb server: its child, and what is known of it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, DuplexStream};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::super::error::AdbError;
use super::super::fault::Fault;
use super::super::list::{Row, State};
use super::super::shell::Output;
use super::command::Marked;
use super::frames::{Failure, FailureKind, Sighting, Target};
use super::process::PhoneProcess;
use super::{Means, pipe};

/// How often something is called that answers and says nothing.
const CALLS: u32 = 5;

/// How long it is left alone in between.
const BETWEEN_CALLS: Duration = Duration::from_millis(200);

/// A phone that was named or seen.
#[derive(Debug)]
pub(crate) struct DirectPhone {
    name: String,
    target: Target,
    means: Arc<Means>,
    /// The child that waits for something to do. Behind a lock that is held for as long as something is done.
    idle: AsyncMutex<Option<PhoneProcess>>,
    known: Arc<Mutex<Known>>,
}

/// What is known of a phone.
#[derive(Debug)]
struct Known {
    state: State,
    transport: u32,
    description: Option<String>,
    usb_path: Option<String>,
    /// What carries the bytes of the last stream to its agent.
    pipe: Option<AbortHandle>,
}

impl Known {
    fn fail(&mut self, failure: &Failure) {
        self.state = state(failure);
    }
}

impl DirectPhone {
    pub(super) fn new(name: String, target: Target, means: Arc<Means>) -> DirectPhone {
        let known = Known {
            state: State::Connecting,
            transport: 0,
            description: None,
            usb_path: None,
            pipe: None,
        };
        DirectPhone {
            name,
            target,
            means,
            idle: AsyncMutex::new(None),
            known: Arc::new(Mutex::new(known)),
        }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// What is known of it. A child that has ended while nobody asked anything of it is noticed here.
    pub(super) fn row(&self) -> Row {
        if let Ok(mut idle) = self.idle.try_lock()
            && idle.as_mut().is_some_and(|child| !child.is_alive())
        {
            *idle = None;
            self.known().state = State::Offline;
        }
        let known = self.known();
        Row {
            serial: self.name.clone(),
            state: known.state.clone(),
            transport: Some(known.transport),
            model: known.description.clone(),
            usb_path: known.usb_path.clone(),
        }
    }

    pub(super) fn see(&self, sighting: &Sighting) {
        let mut known = self.known();
        known.description = Some(sighting.description.clone());
        known.usb_path.clone_from(&sighting.usb_path);
        // Whose phone it is that announces itself is not known: it is connected to when it is named.
        if matches!(self.target, Target::Network(_)) && known.state == State::Connecting {
            known.state = State::Announced;
        }
        if let Some(kind) = sighting.obstacle {
            known.fail(&Failure::new(kind, "it was seen so"));
        }
    }

    /// Connects to it, unless that is being done.
    pub(super) fn ensure_soon(self: Arc<Self>) {
        // Whoever holds the lock is connecting to it, or asking it something.
        let is_free = self.idle.try_lock().is_ok();
        let is_due = self.known().state != State::Ready;
        if is_free && is_due {
            tokio::spawn(async move { self.ensure().await });
        }
    }

    /// Connects to it, unless it is connected. How that went is its state.
    pub(super) async fn ensure(&self) {
        let mut idle = self.idle.lock().await;
        let is_alive = idle.as_mut().is_some_and(PhoneProcess::is_alive);
        let is_connected = is_alive || self.has_pipe();
        if is_connected && self.known().state == State::Ready {
            return;
        }
        *idle = None;
        *idle = self.start().await.ok();
    }

    /// Connects to it anew.
    pub(super) async fn reconnect(&self) {
        let mut idle = self.idle.lock().await;
        *idle = None;
        *idle = self.start().await.ok();
    }

    /// Starts a child. Its success and its failure are the phone's state.
    async fn start(&self) -> Result<PhoneProcess, Failure> {
        let started = self.start_again_and_again().await;
        let mut known = self.known();
        match &started {
            Ok(_) if known.state == State::Ready => {}
            Ok(_) => {
                known.state = State::Ready;
                known.transport = 1 + self.means.connections.fetch_add(1, Ordering::Relaxed);
            }
            Err(failure) => known.fail(failure),
        }
        started
    }

    /// Where a phone hangs up before it says anything, as an adbd does that has not yet forgotten the connection before, it is
    /// called again.
    async fn start_again_and_again(&self) -> Result<PhoneProcess, Failure> {
        let mut calls = 1;
        loop {
            let started = PhoneProcess::start(self.means.program(), &self.target).await;
            match &started {
                Err(failure) if failure.kind == FailureKind::Mute && calls < CALLS => {
                    calls += 1;
                    sleep(BETWEEN_CALLS).await;
                }
                _ => return started,
            }
        }
    }

    /// Runs `command` with `input`. Dropping the future kills the child.
    pub(crate) async fn run(&self, command: &str, input: &[u8]) -> Result<Output, AdbError> {
        let marked = Marked::new(command, input.len());
        let mut idle = self.idle.lock().await;
        let mut child = self.take(&mut idle).await?;
        let came = child.exec(&marked.line, input).await;
        // A child whose commands end early is not asked again.
        let output = came.and_then(|came| {
            let early = || format!("a command ended early, {} bytes came", came.len());
            marked.parse(&came).ok_or_else(|| Failure::lost(early()))
        });
        self.keep(&mut idle, child, output)
    }

    /// Writes what `bytes` gives to the file at `path`. Dropping the future kills the child.
    pub(crate) async fn push(
        &self,
        path: &str,
        bytes: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<(), AdbError> {
        let mut idle = self.idle.lock().await;
        let mut child = self.take(&mut idle).await?;
        let pushed = child.push(path, bytes).await;
        self.keep(&mut idle, child, pushed)
    }

    /// Connects to the agent that listens on `socket`, through its own `program`.
    pub(crate) async fn open_agent(
        &self,
        program: &str,
        socket: &str,
    ) -> Result<DuplexStream, AdbError> {
        let mut idle = self.idle.lock().await;
        let child = self.take(&mut idle).await?;
        let known = Arc::clone(&self.known);
        let lost = move |failure: Failure| lock(&known).fail(&failure);
        match pipe::open(child, program, socket, lost).await {
            Ok(Some((stream, pipe))) => {
                self.known().pipe = Some(pipe);
                Ok(stream)
            }
            Ok(None) => Err(AdbError::Lost {
                subject: format!("the agent on {}", self.name),
                reason: "it does not listen".to_owned(),
                fault: Fault::Agent,
            }),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Keeps a child that did what it should for what is to be done next.
    fn keep<T>(
        &self,
        idle: &mut Option<PhoneProcess>,
        child: PhoneProcess,
        done: Result<T, Failure>,
    ) -> Result<T, AdbError> {
        match done {
            Ok(value) => {
                *idle = Some(child);
                Ok(value)
            }
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// A child that is connected: the idle one, or a new one.
    async fn take(&self, idle: &mut Option<PhoneProcess>) -> Result<PhoneProcess, AdbError> {
        if let Some(mut child) = idle.take()
            && child.is_alive()
        {
            return Ok(child);
        }
        if matches!(self.target, Target::Usb(_))
            && let Some(pipe) = self.known().pipe.take()
        {
            // USB gives one connection. The agent works on, and is connected to again.
            pipe.abort();
        }
        self.start().await.map_err(|failure| self.error(failure))
    }

    fn has_pipe(&self) -> bool {
        let known = self.known();
        known.pipe.as_ref().is_some_and(|pipe| !pipe.is_finished())
    }

    fn failed(&self, failure: Failure) -> AdbError {
        self.known().fail(&failure);
        self.error(failure)
    }

    fn error(&self, failure: Failure) -> AdbError {
        match failure.kind {
            FailureKind::Lost => AdbError::Lost {
                subject: self.name.clone(),
                reason: failure.reason,
                fault: Fault::Shell,
            },
            _ => AdbError::Unusable {
                name: self.name.clone(),
                state: state(&failure),
            },
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

/// The state of a phone that failed so.
fn state(failure: &Failure) -> State {
    match failure.kind {
        FailureKind::Unreachable | FailureKind::Mute => State::Unreachable(failure.reason.clone()),
        FailureKind::Unauthorized => State::Unauthorized,
        FailureKind::NoPermissions => State::NoPermissions,
        FailureKind::Busy => State::Busy,
        FailureKind::Absent | FailureKind::Lost => State::Offline,
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    // Each change is one assignment.
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

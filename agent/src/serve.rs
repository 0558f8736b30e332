//! Connections: one daemon at a time. A newer connection takes the place of an older one, which may
//! be the remains of a cable that was pulled.

mod connections;
mod wire;

use std::io;
#[cfg(target_os = "android")]
use std::os::android::net::SocketAddrExt;
#[cfg(not(target_os = "android"))]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Duration;

use layerlab_edge::Cancel;
use layerlab_protocol::{
    EdgePlan, FrameStream, FramingError, MeasureLink, Order, Refusal, Request, Response, RunId,
    VERSION,
};

use self::connections::Connections;
use self::wire::{Lines, Writer};

use crate::beside;
use crate::description::DeviceDescription;
use crate::files::Files;
use crate::link::{self, LinkTurn, TakenTurn};
use crate::machine::{Machine, SharedMachine};
use crate::queue::{Queue, SubmitError};
use crate::stream;

/// A daemon that does not say hello within this time is none.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);

/// A daemon that does not read for this long is gone; what it has not read stays in the journal.
const WRITE_DEADLINE: Duration = Duration::from_secs(30);

/// How long a follower sleeps at most before it looks whether its connection still exists.
const FOLLOW_PATIENCE: Duration = Duration::from_secs(1);

/// How long to wait for other connections to end when the process cannot have one more open.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A refusal says no more of what it refuses than this, in characters: a request may be as long as a line.
const MOST_SAID: usize = 1_000;

/// Entries sent in one go: enough to fill a packet, few enough to let a response pass between.
const FOLLOW_BATCH: usize = 256;

/// Where the agent listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Path(PathBuf),
    /// A name in the abstract namespace, as `adb forward localabstract:` reaches it.
    Abstract(String),
}

impl FromStr for Address {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Address::Path(path.into())),
            Some(("abstract", name)) if !name.is_empty() => Ok(Address::Abstract(name.to_owned())),
            _ => Err("write unix:PATH or abstract:NAME".to_owned()),
        }
    }
}

impl Address {
    /// Starts to listen. A socket file that a killed agent left behind is replaced.
    pub fn listen(&self) -> io::Result<UnixListener> {
        match self {
            Address::Abstract(name) => {
                UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)
            }
            Address::Path(path) => match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => UnixListener::bind(path),
            },
        }
    }
}

impl Address {
    /// Connects to whoever listens.
    pub fn connect(&self) -> io::Result<UnixStream> {
        match self {
            Address::Abstract(name) => {
                UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)
            }
            Address::Path(path) => UnixStream::connect(path),
        }
    }
}

/// What every connection needs.
pub struct Server {
    /// The agent's queue.
    pub queue: Arc<Queue>,
    /// The models and evaluation sets on the phone.
    pub files: Files,
    /// What the hello says.
    pub device: DeviceDescription,
    /// The secret that the daemon must know.
    pub token: String,
    /// Whether a link is being measured, or a plan run over one.
    pub link_turn: LinkTurn,
    /// What plans are run on, when nothing else is.
    pub machine: Arc<SharedMachine>,
}

impl Server {
    /// Serves connections until the queue stops.
    ///
    /// # Errors
    /// When the listener itself fails. That the process has too many files open is no failure: some will be closed.
    pub fn serve(self: Arc<Self>, listener: &UnixListener) -> io::Result<()> {
        let connections: Arc<Connections> = Arc::default();
        for stream in listener.incoming() {
            if self.queue.is_stopping() {
                break;
            }
            let stream = match stream {
                Ok(stream) => stream,
                Err(error) if is_passing(&error) => {
                    tracing::warn!(%error, "no connection can be accepted just now");
                    thread::sleep(ACCEPT_AGAIN);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (server, connections) = (Arc::clone(&self), Arc::clone(&connections));
            let talk = move || {
                if let Err(error) = server.converse(stream, &connections) {
                    tracing::info!(%error, "connection ended");
                }
            };
            if let Err(error) = thread::Builder::new().spawn(talk) {
                tracing::warn!(%error, "a connection was dropped");
            }
        }
        Ok(())
    }

    fn converse(&self, stream: UnixStream, connections: &Connections) -> io::Result<()> {
        let number = connections.wait(&stream)?;
        let result = self.converse_as(number, stream, connections);
        // Copies of the stream are elsewhere: without this the daemon would wait for answers.
        connections.end(number);
        result
    }

    fn converse_as(
        &self,
        number: u64,
        stream: UnixStream,
        connections: &Connections,
    ) -> io::Result<()> {
        stream.set_write_timeout(Some(WRITE_DEADLINE))?;
        stream.set_read_timeout(Some(HELLO_DEADLINE))?;
        let mut lines = Lines::new(stream.try_clone()?);
        let writer = Writer::new(stream.try_clone()?);
        let hello = match lines.next()? {
            Some(hello) => self.greet(hello),
            None => return Ok(()),
        };
        if !matches!(hello, Response::Hello { .. }) {
            return writer.send(&hello);
        }
        // Before the hello is sent: a daemon that has heard it may already be connecting anew.
        connections.admit(number);
        writer.send(&hello)?;
        stream.set_read_timeout(None)?;
        let cancel = Cancel::default();
        thread::scope(|scope| {
            let result = self.answer_all(scope, &mut lines, &writer, (number, &cancel));
            // Ends the followers of this connection, and what it measures of a link.
            writer.close();
            cancel.cancel();
            result
        })
    }

    fn answer_all<'scope, 'env>(
        &'env self,
        scope: &'scope thread::Scope<'scope, 'env>,
        lines: &mut Lines,
        writer: &'env Writer,
        (number, cancel): (u64, &'env Cancel),
    ) -> io::Result<()> {
        while let Some(request) = lines.next()? {
            let response = match request {
                Ok(Request::Follow { run, after }) => {
                    scope.spawn(move || self.follow(&run, after, writer));
                    continue;
                }
                Ok(Request::Park { run }) => {
                    scope.spawn(move || self.park(run, writer));
                    continue;
                }
                Ok(Request::MeasureLink { link }) => {
                    scope.spawn(move || self.measure_link(link, writer, (number, cancel)));
                    continue;
                }
                Ok(Request::RunEdgePlan { plan }) => {
                    scope.spawn(move || self.run_edge_plan(&plan, writer, (number, cancel)));
                    continue;
                }
                Ok(Request::StreamFrames { stream }) => {
                    scope.spawn(move || self.stream_frames(&stream, writer, (number, cancel)));
                    continue;
                }
                Ok(Request::Stop) => {
                    self.queue.stop();
                    return Ok(());
                }
                Ok(Request::Submit { order }) => self.submit(order),
                Ok(Request::Forget { run }) => match self.queue.forget(&run) {
                    Ok(()) => Response::Forgotten { run },
                    Err(error) => refused(Refusal::Storage, error.to_string()),
                },
                Ok(Request::Ping) => Response::Pong,
                Ok(Request::Hello { .. }) => {
                    refused(Refusal::Malformed, "hello was said already".to_owned())
                }
                Err(error @ FramingError::TooLong) => {
                    // Where the next line begins is unknown.
                    return writer.send(&refused(Refusal::Malformed, error.to_string()));
                }
                Err(error) => refused(Refusal::Malformed, error.to_string()),
            };
            writer.send(&response)?;
        }
        Ok(())
    }

    fn greet(&self, request: Result<Request, FramingError>) -> Response {
        match request {
            Ok(Request::Hello { protocol, .. }) if protocol != VERSION => refused(
                Refusal::Version,
                format!("this agent speaks protocol version {VERSION}, not {protocol}; install the agent that came with layerlab"),
            ),
            Ok(Request::Hello { token, .. }) if token != self.token => refused(
                Refusal::Token,
                "the token is not the one that this agent was started with; stop the agent and start it anew".to_owned(),
            ),
            Ok(Request::Hello { .. }) => Response::Hello {
                protocol: VERSION,
                agent_version: env!("CARGO_PKG_VERSION").to_owned(),
                device: self.device.device.clone(),
                system: self.device.system.clone(),
                processors: self.device.processors.clone(),
            },
            Ok(_) => refused(Refusal::Malformed, "a connection begins with hello".to_owned()),
            Err(error) => refused(Refusal::Malformed, error.to_string()),
        }
    }

    fn submit(&self, order: Order) -> Response {
        for file in order.files() {
            if let Err(error) = self.files.prove(file) {
                return refused(Refusal::UnknownModel, error.to_string());
            }
        }
        let (run, number) = (order.run.clone(), order.number);
        match self.queue.submit(order) {
            Ok(()) => Response::Accepted { run, order: number },
            Err(error @ SubmitError::Conflict { .. }) => {
                refused(Refusal::Conflict, error.to_string())
            }
            Err(error) => refused(Refusal::Storage, error.to_string()),
        }
    }

    /// Says that the run is parked once it is.
    fn park(&self, run: RunId, writer: &Writer) {
        let response = match self.queue.park(&run, || writer.is_open()) {
            Ok(Some(entries)) => Response::Parked { run, entries },
            Ok(None) => return,
            Err(error) => refused(Refusal::Storage, error.to_string()),
        };
        // A daemon that is gone will ask again.
        let _ = writer.send(&response);
    }

    /// Measures a link for as long as the connection of this number lasts.
    fn measure_link(&self, asked: MeasureLink, writer: &Writer, (number, cancel): (u64, &Cancel)) {
        let send = |response| writer.send(&response);
        let busy = |doing| {
            let message = format!(
                "it {doing}, which would disturb a link's measurement: wait until it has ended"
            );
            refused(Refusal::Busy, message)
        };
        let result = match (link::errand(asked), self.link_turn.take(number)) {
            (Err(sentence), _) => send(refused(Refusal::Malformed, sentence)),
            (Ok(_), None) => send(busy("measures a link already")),
            (Ok(_), Some(turn)) if self.queue.is_busy() => {
                drop(turn);
                send(busy("still works on a run"))
            }
            (Ok(errand), Some(turn)) => link::measure(&errand, turn, cancel, &send),
        };
        // A daemon that is gone will ask again.
        if let Err(error) = result {
            tracing::info!(%error, "nobody hears of the link");
        }
    }

    /// Runs a network together with a server for as long as the connection of this number lasts.
    fn run_edge_plan(&self, plan: &EdgePlan, writer: &Writer, (number, cancel): (u64, &Cancel)) {
        let (twin, images) = (plan.quantised_sha256.as_ref(), plan.images.as_ref());
        let set = images.map(|images| &images.set_sha256);
        let wanted = [Some(&plan.model_sha256), twin, set];
        let send = |response| writer.send(&response);
        self.beside_server(
            &wanted,
            writer,
            (number, "running a plan"),
            |machine, turn| beside::run(plan, &self.files, machine, turn, cancel, &send),
        );
    }

    /// Answers frames together with a server for as long as the connection of this number lasts.
    fn stream_frames(
        &self,
        asked: &FrameStream,
        writer: &Writer,
        (number, cancel): (u64, &Cancel),
    ) {
        let twin = asked.quantised_sha256.as_ref();
        let wanted = [Some(&asked.model_sha256), twin, Some(&asked.set_sha256)];
        let send = |response| writer.send(&response);
        self.beside_server(
            &wanted,
            writer,
            (number, "streaming frames"),
            |machine, turn| stream::run(asked, &self.files, machine, turn, cancel, &send),
        );
    }

    /// Does what needs these files, the machine and the turn, if all of them are there; else says what is not.
    fn beside_server(
        &self,
        wanted: &[Option<&String>],
        writer: &Writer,
        (number, doing): (u64, &str),
        work: impl FnOnce(MutexGuard<'_, Machine>, TakenTurn<'_>) -> io::Result<()>,
    ) {
        let send = |refusal, message| writer.send(&refused(refusal, message));
        let mut wanted = wanted.iter().flatten();
        // What is lacking is said with nothing taken: who asks again at once would be told that it is busy.
        let result = match wanted.find_map(|it| self.files.prove(it).err()) {
            Some(error) => send(Refusal::UnknownModel, error.to_string()),
            None => match (self.link_turn.take(number), self.machine.if_free()) {
                (Some(turn), Some(machine)) if !self.queue.is_busy() => work(machine, turn),
                held => {
                    drop(held);
                    let message = format!(
                        "it works on something else, which {doing} would disturb: wait until that has ended"
                    );
                    send(Refusal::Busy, message)
                }
            },
        };
        // A daemon that is gone will ask again.
        if let Err(error) = result {
            tracing::info!(%error, "nobody hears of {doing}");
        }
    }

    /// Sends the run's entries until the connection ends.
    fn follow(&self, run: &RunId, mut after: u64, writer: &Writer) {
        while !self.queue.is_stopping() && writer.is_open() {
            for entry in self
                .queue
                .entries_after(run, after, FOLLOW_BATCH, FOLLOW_PATIENCE)
            {
                after = entry.sequence;
                if writer
                    .send(&Response::Entry {
                        run: run.clone(),
                        entry,
                    })
                    .is_err()
                {
                    return;
                }
            }
        }
    }
}

fn refused(refusal: Refusal, message: String) -> Response {
    let message = match message.char_indices().nth(MOST_SAID) {
        Some((end, _)) => format!("{} …", &message[..end]),
        None => message,
    };
    Response::Refused { refusal, message }
}

/// Whether a connection can be accepted later although one could not be now.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::NOBUFS,
        Errno::CONNABORTED,
        Errno::INTR,
    ];
    Errno::from_io_error(error).is_some_and(|errno| passing.contains(&errno))
}

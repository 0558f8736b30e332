//! The server: a thread for each connection, all of which end by themselves when nothing comes.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use layerlab_profiles::link::ServerTimes;

use crate::connection::{Broken, Connection, Deadline, Patience};
use crate::infer::{InferRequest, Inferred};
use crate::listening::wake;
use crate::message::{ECHO_BYTES, Reply, Request};
use crate::models::Models;
use crate::packed::{PackedAnswer, PackedRequest};
use crate::picture::PictureRequest;
use crate::token::Token;
use crate::turn::Turn;

/// How long to wait for other connections to end when the process cannot have one more.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What a server puts up with.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// How many connections there may be at once. As many more are told that there are too many.
    pub connections: usize,
    /// How long a client may take to say hello.
    pub hello: Duration,
    /// How long a client may be silent between two requests.
    pub idle: Duration,
    /// How long a request to run layers waits until those that came before are done.
    pub queue: Duration,
    /// How long it may take over one request.
    pub patience: Patience,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            // Each costs a thread and 64 KiB.
            connections: 256,
            hello: Duration::from_secs(5),
            // Longer than a phone's agent works between two requests of a plan.
            idle: Duration::from_secs(300),
            // Some hundred inferences of a large network.
            queue: Duration::from_secs(60),
            patience: Patience::default(),
        }
    }
}

/// A server that serves until it is dropped.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    token: Token,
    program: String,
    limits: ServerLimits,
    /// What layers are run of; `None` where links alone are measured.
    models: Option<Box<dyn Models>>,
    /// Who has layers run.
    turn: Turn,
    stopping: AtomicBool,
    open: Mutex<BTreeMap<u64, TcpStream>>,
}

/// Why a conversation ended.
enum Ended {
    /// The client is told this sentence.
    Refused(String),
    /// It is not there any more.
    Broken,
}

impl From<Broken> for Ended {
    fn from(broken: Broken) -> Ended {
        match broken {
            Broken::Late => {
                Ended::Refused("you were silent or slow for too long: connect again".to_owned())
            }
            Broken::Gone(_) => Ended::Broken,
        }
    }
}

impl Server {
    /// Serves on `listener` for clients that know `token`, and runs no layers; `program` is what it calls itself.
    ///
    /// # Errors
    /// When the listener has no address, or no thread can be started.
    pub fn start(
        listener: TcpListener,
        token: Token,
        program: String,
        limits: ServerLimits,
    ) -> io::Result<Server> {
        Self::start_with(listener, token, program, limits, None)
    }

    /// The same with what it runs layers of, if it does.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn start_with(
        listener: TcpListener,
        token: Token,
        program: String,
        limits: ServerLimits,
        models: Option<Box<dyn Models>>,
    ) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            token,
            program,
            limits,
            models,
            turn: Turn::default(),
            stopping: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("edge-accept".to_owned())
            .spawn(move || accepting.accept(&listener))?;
        Ok(Server {
            shared,
            address,
            accepting: Some(accepting),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.shared.open().len()
    }

    /// How many requests wait until another one is computed.
    pub fn waiting(&self) -> usize {
        self.shared.turn.waiting()
    }
}

impl Drop for Server {
    /// Cuts all connections and stops listening.
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        for stream in self.shared.open().values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let (true, Some(accepting)) = (wake(self.address), self.accepting.take()) {
            let _ = accepting.join();
        }
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, TcpStream>> {
        // Nothing that holds the lock can leave the map half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for (number, stream) in (0..).zip(listener.incoming()) {
            if self.stopping.load(Ordering::SeqCst) {
                return;
            }
            // Too many open files, or a client that has gone already: the next may do better.
            if stream
                .and_then(|stream| self.admit(number, stream))
                .is_err()
            {
                thread::sleep(ACCEPT_AGAIN);
            }
        }
    }

    fn admit(self: &Arc<Self>, number: u64, stream: TcpStream) -> io::Result<()> {
        let most = self.limits.connections;
        let is_full = {
            let mut open = self.open();
            if open.len() >= 2 * most {
                return Ok(());
            }
            let is_full = open.len() >= most;
            open.insert(number, stream.try_clone()?);
            is_full
        };
        let shared = Arc::clone(self);
        let talk = move || {
            shared.converse(stream, is_full);
            shared.open().remove(&number);
        };
        let started = thread::Builder::new().name("edge".to_owned()).spawn(talk);
        if started.is_err() {
            self.open().remove(&number);
        }
        started.map(|_| ())
    }

    fn converse(&self, stream: TcpStream, is_full: bool) {
        let Ok(mut connection) = Connection::new(stream) else {
            return;
        };
        let ended = match is_full {
            true => Err(Ended::Refused(format!(
                "there are {} connections already: wait until one has ended, and try again",
                self.limits.connections
            ))),
            false => self.talk(&mut connection),
        };
        if let Err(Ended::Refused(sentence)) = ended {
            connection.refuse(sentence);
        }
    }

    /// Answers requests until the client goes.
    fn talk(&self, connection: &mut Connection) -> Result<(), Ended> {
        let deadline = Deadline::within(self.limits.hello);
        match self.receive(connection, deadline, Some(deadline))? {
            None => return Ok(()),
            Some((Request::Hello { token, .. }, _)) if token == self.token => {}
            Some((Request::Hello { .. }, _)) => {
                return Err(Ended::Refused(
                    "the token is not this server's: copy the server's token file".to_owned(),
                ));
            }
            Some(_) => return Err(Ended::Refused("say hello first".to_owned())),
        }
        let welcome = Reply::Welcome {
            program: self.program.clone(),
        };
        connection.write_all(&welcome.encode(), self.limits.patience.deadline(0))?;
        loop {
            let idle = Deadline::within(self.limits.idle);
            let Some((request, began)) = self.receive(connection, idle, None)? else {
                return Ok(());
            };
            self.answer(connection, request, began)?;
        }
    }

    /// The next request without its payload, and when its first byte came; `None` when the client has gone. `whole` is by
    /// when all of it must have come, if not by the patience for requests.
    fn receive(
        &self,
        connection: &mut Connection,
        first: Deadline,
        whole: Option<Deadline>,
    ) -> Result<Option<(Request, Instant)>, Ended> {
        let Some((byte, began)) = connection.first_byte(first)? else {
            return Ok(None);
        };
        let deadline = whole.unwrap_or_else(|| self.limits.patience.deadline(0));
        let refused = |error: &dyn std::error::Error| Ended::Refused(error.to_string());
        let header = connection.header(Some(byte), deadline)?;
        let header = header.map_err(|error| refused(&error))?;
        let fields = connection.fields(header, deadline)?;
        let request = Request::decode(header, &fields).map_err(|error| refused(&error))?;
        Ok(Some((request, began)))
    }

    fn answer(
        &self,
        connection: &mut Connection,
        request: Request,
        began: Instant,
    ) -> Result<(), Ended> {
        let patience = self.limits.patience;
        let mut echo = [0; ECHO_BYTES as usize];
        match &request {
            Request::Hello { .. } => {
                return Err(Ended::Refused("hello was said already".to_owned()));
            }
            Request::Infer(asked) => {
                return self.infer(connection, Computation::Layers(asked), began);
            }
            Request::Picture(asked) => {
                return self.infer(connection, Computation::Picture(asked), began);
            }
            Request::InferPacked(asked) => {
                return self.infer(connection, Computation::Packed(asked), began);
            }
            Request::Echo => connection.read_exact(&mut echo, patience.deadline(ECHO_BYTES))?,
            &Request::Sink { bytes } => connection.discard(bytes, patience.deadline(bytes))?,
            Request::Source { .. } => {}
        }
        let received = Instant::now();
        // There is no queue and nothing to compute: both are what it takes to say so.
        let begun = Instant::now();
        let computed = Instant::now();
        match request {
            Request::Echo => {
                let data = Reply::Data { bytes: ECHO_BYTES }.encode();
                let data = [data.as_slice(), &echo].concat();
                connection.write_all(&data, patience.deadline(ECHO_BYTES))?;
            }
            Request::Source { bytes } => {
                let data = Reply::Data { bytes }.encode();
                connection.send(&data, bytes, patience.deadline(bytes))?;
            }
            Request::Hello { .. }
            | Request::Sink { .. }
            | Request::Infer(_)
            | Request::Picture(_)
            | Request::InferPacked(_) => {}
        }
        let sent = Instant::now();
        let done = Reply::Done(ServerTimes {
            receive: received.duration_since(began).into(),
            queue: begun.duration_since(received).into(),
            compute: computed.duration_since(begun).into(),
            send: sent.duration_since(computed).into(),
        });
        Ok(connection.write_all(&done.encode(), patience.deadline(0))?)
    }

    /// Has layers run, or a picture answered: what cannot be is refused before its payload has come.
    fn infer(
        &self,
        connection: &mut Connection,
        computation: Computation<'_>,
        began: Instant,
    ) -> Result<(), Ended> {
        let patience = self.limits.patience;
        let models = self.models.as_deref().ok_or_else(|| {
            let sentence = "this server was started without --model, and runs no layers: start it with the model's file";
            Ended::Refused(sentence.to_owned())
        })?;
        let whole;
        let (asked, bytes) = match computation {
            // A request whose tensors no frame holds is malformed.
            Computation::Layers(asked) => (asked, asked.payload_bytes().unwrap_or(0)),
            Computation::Picture(picture) => {
                whole = models.whole(picture).map_err(Ended::Refused)?;
                (&whole, picture.bytes)
            }
            Computation::Packed(packed) => {
                let bytes = packed.tensors.payload_bytes().unwrap_or(0);
                (&packed.layers, bytes)
            }
        };
        models.accepts(asked).map_err(Ended::Refused)?;
        let mut payload = vec![0; usize::try_from(bytes).unwrap_or(0)];
        connection.read_exact(&mut payload, patience.deadline(bytes))?;
        let received = Instant::now();
        let turn = self.turn.take(self.limits.queue).ok_or_else(|| {
            Ended::Refused(format!(
                "others have kept this server busy for {} s: try again later",
                self.limits.queue.as_secs_f64()
            ))
        })?;
        // Nobody waits for what a client asked that has gone meanwhile.
        if connection.is_gone() {
            return Err(Ended::Broken);
        }
        guarded(|| models.prepare(asked))?;
        let begun = Instant::now();
        let (tensors, payload) = guarded(|| match computation {
            Computation::Layers(_) => models.run(asked, &payload).map(as_they_are),
            Computation::Picture(picture) => {
                let input = models.input(picture, &payload)?;
                models.run(asked, &input).map(as_they_are)
            }
            Computation::Packed(packed) => models.run_packed(packed, &payload).map(packed_answer),
        })?;
        let computed = Instant::now();
        drop(turn);
        let deadline = patience.deadline(payload.len() as u64);
        connection.send_bytes(&tensors.encode(), &payload, deadline)?;
        let sent = Instant::now();
        let done = Reply::Done(ServerTimes {
            receive: received.duration_since(began).into(),
            queue: begun.duration_since(received).into(),
            compute: computed.duration_since(begun).into(),
            send: sent.duration_since(computed).into(),
        });
        Ok(connection.write_all(&done.encode(), patience.deadline(0))?)
    }
}

/// What is to be computed.
#[derive(Clone, Copy)]
enum Computation<'a> {
    /// Layers, on the tensors that are the payload.
    Layers(&'a InferRequest),
    /// A whole network, on the picture that is the payload.
    Picture(&'a PictureRequest),
    /// Layers, on the tensors that the payload has packed.
    Packed(&'a PackedRequest),
}

/// The reply with tensors that cross as they are, and its payload.
fn as_they_are(inferred: Inferred) -> (Reply, Vec<u8>) {
    let Inferred { tensors, payload } = inferred;
    (Reply::Tensors { tensors }, payload)
}

/// The same of tensors that were packed.
fn packed_answer(answer: PackedAnswer) -> (Reply, Vec<u8>) {
    let PackedAnswer {
        tensors,
        packed,
        payload,
    } = answer;
    (Reply::PackedTensors { tensors, packed }, payload)
}

/// Does what runtimes may panic in, which ends nobody else's connection.
fn guarded<T>(what: impl FnOnce() -> Result<T, String>) -> Result<T, Ended> {
    let done = panic::catch_unwind(AssertUnwindSafe(what));
    let done = done.map_err(|_| {
        let sentence = "the runtime on this server failed over these layers: see what the server wrote, and plan with \
                        another processor";
        Ended::Refused(sentence.to_owned())
    })?;
    done.map_err(Ended::Refused)
}

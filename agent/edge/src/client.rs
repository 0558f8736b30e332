//! The client: asks the server, and times what it asks.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use layerlab_profiles::link::ServerTimes;

use crate::cancel::Cancel;
use crate::connection::{Broken, Connection, Deadline, Patience};
use crate::error::EdgeError;
use crate::infer::{InferRequest, Inferred, TensorShape, payload_bytes};
use crate::message::{ECHO_BYTES, MessageError, Reply, Request};
use crate::packed::{PackedAnswer, PackedRequest};
use crate::token::Token;

/// A connection to a server that knows the token.
pub struct Client {
    pub(crate) connection: Connection,
    pub(crate) address: String,
    program: String,
    pub(crate) patience: Patience,
}

/// An exchange that was done, and timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When the first byte was written.
    pub started: Instant,
    /// From then until the last byte of the answer had come.
    pub duration: Duration,
    /// How long the server took for its parts of it.
    pub server: ServerTimes,
}

impl Client {
    /// Connects to the server at `address` (`HOST:PORT`) and says hello as `program`.
    ///
    /// # Errors
    /// When nobody listens there, it does not answer in time, speaks something else, or refuses the token.
    pub fn connect(
        address: &str,
        token: &Token,
        program: &str,
        patience: Patience,
    ) -> Result<Client, EdgeError> {
        let not_reached = |source| EdgeError::NotReached {
            address: address.to_owned(),
            source,
        };
        let resolved: Vec<SocketAddr> = address.to_socket_addrs().map_err(not_reached)?.collect();
        Self::connect_by_way_of(&resolved, address, token, program, patience)
    }

    /// Connects to the first of `ways` that takes a connection, which leads to the server at `address`, and says hello.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect_by_way_of(
        ways: &[SocketAddr],
        address: &str,
        token: &Token,
        program: &str,
        patience: Patience,
    ) -> Result<Client, EdgeError> {
        let not_reached = |source| EdgeError::NotReached {
            address: address.to_owned(),
            source,
        };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "this is the address of no machine");
        let mut connected = None;
        for one in ways {
            match TcpStream::connect_timeout(one, patience.silence) {
                Ok(stream) => {
                    connected = Some(stream);
                    break;
                }
                Err(error) => last = error,
            }
        }
        let stream = connected.ok_or_else(|| not_reached(last))?;
        let mut client = Client {
            connection: Connection::new(stream).map_err(not_reached)?,
            address: address.to_owned(),
            program: String::new(),
            patience,
        };
        let hello = Request::Hello {
            token: token.clone(),
            program: program.to_owned(),
        };
        const DOING: &str = "saying hello";
        client.send(&hello, 0, DOING)?;
        match client.reply(DOING)? {
            Reply::Welcome { program } => client.program = program,
            _ => return Err(client.other_answer(DOING)),
        }
        Ok(client)
    }

    /// What the server calls itself.
    pub fn server_program(&self) -> &str {
        &self.program
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn peer(&self) -> Result<SocketAddr, EdgeError> {
        let peer = self.connection.peer();
        peer.map_err(|source| self.gone(source))
    }

    /// Has `cancel` end whatever is waited for on this connection.
    ///
    /// # Errors
    /// When the process cannot open more files.
    pub fn cut_by(&self, cancel: &Cancel) -> Result<(), EdgeError> {
        let watched = self.connection.cut_by(cancel);
        watched.map_err(|source| self.gone(source))
    }

    /// Has a few bytes sent back.
    ///
    /// # Errors
    /// When the server is gone, slow, or answers something else.
    pub fn echo(&mut self) -> Result<Answer, EdgeError> {
        const DOING: &str = "waiting for an echo";
        let started = Instant::now();
        self.send(&Request::Echo, ECHO_BYTES, DOING)?;
        self.data(ECHO_BYTES, DOING)?;
        self.done(started, DOING)
    }

    /// Sends so many bytes, at most [`crate::MAX_PAYLOAD_BYTES`].
    ///
    /// # Errors
    /// When the server is gone, slow, or answers something else.
    pub fn sink(&mut self, bytes: u64) -> Result<Answer, EdgeError> {
        const DOING: &str = "sending";
        let started = Instant::now();
        self.send(&Request::Sink { bytes }, bytes, DOING)?;
        self.done(started, DOING)
    }

    /// Has so many bytes sent, at most [`crate::MAX_PAYLOAD_BYTES`].
    ///
    /// # Errors
    /// When the server is gone, slow, or answers something else.
    pub fn source(&mut self, bytes: u64) -> Result<Answer, EdgeError> {
        const DOING: &str = "receiving";
        let started = Instant::now();
        self.send(&Request::Source { bytes }, 0, DOING)?;
        self.data(bytes, DOING)?;
        self.done(started, DOING)
    }

    /// Has layers run on the tensors in `payload`, of which the answer's tensors must have the shapes `expected`.
    ///
    /// # Errors
    /// When the server is gone, slow, refuses, or answers something else; also for a request that no frame holds.
    pub fn infer(
        &mut self,
        asked: InferRequest,
        payload: &[u8],
        expected: &[TensorShape],
    ) -> Result<(Inferred, Answer), EdgeError> {
        const DOING: &str = "having layers run";
        if asked.payload_bytes() != Some(payload.len() as u64) || !asked.fits_a_frame() {
            return Err(EdgeError::NoFrame {
                first: asked.first,
                last: asked.last(),
            });
        }
        let started = Instant::now();
        let deadline = self.patience.deadline(payload.len() as u64);
        let frame = Request::Infer(asked).encode();
        let sent = self.connection.send_bytes(&frame, payload, deadline);
        self.unless_refused(sent, DOING)?;
        let inferred = self.tensors(|tensors| tensors == expected, DOING)?;
        let answer = self.done(started, DOING)?;
        Ok((inferred, answer))
    }

    /// Has layers run on the tensors that `payload` has packed, of which the answer's tensors must have the shapes `expected`.
    ///
    /// # Errors
    /// As [`Client::infer`].
    pub fn infer_packed(
        &mut self,
        asked: PackedRequest,
        payload: &[u8],
        expected: &[TensorShape],
    ) -> Result<(PackedAnswer, Answer), EdgeError> {
        const DOING: &str = "having layers run";
        if asked.tensors.payload_bytes() != Some(payload.len() as u64) || !asked.fits_a_frame() {
            return Err(EdgeError::NoFrame {
                first: asked.layers.first,
                last: asked.layers.last(),
            });
        }
        let wanted = asked.answer;
        let started = Instant::now();
        let deadline = self.patience.deadline(payload.len() as u64);
        let frame = Request::InferPacked(asked).encode();
        let sent = self.connection.send_bytes(&frame, payload, deadline);
        self.unless_refused(sent, DOING)?;
        let (tensors, packed) = match self.computed(DOING)? {
            Reply::PackedTensors { tensors, packed }
                if tensors == expected && packed.codec == wanted =>
            {
                (tensors, packed)
            }
            _ => return Err(self.other_answer(DOING)),
        };
        let payload = self.payload(packed.payload_bytes(), DOING)?;
        let answer = self.done(started, DOING)?;
        let inferred = PackedAnswer {
            tensors,
            packed,
            payload,
        };
        Ok((inferred, answer))
    }

    /// Waits for tensors whose shapes are `expected`.
    pub(crate) fn tensors(
        &mut self,
        expected: impl FnOnce(&[TensorShape]) -> bool,
        doing: &'static str,
    ) -> Result<Inferred, EdgeError> {
        let tensors = match self.computed(doing)? {
            Reply::Tensors { tensors } if expected(&tensors) => tensors,
            _ => return Err(self.other_answer(doing)),
        };
        let payload = self.payload(payload_bytes(&tensors), doing)?;
        Ok(Inferred { tensors, payload })
    }

    /// Waits for what a server computes.
    fn computed(&mut self, doing: &'static str) -> Result<Reply, EdgeError> {
        let wait = self.patience.inference + self.patience.silence;
        self.reply_by(Deadline::within(wait), wait, doing)
    }

    /// The payload of a reply, which has so many bytes: one with another length than its tensors have is malformed.
    fn payload(&mut self, bytes: Option<u64>, doing: &'static str) -> Result<Vec<u8>, EdgeError> {
        let bytes = bytes.unwrap_or(0);
        let mut payload = vec![0; usize::try_from(bytes).unwrap_or(0)];
        let read = self
            .connection
            .read_exact(&mut payload, self.patience.deadline(bytes));
        read.map_err(|broken| self.broken(broken, self.patience.silence, doing))?;
        Ok(payload)
    }

    /// Another end of the same connection: one is to write, the other to read.
    pub(crate) fn try_clone(&self) -> io::Result<Client> {
        Ok(Client {
            connection: self.connection.try_clone()?,
            address: self.address.clone(),
            program: self.program.clone(),
            patience: self.patience,
        })
    }

    /// Sends a request with so many bytes of payload.
    pub(crate) fn send(
        &mut self,
        request: &Request,
        payload: u64,
        doing: &'static str,
    ) -> Result<(), EdgeError> {
        let deadline = self.patience.deadline(payload);
        let sent = self.connection.send(&request.encode(), payload, deadline);
        self.unless_refused(sent, doing)
    }

    /// What became of a request that was sent: a server that closes the connection meanwhile has often said why.
    fn unless_refused(
        &mut self,
        sent: Result<(), Broken>,
        doing: &'static str,
    ) -> Result<(), EdgeError> {
        match sent {
            Ok(()) => Ok(()),
            Err(broken) => match self.reply(doing) {
                Err(refused @ EdgeError::Refused { .. }) => Err(refused),
                _ => Err(self.broken(broken, self.patience.silence, doing)),
            },
        }
    }

    /// Waits for so many bytes.
    pub(crate) fn data(&mut self, bytes: u64, doing: &'static str) -> Result<(), EdgeError> {
        match self.reply(doing)? {
            Reply::Data { bytes: coming } if coming == bytes => {}
            _ => return Err(self.other_answer(doing)),
        }
        let deadline = self.patience.deadline(bytes);
        let discarded = self.connection.discard(bytes, deadline);
        discarded.map_err(|broken| self.broken(broken, self.patience.silence, doing))
    }

    /// Waits for the end of an exchange that began at `started`.
    pub(crate) fn done(
        &mut self,
        started: Instant,
        doing: &'static str,
    ) -> Result<Answer, EdgeError> {
        match self.reply(doing)? {
            Reply::Done(server) => Ok(Answer {
                started,
                duration: started.elapsed(),
                server,
            }),
            _ => Err(self.other_answer(doing)),
        }
    }

    /// The next reply that is no refusal.
    fn reply(&mut self, doing: &'static str) -> Result<Reply, EdgeError> {
        let silence = self.patience.silence;
        self.reply_by(self.patience.deadline(0), silence, doing)
    }

    /// The same, by `deadline`, which is `wait` from now.
    fn reply_by(
        &mut self,
        deadline: Deadline,
        wait: Duration,
        doing: &'static str,
    ) -> Result<Reply, EdgeError> {
        let header = self.connection.header(None, deadline);
        let header = header.map_err(|broken| self.broken(broken, wait, doing))?;
        let header = header.map_err(|source| EdgeError::Frame {
            address: self.address.clone(),
            source,
        })?;
        let fields = self.connection.fields(header, deadline);
        let fields = fields.map_err(|broken| self.broken(broken, wait, doing))?;
        let reply = Reply::decode(header, &fields);
        match reply.map_err(|source: MessageError| EdgeError::Message {
            address: self.address.clone(),
            doing,
            source,
        })? {
            Reply::Refused { sentence } => Err(EdgeError::Refused {
                address: self.address.clone(),
                sentence,
            }),
            reply => Ok(reply),
        }
    }

    pub(crate) fn broken(
        &self,
        broken: Broken,
        waited: Duration,
        doing: &'static str,
    ) -> EdgeError {
        let address = self.address.clone();
        match broken {
            Broken::Late => EdgeError::Late {
                address,
                doing,
                waited,
            },
            Broken::Gone(source) => EdgeError::Lost {
                address,
                doing,
                source,
            },
        }
    }

    pub(crate) fn gone(&self, source: io::Error) -> EdgeError {
        self.broken(Broken::Gone(source), self.patience.silence, "saying hello")
    }

    fn other_answer(&self, doing: &'static str) -> EdgeError {
        EdgeError::OtherAnswer {
            address: self.address.clone(),
            doing,
        }
    }
}

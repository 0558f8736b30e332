//! One end of a connection: reads and writes that end by a deadline.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use socket2::SockRef;

use crate::cancel::Cancel;
use crate::frame::{FrameError, FrameHeader, HEADER_BYTES};
use crate::message::Reply;

/// How much is read or written in one go.
const CHUNK: usize = 64 << 10;

/// How much the system takes that it has not sent yet. Left to itself it takes megabytes, and then nothing until a third of
/// them has gone, which at 1 Mbit/s is longer than [`Patience::silence`].
const UNSENT: u32 = 256 << 10;

/// The system refuses to wait for no time at all.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// How long a peer that was refused may take to read why.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How much of what a refused peer still sends is read, so that its own system does not throw away the refusal.
const LAST_BYTES: usize = 4 << 20;

/// How long one end waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The longest time in which nothing at all comes or goes.
    pub silence: Duration,
    /// The slowest rate at which many bytes may come or go, in byte/s.
    pub slowest_bytes_per_second: u64,
    /// How long a server may take until it answers a request to run layers: waiting for its turn, loading and computing.
    pub inference: Duration,
}

impl Default for Patience {
    /// Ten seconds, as a phone that changes its cell may need, and 64 kbit/s, which is slower than any link worth
    /// planning with.
    fn default() -> Patience {
        Patience {
            silence: Duration::from_secs(10),
            slowest_bytes_per_second: 8_000,
            // Twice as long as a server lets a request wait.
            inference: Duration::from_secs(120),
        }
    }
}

impl Patience {
    /// When so many bytes must have come or gone, from now on.
    pub(crate) fn deadline(self, bytes: u64) -> Deadline {
        let rate = self.slowest_bytes_per_second.max(1);
        let moving = Duration::from_secs(bytes / rate);
        Deadline {
            silence: self.silence,
            end: Instant::now() + self.silence + moving,
        }
    }
}

/// When a wait ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    silence: Duration,
    end: Instant,
}

impl Deadline {
    /// So long from now, however much comes or goes.
    pub(crate) fn within(time: Duration) -> Deadline {
        Deadline {
            silence: time,
            end: Instant::now() + time,
        }
    }

    /// How long the next wait may take.
    fn wait(&self) -> Option<Duration> {
        let left = self.end.checked_duration_since(Instant::now())?;
        Some(left.min(self.silence).max(SHORTEST_WAIT))
    }
}

/// Why the other end was not heard, or not reached.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It did not come or go in time.
    Late,
    /// The other end closed the connection, or it was cut.
    Gone(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Broken::Late,
            _ => Broken::Gone(error),
        }
    }
}

/// One end of a connection.
pub(crate) struct Connection {
    stream: TcpStream,
    scratch: Vec<u8>,
    read_wait: Option<Duration>,
    write_wait: Option<Duration>,
}

/// Bytes that nothing on the way can compress.
fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut bytes = vec![0; CHUNK];
        ChaCha8Rng::seed_from_u64(1).fill_bytes(&mut bytes);
        bytes
    })
}

impl Connection {
    /// Takes `stream`, whose small packets are from now on sent at once.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT)?;
        Ok(Connection {
            stream,
            scratch: vec![0; CHUNK],
            read_wait: None,
            write_wait: None,
        })
    }

    /// Another end of the same connection: one is to write, the other to read.
    pub(crate) fn try_clone(&self) -> io::Result<Connection> {
        let stream = self.stream.try_clone()?;
        Ok(Connection {
            stream,
            scratch: vec![0; CHUNK],
            read_wait: None,
            write_wait: None,
        })
    }

    /// The address of the other end.
    pub(crate) fn peer(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// Has `cancel` cut it.
    pub(crate) fn cut_by(&self, cancel: &Cancel) -> io::Result<()> {
        cancel.cuts(&self.stream)
    }

    /// Reads at least one byte; `None` when the other end has closed the connection.
    fn read_some(
        stream: &mut TcpStream,
        last_wait: &mut Option<Duration>,
        buffer: &mut [u8],
        deadline: Deadline,
    ) -> Result<Option<usize>, Broken> {
        loop {
            let wait = deadline.wait().ok_or(Broken::Late)?;
            if *last_wait != Some(wait) {
                stream.set_read_timeout(Some(wait))?;
                *last_wait = Some(wait);
            }
            match stream.read(buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => return Ok(Some(count)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for the first byte of a header, and when it came; `None` when the other end has closed the connection.
    pub(crate) fn first_byte(
        &mut self,
        deadline: Deadline,
    ) -> Result<Option<(u8, Instant)>, Broken> {
        let mut byte = [0];
        let read = Self::read_some(&mut self.stream, &mut self.read_wait, &mut byte, deadline)?;
        Ok(read.map(|_| (byte[0], Instant::now())))
    }

    /// Fills `buffer`.
    pub(crate) fn read_exact(
        &mut self,
        mut buffer: &mut [u8],
        deadline: Deadline,
    ) -> Result<(), Broken> {
        while !buffer.is_empty() {
            let (stream, wait) = (&mut self.stream, &mut self.read_wait);
            match Self::read_some(stream, wait, buffer, deadline)? {
                Some(count) => buffer = &mut buffer[count..],
                None => return Err(Broken::Gone(ErrorKind::UnexpectedEof.into())),
            }
        }
        Ok(())
    }

    /// Reads so many bytes and forgets them.
    pub(crate) fn discard(&mut self, mut bytes: u64, deadline: Deadline) -> Result<(), Broken> {
        while bytes > 0 {
            let most = usize::try_from(bytes).unwrap_or(CHUNK).min(CHUNK);
            let (stream, wait) = (&mut self.stream, &mut self.read_wait);
            match Self::read_some(stream, wait, &mut self.scratch[..most], deadline)? {
                Some(count) => bytes -= count as u64,
                None => return Err(Broken::Gone(ErrorKind::UnexpectedEof.into())),
            }
        }
        Ok(())
    }

    /// Reads a header of which `first` was read already, if any of it was.
    pub(crate) fn header(
        &mut self,
        first: Option<u8>,
        deadline: Deadline,
    ) -> Result<Result<FrameHeader, FrameError>, Broken> {
        let mut bytes = [0; HEADER_BYTES];
        let read = usize::from(first.is_some());
        bytes[0] = first.unwrap_or(0);
        self.read_exact(&mut bytes[read..], deadline)?;
        Ok(FrameHeader::decode(&bytes))
    }

    /// Reads a frame's fields, which its header limits.
    pub(crate) fn fields(
        &mut self,
        header: FrameHeader,
        deadline: Deadline,
    ) -> Result<Vec<u8>, Broken> {
        let mut fields = vec![0; header.fields_bytes as usize];
        self.read_exact(&mut fields, deadline)?;
        Ok(fields)
    }

    /// Writes all of `bytes`.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8], deadline: Deadline) -> Result<(), Broken> {
        while !bytes.is_empty() {
            let wait = deadline.wait().ok_or(Broken::Late)?;
            if self.write_wait != Some(wait) {
                self.stream.set_write_timeout(Some(wait))?;
                self.write_wait = Some(wait);
            }
            match self.stream.write(bytes) {
                Ok(0) => return Err(Broken::Gone(ErrorKind::WriteZero.into())),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes a frame and so many bytes of payload. The payload begins in the packet in which the frame ends.
    pub(crate) fn send(
        &mut self,
        frame: &[u8],
        payload: u64,
        deadline: Deadline,
    ) -> Result<(), Broken> {
        let mut left = payload;
        let mut part = |room: usize| {
            let count = usize::try_from(left).unwrap_or(room).min(room);
            left -= count as u64;
            &pattern()[..count]
        };
        let first = [frame, part(CHUNK.saturating_sub(frame.len()))].concat();
        self.write_all(&first, deadline)?;
        loop {
            let next = part(CHUNK);
            if next.is_empty() {
                return Ok(());
            }
            self.write_all(next, deadline)?;
        }
    }

    /// Writes a frame and its payload. The payload begins in the packet in which the frame ends.
    pub(crate) fn send_bytes(
        &mut self,
        frame: &[u8],
        payload: &[u8],
        deadline: Deadline,
    ) -> Result<(), Broken> {
        let beside = payload.len().min(CHUNK.saturating_sub(frame.len()));
        let (beside, after) = payload.split_at(beside);
        self.write_all(&[frame, beside].concat(), deadline)?;
        self.write_all(after, deadline)
    }

    /// Whether the other end has closed the connection, as far as is known here. Waits for nothing.
    pub(crate) fn is_gone(&self) -> bool {
        let peeked = (self.stream.set_nonblocking(true))
            .and_then(|()| self.stream.peek(&mut [0]))
            .map_err(|error| error.kind());
        let is_gone = !matches!(
            peeked,
            Ok(1) | Err(ErrorKind::WouldBlock | ErrorKind::Interrupted)
        );
        is_gone || self.stream.set_nonblocking(false).is_err()
    }

    /// Says why nothing more will be said, and sees that the other end can read it. That it cannot is no error.
    pub(crate) fn refuse(mut self, sentence: String) {
        let deadline = Deadline::within(LAST_WORDS);
        let refusal = Reply::Refused { sentence }.encode();
        if self.write_all(&refusal, deadline).is_err()
            || self.stream.shutdown(Shutdown::Write).is_err()
        {
            return;
        }
        // What is unread when a socket is closed makes the other end's system forget what was sent to it.
        let mut left = LAST_BYTES;
        while left > 0 {
            let (stream, wait) = (&mut self.stream, &mut self.read_wait);
            match Self::read_some(stream, wait, &mut self.scratch, deadline) {
                Ok(Some(count)) => left = left.saturating_sub(count),
                Ok(None) | Err(_) => return,
            }
        }
    }
}

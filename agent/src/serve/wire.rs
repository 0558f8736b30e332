//! Requests and responses of one connection, one a line.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use layerlab_protocol::{FramingError, MAX_LINE_BYTES, Request, Response, decode, encode};

/// The requests of a connection, one a line.
pub(super) struct Lines(BufReader<UnixStream>);

impl Lines {
    pub(super) fn new(stream: UnixStream) -> Lines {
        Lines(BufReader::new(stream))
    }

    /// The next line as a request; `None` at the end of the connection. After [`FramingError::TooLong`] there is nothing
    /// more to be read: where the next line begins is unknown.
    pub(super) fn next(&mut self) -> io::Result<Option<Result<Request, FramingError>>> {
        let mut line = Vec::new();
        let limit = MAX_LINE_BYTES as u64 + 1;
        self.0.by_ref().take(limit).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line);
        Ok(Some(decode(&text)))
    }
}

/// The sending side of a connection, shared by its answers and its followers.
pub(super) struct Writer {
    stream: Mutex<UnixStream>,
    open: AtomicBool,
}

impl Writer {
    pub(super) fn new(stream: UnixStream) -> Writer {
        Writer {
            stream: Mutex::new(stream),
            open: AtomicBool::new(true),
        }
    }

    pub(super) fn send(&self, response: &Response) -> io::Result<()> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        // After a failure half a line may be out: nothing sensible can follow it.
        stream
            .write_all(encode(response).as_bytes())
            .inspect_err(|_| self.close())
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn close(&self) {
        self.open.store(false, Ordering::Relaxed);
    }
}

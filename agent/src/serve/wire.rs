//! Requests and responses of one connection, one a line.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
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
        let sent = stream.write_all(encode(response).as_bytes());
        if sent.is_err() {
            // Half a line may be out, and followers have given up: the daemon shall connect anew, not go on with the rest.
            self.close();
            let _ = stream.shutdown(Shutdown::Both);
        }
        sent
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    pub(super) fn close(&self) {
        self.open.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_connection_from_which_nobody_reads_ends_for_both_sides() {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        ours.set_write_timeout(Some(Duration::from_millis(1)))
            .expect("a deadline");
        // Where it does not end, this fails, and does not wait for ever.
        for end in [&ours, &theirs] {
            end.set_read_timeout(Some(Duration::from_secs(10)))
                .expect("a deadline");
        }
        let mut requests = Lines::new(ours.try_clone().expect("another"));
        let writer = Writer::new(ours);
        while writer.send(&Response::Pong).is_ok() {}
        assert!(!writer.is_open());
        assert!(requests.next().expect("an end").is_none());
        // What went out before can be read, up to the end.
        let mut answers = BufReader::new(theirs).lines();
        let first = answers.next().expect("a line").expect("whole");
        assert!(matches!(decode(&first), Ok(Response::Pong)), "{first}");
        assert!(answers.all(|line| line.is_ok()));
    }
}

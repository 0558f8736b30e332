//! The server's own protocol: a request with its length in four hexadecimal digits, OKAY or FAIL, and
//! texts with a length of the same form.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::endpoint::{Endpoint, Stream};
use super::error::AdbError;
use super::fault::Fault;

/// What four hexadecimal digits can say.
const LONGEST_REQUEST: usize = 0xffff;

/// A connection to a server, and whom errors on it are about.
pub(super) struct Wire {
    pub(super) stream: Stream,
    subject: String,
    fault: Fault,
}

/// `work`, given up after `deadline`. Giving it up closes what it had opened.
pub(super) async fn within<T>(
    subject: &str,
    what: &'static str,
    fault: Fault,
    deadline: Duration,
    work: impl Future<Output = Result<T, AdbError>>,
) -> Result<T, AdbError> {
    timeout(deadline, work).await.unwrap_or_else(|_| {
        Err(AdbError::Deadline {
            subject: subject.to_owned(),
            what,
            deadline,
            fault,
        })
    })
}

impl Wire {
    /// Connects to the server at `at`.
    pub(super) async fn open(at: &Endpoint) -> Result<Wire, AdbError> {
        let stream = at.connect().await.map_err(|error| AdbError::ServerGone {
            address: at.to_string(),
            reason: error.to_string(),
        })?;
        Ok(Wire {
            stream,
            subject: format!("the adb server at {at}"),
            fault: Fault::Server,
        })
    }

    /// From here on, errors are about `subject`, not about the server.
    pub(super) fn about(&mut self, subject: &str, fault: Fault) {
        subject.clone_into(&mut self.subject);
        self.fault = fault;
    }

    /// Sends `request` and waits for its OKAY.
    pub(super) async fn request(
        &mut self,
        request: &str,
        what: &'static str,
    ) -> Result<(), AdbError> {
        if request.len() > LONGEST_REQUEST {
            return Err(self.refused(what, "the request is too long".to_owned()));
        }
        let framed = format!("{:04x}{request}", request.len());
        let written = self.stream.write_all(framed.as_bytes()).await;
        written.map_err(|error| self.lost(&error))?;
        self.status(what).await
    }

    /// Reads OKAY, or FAIL with its reason.
    pub(super) async fn status(&mut self, what: &'static str) -> Result<(), AdbError> {
        let mut status = [0; 4];
        self.read(&mut status).await?;
        match &status {
            b"OKAY" => Ok(()),
            b"FAIL" => {
                let message = self.text().await?;
                Err(self.refused(what, message))
            }
            other => Err(self.nonsense(other)),
        }
    }

    /// Reads a text with its length before it.
    pub(super) async fn text(&mut self) -> Result<String, AdbError> {
        let mut received = Vec::new();
        loop {
            if let Some(text) = self.take_text(&mut received)? {
                return Ok(text);
            }
            self.read_some(&mut received).await?;
        }
    }

    /// Takes a text with its length before it off the front of what was received, if it is whole.
    pub(super) fn take_text(&self, received: &mut Vec<u8>) -> Result<Option<String>, AdbError> {
        let Some(length) = received.first_chunk::<4>() else {
            return Ok(None);
        };
        let digits = std::str::from_utf8(length).ok();
        let length = digits.and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let Some(length) = length else {
            return Err(self.nonsense(b"a length that is none"));
        };
        if received.len() < 4 + length {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&received[4..4 + length]).into_owned();
        received.drain(..4 + length);
        Ok(Some(text))
    }

    /// Reads what has come, at least one byte. Dropping the future loses nothing.
    pub(super) async fn read_some(&mut self, received: &mut Vec<u8>) -> Result<(), AdbError> {
        match self.stream.read_buf(received).await {
            Ok(0) => Err(self.lost(&io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(()),
            Err(error) => Err(self.lost(&error)),
        }
    }

    pub(super) async fn read(&mut self, into: &mut [u8]) -> Result<(), AdbError> {
        let read = self.stream.read_exact(into).await;
        read.map_err(|error| self.lost(&error))?;
        Ok(())
    }

    pub(super) fn lost(&self, error: &io::Error) -> AdbError {
        AdbError::Lost {
            subject: self.subject.clone(),
            reason: error.to_string(),
            fault: self.fault,
        }
    }

    pub(super) fn refused(&self, what: &'static str, message: String) -> AdbError {
        AdbError::Refused {
            subject: self.subject.clone(),
            what,
            message,
            fault: self.fault,
        }
    }

    fn nonsense(&self, found: &[u8]) -> AdbError {
        AdbError::Lost {
            subject: self.subject.clone(),
            reason: format!("`{}` is not of adb's protocol", found.escape_ascii()),
            fault: self.fault,
        }
    }
}

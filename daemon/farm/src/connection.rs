//! A connection to an agent that said hello.

use std::time::Duration;

use layerlab_profiles::document::{Device, Processor};
use layerlab_protocol::{
    FramingError, MAX_LINE_BYTES, Refusal, Request, Response, VERSION, decode, encode,
};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::timeout;

/// How long an agent may take for its hello, and for taking a request off our hands.
const DEADLINE: Duration = Duration::from_secs(10);

/// A connection to an agent.
pub struct Connection {
    messages: Messages,
    /// Who the agent is.
    pub hello: Hello,
}

/// Who an agent is.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// The agent's version.
    pub agent_version: String,
    /// The device that it runs on.
    pub device: Device,
    /// The device's operating system.
    pub system: String,
    /// The processors that it can measure.
    pub processors: Vec<Processor>,
}

/// What goes wrong on a connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The connection is gone.
    #[error("the connection to the agent was lost ({0})")]
    Lost(String),
    /// The agent sends what this version does not understand.
    #[error("the agent sent what is {0}")]
    Framing(#[from] FramingError),
    /// The agent speaks another version.
    #[error(
        "the agent speaks protocol version {theirs}, this layerlab {VERSION}; install the agent that came with it"
    )]
    Version {
        /// The version that it speaks.
        theirs: u32,
    },
    /// The agent refused a request.
    #[error("the agent refused: {message}")]
    Refused {
        /// What was wrong.
        refusal: Refusal,
        /// The agent's sentence.
        message: String,
    },
    /// The agent did not answer a hello with a hello.
    #[error("what answers is no layerlab agent")]
    NotAnAgent,
}

impl ConnectionError {
    /// Whether a new connection can help.
    pub fn is_transient(&self) -> bool {
        matches!(self, ConnectionError::Lost(_))
    }
}

impl From<std::io::Error> for ConnectionError {
    fn from(error: std::io::Error) -> Self {
        ConnectionError::Lost(error.to_string())
    }
}

impl Connection {
    /// Says hello over `stream`.
    pub async fn open<S>(stream: S, token: &str) -> Result<Connection, ConnectionError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (reader, writer) = tokio::io::split(stream);
        let mut messages = Messages {
            reader: BufReader::new(Box::new(reader)),
            writer: Box::new(writer),
            line: Vec::new(),
        };
        messages
            .send(&Request::Hello {
                protocol: VERSION,
                token: token.to_owned(),
            })
            .await?;
        let response = timeout(DEADLINE, messages.receive())
            .await
            .map_err(|_| ConnectionError::Lost("no hello in time".to_owned()))??;
        match response {
            Response::Hello { protocol, .. } if protocol != VERSION => {
                Err(ConnectionError::Version { theirs: protocol })
            }
            Response::Hello {
                agent_version,
                device,
                system,
                processors,
                ..
            } => {
                let hello = Hello {
                    agent_version,
                    device: device.into(),
                    system,
                    processors: processors.into_iter().map(Into::into).collect(),
                };
                Ok(Connection { messages, hello })
            }
            Response::Refused { refusal, message } => {
                Err(ConnectionError::Refused { refusal, message })
            }
            _ => Err(ConnectionError::NotAnAgent),
        }
    }

    /// Sends `request`.
    pub async fn send(&mut self, request: &Request) -> Result<(), ConnectionError> {
        self.messages.send(request).await
    }

    /// The agent's next message. Waits as long as it takes: the caller knows the deadline. Dropping
    /// the future loses nothing.
    pub async fn receive(&mut self) -> Result<Response, ConnectionError> {
        match self.messages.receive().await {
            // It spoke well when it said hello: this was damaged on the way, and the journal has it whole.
            Err(ConnectionError::Framing(error)) => Err(ConnectionError::Lost(format!(
                "what came over it is {error}"
            ))),
            other => other,
        }
    }
}

/// Messages over a stream.
struct Messages {
    reader: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// What was read of a line when a receive was last dropped.
    line: Vec<u8>,
}

impl Messages {
    async fn send(&mut self, request: &Request) -> Result<(), ConnectionError> {
        match timeout(DEADLINE, self.writer.write_all(encode(request).as_bytes())).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(ConnectionError::Lost("the agent does not read".to_owned())),
        }
    }

    async fn receive(&mut self) -> Result<Response, ConnectionError> {
        let room = (MAX_LINE_BYTES + 1).saturating_sub(self.line.len()) as u64;
        (&mut self.reader)
            .take(room)
            .read_until(b'\n', &mut self.line)
            .await?;
        if self.line.ends_with(b"\n") {
            let line = String::from_utf8(std::mem::take(&mut self.line));
            let garbled = |_| ConnectionError::Lost("what the agent said came garbled".to_owned());
            return Ok(decode(&line.map_err(garbled)?)?);
        }
        if self.line.len() > MAX_LINE_BYTES {
            return Err(FramingError::TooLong.into());
        }
        Err(ConnectionError::Lost("the agent closed it".to_owned()))
    }
}

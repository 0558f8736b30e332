//! The side of the commands.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::{DEADLINE, DEADLINE_OF_JOBS, TooLong, line, path};
use crate::talk::{Answer, Request};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody is there.
    #[error("no layerlab daemon runs here; start it with `layerlab daemon`")]
    NoDaemon,
    /// There cannot be a socket.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// It says nothing.
    #[error("the layerlab daemon does not answer within {} s; `journalctl --user -u layerlab` may say why", .0.as_secs())]
    Silent(Duration),
    /// The connection failed.
    #[error("cannot talk to the layerlab daemon: {0}; see whether it runs as this user")]
    Broken(#[from] io::Error),
    /// It speaks otherwise.
    #[error(
        "the layerlab daemon answers what this program does not understand; are both of one version? {0}"
    )]
    Strange(#[from] serde_json::Error),
}

/// Asks the daemon of the lab with the folder `state`.
pub async fn ask(state: &Path, request: &Request) -> Result<Answer, AskError> {
    let deadline = match request {
        Request::Submit { .. } => DEADLINE_OF_JOBS,
        _ => DEADLINE,
    };
    timeout(deadline, answer(state, request))
        .await
        .unwrap_or(Err(AskError::Silent(deadline)))
}

async fn answer(state: &Path, request: &Request) -> Result<Answer, AskError> {
    let stream = UnixStream::connect(path(state)?).await;
    let mut stream = stream.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => AskError::NoDaemon,
        _ => AskError::Broken(error),
    })?;
    let mut question = serde_json::to_vec(request)?;
    question.push(b'\n');
    // A daemon that refuses what it has read of it does not read the rest.
    let sent = stream.write_all(&question).await;
    match line(BufReader::new(stream)).await {
        Ok(Some(answer)) => Ok(serde_json::from_slice(&answer)?),
        Ok(None) => {
            sent?;
            let kind = io::ErrorKind::UnexpectedEof;
            Err(io::Error::new(kind, "it ended before it answered").into())
        }
        Err(error) => Err(error.into()),
    }
}

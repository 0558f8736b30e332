//! The socket in the state folder over which commands ask the daemon: one request and one answer per connection, each
//! a line of JSON.

mod client;
mod server;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

pub use client::{AskError, ask};
pub use server::{Listener, Reply};

/// What the system allows in the path of a socket, its end apart.
const LONGEST_PATH: usize = 107;

/// Longer lines are nobody's request.
const LONGEST_LINE: u64 = 16 << 20;

/// After this nobody waits for the other side any more.
const DEADLINE: Duration = Duration::from_secs(30);

/// The same for a job, of which the daemon reads and copies the models and the evaluation set first.
const DEADLINE_OF_JOBS: Duration = Duration::from_secs(600);

/// The path is too long for a socket.
#[derive(Debug, thiserror::Error)]
#[error(
    "the daemon's socket would be {}, and the path of a socket has at most {LONGEST_PATH} bytes; name a state folder \
     with a shorter path by LAYERLAB_STATE", path.display()
)]
pub struct TooLong {
    path: PathBuf,
}

/// Where the socket of the lab with the folder `state` is.
pub fn path(state: &Path) -> Result<PathBuf, TooLong> {
    let path = state.join("lab/daemon.socket");
    match path.as_os_str().len() > LONGEST_PATH {
        true => Err(TooLong { path }),
        false => Ok(path),
    }
}

/// The next line without its end; none if there is nothing.
async fn line(from: impl AsyncBufRead + Unpin) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.take(LONGEST_LINE + 1)
        .read_until(b'\n', &mut line)
        .await?;
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(line));
    }
    if line.len() as u64 > LONGEST_LINE {
        let message = format!("a line is longer than {} MiB", LONGEST_LINE >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(Some(line).filter(|line| !line.is_empty()))
}

#[cfg(test)]
mod tests;

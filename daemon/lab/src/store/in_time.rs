//! Work with the database that does not take for ever.

use std::io;
use std::time::Duration;

use tokio::time::timeout;

/// So long may a step take. A server that has vanished says nothing, and the system waits many minutes for it; one that is
/// slow, or a disk that is, takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What comes of `work`, a step on a connection; if it takes too long, the connection is of no use any more.
pub(super) async fn in_time<T, E: From<sqlx::Error>>(
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => Err(no_answer(PATIENCE).into()),
    }
}

/// What is said of a server that has not answered for so long.
pub(super) fn no_answer(after: Duration) -> sqlx::Error {
    let why = format!("no answer within {}", humantime::format_duration(after));
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, why))
}

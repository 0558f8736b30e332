//! The side of the daemon.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{DEADLINE, line, path};
use crate::talk::{Answer, RefusalCode, Request};

/// Connections at once; more wait in the system's queue.
const MOST_CONNECTIONS: usize = 64;

/// Takes the requests of commands. The socket goes when it does.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    requests: Mutex<mpsc::Receiver<(Request, Reply)>>,
    accepting: JoinHandle<()>,
}

/// Where the answer to a request goes. Dropped, it refuses.
#[derive(Debug)]
pub struct Reply {
    answer: oneshot::Sender<Answer>,
    /// Ends when the command has the answer, or is gone.
    written: oneshot::Receiver<()>,
}

impl Reply {
    /// Answers, and returns when that is written. Who does not listen any more is not missed.
    pub async fn send(self, answer: Answer) {
        if self.answer.send(answer).is_ok() {
            let _ = self.written.await;
        }
    }
}

impl Listener {
    /// Listens in the folder `state` for this user alone. Another daemon's socket stays what it is; one that nobody
    /// listens at is replaced.
    pub fn bind(state: &Path) -> io::Result<Listener> {
        let path =
            path(state).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        if std::os::unix::net::UnixStream::connect(&path).is_ok() {
            let message = format!("another layerlab daemon listens at {}", path.display());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, message));
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // Nobody shall connect before its mode is set, so it gets its name after that.
        let unnamed = path.with_file_name("new.socket");
        remove(&unnamed)?;
        let listener = UnixListener::bind(&unnamed)?;
        fs::set_permissions(&unnamed, Permissions::from_mode(0o600))?;
        fs::rename(&unnamed, &path)?;
        let (sender, requests) = mpsc::channel(MOST_CONNECTIONS);
        Ok(Listener {
            path,
            requests: Mutex::new(requests),
            accepting: tokio::spawn(accept(listener, sender)),
        })
    }

    /// The next request. Nothing is lost when it is dropped before it ends.
    pub async fn accept(&self) -> (Request, Reply) {
        match self.requests.lock().await.recv().await {
            Some(request) => request,
            // Who accepts ends with the listener only.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
        let _ = remove(&self.path);
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn accept(listener: UnixListener, requests: mpsc::Sender<(Request, Reply)>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while let Ok(place) = room.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let requests = requests.clone();
                tokio::spawn(async move {
                    if let Err(error) = serve(stream, &requests).await {
                        tracing::debug!(%error, "a command went away");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take a command's connection");
                // There are no descriptors left, say.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

async fn serve(stream: UnixStream, requests: &mpsc::Sender<(Request, Reply)>) -> io::Result<()> {
    let (from, mut to) = stream.into_split();
    let (_written, is_written) = oneshot::channel();
    let answer = match timeout(DEADLINE, line(BufReader::new(from))).await {
        Err(_) => refused(RefusalCode::TooLate, "no request came in time".to_owned()),
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            refused(RefusalCode::TooLong, error.to_string())
        }
        Ok(read) => match read? {
            None => return Ok(()),
            Some(line) => match serde_json::from_slice(&line) {
                Ok(request) => passed_on(request, is_written, requests).await,
                Err(error) => refused(
                    RefusalCode::NoRequest,
                    format!(
                        "this is no request of layerlab's ({error}); are daemon and command of one version?"
                    ),
                ),
            },
        },
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    timeout(DEADLINE, async {
        to.write_all(&line).await?;
        to.shutdown().await
    })
    .await?
}

async fn passed_on(
    request: Request,
    written: oneshot::Receiver<()>,
    requests: &mpsc::Sender<(Request, Reply)>,
) -> Answer {
    let ending = || {
        refused(
            RefusalCode::Ending,
            "the daemon is ending; ask again when it runs".to_owned(),
        )
    };
    let (answer, answered) = oneshot::channel();
    match requests.send((request, Reply { answer, written })).await {
        Ok(()) => answered.await.unwrap_or_else(|_| ending()),
        Err(_) => ending(),
    }
}

fn refused(code: RefusalCode, message: String) -> Answer {
    Answer::Refused { code, message }
}

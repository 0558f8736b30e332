//! Our own adb server, at a socket in a folder that nobody but its user can enter. A client of another version that talks
//! to a shared server kills it, and every phone with it; and whoever can reach a server can do with its phones what they
//! like. Nobody else talks to this one.
//!
//! It goes on when layerlab ends, so that phones stay connected from one command to the next. Starting
//! and restarting it is behind a lock for the whole host, since it concerns every phone.

use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use super::ask;
use super::endpoint::Endpoint;
use super::error::AdbError;
use super::program::Program;
use crate::folders::make_private;

/// The longest path that a socket can have, in bytes: the kernel's limit.
const LONGEST_PATH: usize = 107;

/// How long the server may take from its start until it answers. It opens USB first.
const START: Duration = Duration::from_secs(15);

/// How long to wait for another layerlab that is starting the server.
const LOCK: Duration = Duration::from_secs(40);

/// How often to look whether something that takes a moment has happened.
const POLL: Duration = Duration::from_millis(30);

/// Our own server.
#[derive(Debug)]
pub struct OwnServer {
    /// The program that it is run from.
    pub program: Program,
    /// Where it listens, and keeps its log, its process id and its lock.
    pub folder: PathBuf,
}

impl OwnServer {
    /// Starts the server unless one answers. One that is there and does not answer is left alone.
    pub async fn ensure(&self) -> Result<(), AdbError> {
        match self.check().await {
            Err(AdbError::ServerGone { .. }) => {}
            other => return other,
        }
        let _lock = self.lock().await?;
        // Somebody else may have started it while we waited.
        match self.check().await {
            Err(AdbError::ServerGone { .. }) => self.start().await,
            other => other,
        }
    }

    /// Kills the server and starts it anew, unless it answers after all.
    pub async fn restart(&self) -> Result<(), AdbError> {
        let _lock = self.lock().await?;
        if self.check().await.is_ok() {
            return Ok(());
        }
        tracing::warn!(socket = %self.socket().display(), "restarting the adb server");
        self.kill();
        self.start().await
    }

    /// The file with the server's own words.
    pub fn log(&self) -> PathBuf {
        self.file("log")
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("server.{extension}"))
    }

    fn socket(&self) -> PathBuf {
        self.file("socket")
    }

    /// Where it listens.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::Socket(self.socket())
    }

    /// The same, as the program's option `-L` wants it.
    fn listen(&self) -> String {
        format!("localfilesystem:{}", self.socket().display())
    }

    fn does_not_start(&self, reason: String) -> AdbError {
        AdbError::ServerStart {
            socket: self.socket(),
            reason,
        }
    }

    /// Whether the server answers and is of our program's version.
    async fn check(&self) -> Result<(), AdbError> {
        let version = ask::version(&self.endpoint()).await?;
        if version == self.program.protocol {
            return Ok(());
        }
        Err(self.does_not_start(format!(
            "one of version {version} is there, this adb is of version {}: kill it",
            self.program.protocol
        )))
    }

    async fn lock(&self) -> Result<File, AdbError> {
        let path = self.file("lock");
        let own = |source| AdbError::Own {
            path: path.clone(),
            source,
        };
        make_private(&self.folder).map_err(own)?;
        let file = File::create(&path).map_err(own)?;
        let end = Instant::now() + LOCK;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(own(error)),
                Err(TryLockError::WouldBlock) if Instant::now() >= end => {
                    return Err(own(std::io::Error::other(
                        "another layerlab has been starting the adb server for too long",
                    )));
                }
                Err(TryLockError::WouldBlock) => sleep(POLL).await,
            }
        }
    }

    async fn start(&self) -> Result<(), AdbError> {
        let length = self.socket().as_os_str().len();
        if length > LONGEST_PATH {
            return Err(self.does_not_start(format!(
                "a socket's path has {LONGEST_PATH} bytes at most, and this one {length}: set LAYERLAB_STATE to a folder \
                 with a shorter path"
            )));
        }
        let own = |path: PathBuf| move |source| AdbError::Own { path, source };
        let log = File::create(self.log()).map_err(own(self.log()))?;
        let output = log.try_clone().map_err(own(self.log()))?;
        // In the foreground, so that its process id is known, and in a process group of its own, so that
        // what interrupts layerlab does not end it.
        let child = Command::new(&self.program.path)
            .args(["-L", &self.listen()])
            .args(["nodaemon", "server"])
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(log)
            .current_dir("/")
            .process_group(0)
            .spawn();
        let mut child = child.map_err(|error| AdbError::BadProgram {
            program: self.program.path.clone(),
            reason: error.to_string(),
        })?;
        if let Some(id) = child.id() {
            std::fs::write(self.file("pid"), id.to_string()).map_err(own(self.file("pid")))?;
        }
        let end = Instant::now() + START;
        loop {
            match self.check().await {
                Err(
                    AdbError::ServerGone { .. } | AdbError::Lost { .. } | AdbError::Deadline { .. },
                ) => {}
                other => return other,
            }
            let ended = matches!(child.try_wait(), Ok(Some(_)));
            if ended || Instant::now() >= end {
                return Err(self.does_not_start(self.last_words()));
            }
            sleep(POLL).await;
        }
    }

    /// Kills the process that we started, if it still is the server.
    fn kill(&self) {
        let id = std::fs::read_to_string(self.file("pid")).ok();
        let Some(id) = id.and_then(|id| id.trim().parse::<i32>().ok()) else {
            return;
        };
        let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        if !String::from_utf8_lossy(&command).contains(&self.listen()) {
            return;
        }
        if let Some(process) = Pid::from_raw(id) {
            // One that has ended meanwhile needs no killing.
            let _ = kill_process(process, Signal::KILL);
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read(self.log()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        log.lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("it says nothing")
            .to_owned()
    }
}

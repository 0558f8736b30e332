//! The agent's end of a child process: it starts it, asks it, notices its death and starts another one.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::frames::{read_frame, write_frame};
use super::messages::{ChildAnswer, ChildRequest, RuntimeSetup};

/// The argument that makes the agent's program the child process of a runtime.
pub const CHILD_COMMAND: &str = "runtime-child";

/// Loading the libraries takes less than a second from a disk that was read before; a phone's first time is slow.
const START_DEADLINE: Duration = Duration::from_secs(120);

/// A child whose socket is closed is dying; the system may still be writing down its memory.
const DEATH_DEADLINE: Duration = Duration::from_secs(30);

/// What child processes are started from.
#[derive(Clone, Debug)]
pub(in crate::runtime) struct ChildProgram {
    /// The agent's program.
    pub(in crate::runtime) program: PathBuf,
    /// A folder for whatever a runtime may write, instead of the home folder and the current one.
    pub(in crate::runtime) scratch: PathBuf,
    /// Variables that the process finds beside those of the agent.
    pub(in crate::runtime) environment: Vec<(&'static str, OsString)>,
}

/// The child process of one processor, whether it lives or not.
pub(in crate::runtime) struct RuntimeChild {
    program: ChildProgram,
    setup: RuntimeSetup,
    live: Option<LiveChild>,
    /// The number of the last child that was started.
    generation: u64,
    /// The number of the last session that was loaded.
    sessions: u64,
    /// The runtime's version, as the last child that was started said.
    version: String,
}

struct LiveChild {
    process: Child,
    socket: UnixStream,
}

/// Why a child did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    /// The process could not be started, or said that it cannot load the runtime.
    #[error("{0}")]
    NotStarted(String),
    /// The process ended, which the runtime in it brought about.
    #[error("died ({0})")]
    Died(String),
    /// The process was killed, because it took too long.
    #[error("did not answer within {0:?} and was killed")]
    Silent(Duration),
}

impl RuntimeChild {
    pub(in crate::runtime) fn new(program: ChildProgram, setup: RuntimeSetup) -> RuntimeChild {
        RuntimeChild {
            program,
            setup,
            live: None,
            generation: 0,
            sessions: 0,
            version: String::new(),
        }
    }

    /// The number of the child that lives, which is started if there is none. Sessions of another number are lost.
    pub(super) fn generation(&mut self) -> Result<u64, NoAnswer> {
        self.alive()?;
        Ok(self.generation)
    }

    /// Whether the child of this number lives, as far as is known.
    pub(super) fn lives_as(&self, generation: u64) -> bool {
        self.live.is_some() && self.generation == generation
    }

    /// The runtime's version; empty until a child was started.
    pub(in crate::runtime) fn version(&self) -> &str {
        &self.version
    }

    /// The runtime, by its name.
    pub(super) fn runtime(&self) -> &str {
        &self.setup.runtime
    }

    /// Ends the child, if it lives: the next request starts another one, which has no session of this one.
    pub(super) fn end(&mut self) {
        self.live = None;
    }

    /// A number for a session, which no other has.
    pub(super) fn new_session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions
    }

    /// What the child answers to `request`, with the bytes that come with it. It is started if it does not live.
    ///
    /// # Errors
    /// When it cannot be started, dies, or is killed because the answer does not come within `deadline`.
    pub(super) fn ask(
        &mut self,
        request: &ChildRequest,
        payload: &[&[u8]],
        deadline: Duration,
    ) -> Result<(ChildAnswer, Vec<u8>), NoAnswer> {
        let live = self.alive()?;
        let error = match live.ask(request, payload, deadline) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let why = live.end(&error, deadline);
        self.live = None;
        Err(why)
    }

    fn alive(&mut self) -> Result<&mut LiveChild, NoAnswer> {
        let live = match self.live.take() {
            Some(live) => live,
            None => self.started()?,
        };
        Ok(self.live.insert(live))
    }

    fn started(&mut self) -> Result<LiveChild, NoAnswer> {
        let mut live = self.spawned().map_err(|error| {
            let program = self.program.program.display();
            NoAnswer::NotStarted(format!("cannot start `{program} {CHILD_COMMAND}`: {error}"))
        })?;
        self.generation += 1;
        let start = ChildRequest::Start(self.setup.clone());
        match live.ask(&start, &[], START_DEADLINE) {
            Ok((ChildAnswer::Started { version }, _)) => {
                self.version = version;
                Ok(live)
            }
            Ok((ChildAnswer::Failed { cause }, _)) => Err(NoAnswer::NotStarted(cause)),
            Ok((other, _)) => Err(NoAnswer::NotStarted(format!("it answered {other:?}"))),
            Err(error) => Err(live.end(&error, START_DEADLINE)),
        }
    }

    fn spawned(&self) -> io::Result<LiveChild> {
        let ChildProgram {
            program,
            scratch,
            environment,
        } = &self.program;
        std::fs::create_dir_all(scratch)?;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(program);
        command
            .arg(CHILD_COMMAND)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            // Libraries print; what the child has to say goes over the socket, and to standard error.
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .current_dir(scratch)
            .env("HOME", scratch)
            // What gives access to the agent is none of a driver's business.
            .env_remove("LAYERLAB_AGENT_TOKEN")
            .envs(environment.iter().map(|(name, value)| (name, value)));
        Ok(LiveChild {
            process: command.spawn()?,
            socket: ours,
        })
    }
}

impl LiveChild {
    fn ask(
        &mut self,
        request: &ChildRequest,
        payload: &[&[u8]],
        deadline: Duration,
    ) -> io::Result<(ChildAnswer, Vec<u8>)> {
        self.socket.set_write_timeout(Some(deadline))?;
        self.socket.set_read_timeout(Some(deadline))?;
        write_frame(&mut self.socket, request, payload)?;
        read_frame(&mut self.socket)
    }

    /// Makes sure that the process has ended, and says how after `error`.
    fn end(&mut self, error: &io::Error, deadline: Duration) -> NoAnswer {
        use io::ErrorKind::{TimedOut, WouldBlock};
        if matches!(error.kind(), TimedOut | WouldBlock) {
            return NoAnswer::Silent(deadline);
        }
        let begin = Instant::now();
        while begin.elapsed() < DEATH_DEADLINE {
            match self.process.try_wait() {
                Ok(Some(status)) => return NoAnswer::Died(manner(status)),
                Ok(None) => thread::sleep(Duration::from_millis(10)),
                Err(_) => break,
            }
        }
        NoAnswer::Died(error.to_string())
    }
}

impl Drop for LiveChild {
    /// Kills the process, which does not survive its socket anyway, and reaps it.
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How a process ended, such as `signal 11`.
fn manner(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit code {}", status.code().unwrap_or_default()),
    }
}

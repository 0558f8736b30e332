//! What goes wrong with phones over ADB. Each error says whether trying again can help, and if so, what
//! is at fault: the recovery ladder acts on that.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::fault::Fault;
use super::list::State;
use super::text::Printable;
use crate::quarantine::QuarantineError;

/// Why something could not be done over ADB.
#[derive(Debug, thiserror::Error)]
pub enum AdbError {
    /// There is no `adb`.
    #[error(
        "there is no adb program; install the package `adb` or Google's platform-tools, or name it with --adb"
    )]
    NoProgram,
    /// The program cannot be used.
    #[error("{} is no adb that works ({reason}); name another with --adb", program.display())]
    BadProgram {
        /// The path of the program that was tried.
        program: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Our own server does not start.
    #[error("our adb server does not start at {} ({reason})", socket.display())]
    ServerStart {
        /// Where the server was to listen.
        socket: PathBuf,
        /// What it said.
        reason: String,
    },
    /// The server cannot be reached.
    #[error("no adb server answers at {address} ({reason}); start it, or see `layerlab doctor`")]
    ServerGone {
        /// Where it should be.
        address: String,
        /// What the system said.
        reason: String,
    },
    /// An operation did not end in time.
    #[error("{} did not {what} within {:.0} s", Printable(subject), deadline.as_secs_f64())]
    Deadline {
        /// What did not answer in time, in words: a server, a phone or an agent.
        subject: String,
        /// What it should have done.
        what: &'static str,
        /// How long it was given.
        deadline: Duration,
        /// What is at fault.
        fault: Fault,
    },
    /// The server, or the phone through it, refused a request.
    #[error("{} does not {what}: {}", Printable(subject), Printable(message))]
    Refused {
        /// What refused, in words: a server, a phone or an agent.
        subject: String,
        /// What it should have done.
        what: &'static str,
        /// The server's sentence.
        message: String,
        /// What is at fault.
        fault: Fault,
    },
    /// The connection broke in the middle.
    #[error("the connection to {} broke off: {reason}", Printable(subject))]
    Lost {
        /// The other end of the connection, in words: a server, a phone or an agent.
        subject: String,
        /// What the system said about the broken connection.
        reason: String,
        /// What is at fault.
        fault: Fault,
    },
    /// No phone of that name is plugged in.
    #[error(
        "{} is not plugged in; plug it in, or see `layerlab devices`",
        Printable(name)
    )]
    Absent {
        /// The name that the user gave for the phone.
        name: String,
    },
    /// The phone is there and cannot be used.
    #[error("{} cannot be used: {}; {}", Printable(name), state.reason(), state.remedy())]
    Unusable {
        /// The phone's name, as `layerlab devices` lists it.
        name: String,
        /// The state that the server tells, from which reason and remedy follow.
        state: State,
    },
    /// Another phone is where the phone was.
    #[error(
        "{} is another phone now (serial {} instead of {}); plug the first one in again, or start a new run",
        Printable(name),
        Printable(found),
        Printable(expected)
    )]
    Swapped {
        /// The name that both go by.
        name: String,
        /// The serial of the first.
        expected: String,
        /// The serial of the second.
        found: String,
    },
    /// The phone's Android is too old.
    #[error(
        "{} has no {feature}, which Android 7 brought; it cannot be profiled",
        Printable(name)
    )]
    TooOld {
        /// The phone's name, as `layerlab devices` lists it.
        name: String,
        /// What it lacks.
        feature: &'static str,
    },
    /// A tunnel needs an adb server.
    #[error(
        "{} is reached without an adb server, which alone makes tunnels; use one (no --direct), or name an address \
         that the phone reaches by itself",
        Printable(name)
    )]
    NoTunnel {
        /// The phone's name, as `layerlab devices` lists it.
        name: String,
    },
    /// A command on the phone failed.
    #[error(
        "{} cannot {what} (exit status {status}): {}",
        Printable(name),
        Printable(said)
    )]
    Command {
        /// The phone on which the command failed, by its name.
        name: String,
        /// What the command was for.
        what: &'static str,
        /// Its exit status.
        status: u8,
        /// What it said.
        said: String,
    },
    /// What arrived on the phone is not what was sent.
    #[error(
        "{} arrived damaged on {}: {found} instead of {expected}",
        Printable(path),
        Printable(name)
    )]
    Damaged {
        /// The phone on which the file is damaged, by its name.
        name: String,
        /// The file on it.
        path: String,
        /// Its size and hash.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The phone's storage is full.
    #[error(
        "the storage of {} is full: {} of {bytes} bytes does not fit; delete something from /data/local/tmp or elsewhere on the phone",
        Printable(name),
        Printable(path)
    )]
    StorageFull {
        /// The phone whose storage is full, by its name.
        name: String,
        /// The path on the phone that was to be written.
        path: String,
        /// How many bytes were to be stored there.
        bytes: u64,
    },
    /// There is no agent for the phone's processor.
    #[error(
        "there is no agent for {} ({abi}): {reason}; `make agent ABI={abi}` builds it",
        Printable(name)
    )]
    NoAgent {
        /// The phone's name, as `layerlab devices` lists it.
        name: String,
        /// Its processor's binary interface.
        abi: String,
        /// Where it was looked for.
        reason: String,
    },
    /// The agent does not start on the phone.
    #[error("the agent does not start on {}: {}", Printable(name), Printable(said))]
    AgentStart {
        /// The phone's name, as `layerlab devices` lists it.
        name: String,
        /// Its last words.
        said: String,
    },
    /// The agent runs and refuses what it was given.
    #[error("{said}")]
    AgentRefused {
        /// The agent's own sentence, which says what it refuses and why.
        said: String,
    },
    /// Somebody else uses the phone.
    #[error(
        "another layerlab is using {}; wait until it has finished",
        Printable(name)
    )]
    InUse {
        /// The phone's name, as `layerlab devices` lists it.
        name: String,
    },
    /// The phone was put into quarantine.
    #[error(
        "{} is in quarantine until {until}: {}; mend it and run `layerlab quarantine lift {}`",
        Printable(name),
        Printable(reason),
        super::text::quote(name)
    )]
    Quarantined {
        /// The phone's name, as `layerlab devices` lists it.
        name: String,
        /// Why it is left alone, as the quarantine has it.
        reason: String,
        /// When the quarantine ends, as text for a person.
        until: String,
    },
    /// Every rung of the ladder was climbed in vain.
    #[error("{} was given up: {last}", Printable(name))]
    GivenUp {
        /// The phone's name, as `layerlab devices` lists it.
        name: String,
        /// The last failure.
        last: Box<AdbError>,
    },
    /// Layerlab's own files cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Own {
        /// The file or folder of layerlab's state that failed.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl From<QuarantineError> for AdbError {
    fn from(QuarantineError { path, source }: QuarantineError) -> AdbError {
        AdbError::Own { path, source }
    }
}

impl AdbError {
    /// Whether the phone is unplugged, or cannot be talked to: plugging it in again mends that.
    pub fn is_gone(&self) -> bool {
        match self {
            AdbError::GivenUp { last, .. } => last.is_gone(),
            other => matches!(other.fault(), Some(Fault::Away | Fault::Offline)),
        }
    }

    /// What is at fault; `None` when trying again is of no use.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            AdbError::ServerGone { .. } => Some(Fault::Server),
            AdbError::Deadline { fault, .. }
            | AdbError::Refused { fault, .. }
            | AdbError::Lost { fault, .. } => Some(*fault),
            AdbError::Absent { .. } => Some(Fault::Away),
            AdbError::Unusable { state, .. } => state.fault(),
            AdbError::Damaged { .. } => Some(Fault::Shell),
            AdbError::AgentStart { .. } => Some(Fault::Agent),
            AdbError::NoProgram
            | AdbError::BadProgram { .. }
            | AdbError::ServerStart { .. }
            | AdbError::Swapped { .. }
            | AdbError::TooOld { .. }
            | AdbError::NoTunnel { .. }
            | AdbError::Command { .. }
            | AdbError::StorageFull { .. }
            | AdbError::NoAgent { .. }
            | AdbError::AgentRefused { .. }
            | AdbError::InUse { .. }
            | AdbError::Quarantined { .. }
            | AdbError::GivenUp { .. }
            | AdbError::Own { .. } => None,
        }
    }
}

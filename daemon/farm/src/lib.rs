//! Ways to devices. Listing ([`discovery`]) is apart from opening ([`Link`]): a device that cannot be
//! used is still listed, with the reason.

pub mod adb;
mod adb_link;
pub mod agents;
pub mod artifacts;
mod connection;
pub mod discovery;
pub mod folders;
pub mod host_runtimes;
pub mod known_phones;
pub mod local;
pub mod phone_runtimes;
pub mod provision;
pub mod quarantine;
pub mod runtimes;

pub use adb_link::{AdbLink, Ladder, Policy, Rung, RungCounts, Way};
pub use connection::{Connection, ConnectionError, Hello};

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use layerlab_profiles::document::Phone;

/// A way to one device and its agent.
pub trait Link: Send + Sync {
    /// A short name of this kind of link, for the provenance: `local`, `adb`.
    fn kind(&self) -> &'static str;

    /// Puts a model or an evaluation set where the agent looks for it, under its SHA-256. Pushing it again is
    /// free.
    fn push_file(
        &self,
        sha256: &str,
        content: &[u8],
    ) -> impl Future<Output = Result<(), LinkError>> + Send;

    /// The phone that the link leads to, as it describes itself; `None` where it leads to none.
    fn described(&self) -> Option<Phone> {
        None
    }

    /// Connects to the agent and says hello; starts the agent first if it is not running.
    fn connect(&self) -> impl Future<Output = Result<Connection, LinkError>> + Send;
}

/// Why a device cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The agent refuses what it was started with: trying again is of no use.
    #[error("{message}")]
    Refused {
        /// The agent's own sentence.
        message: String,
    },
    /// The agent's program is not there, or cannot be run.
    #[error("cannot start the agent {}: {source}; name it with --agent or put it beside layerlab", program.display())]
    NoAgent {
        /// The path of the program that was to be started.
        program: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The agent ended while it was being started.
    #[error("the agent ended while starting ({status}){}", last_words(said))]
    DiedAtStart {
        /// How it ended.
        status: String,
        /// The last line that it wrote, or nothing.
        said: String,
    },
    /// The agent does not answer.
    #[error("the agent did not {what} within {} s; it may hang: look at the device", deadline.as_secs())]
    Deadline {
        /// What it should have done.
        what: &'static str,
        /// How long it was given.
        deadline: Duration,
    },
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The phone, or the way to it over ADB, failed.
    #[error(transparent)]
    Adb(#[from] adb::AdbError),
    /// A file could not be put onto the device.
    #[error("cannot store {} on the device: {source}; free some storage there", path.display())]
    Storage {
        /// The file on the device.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl LinkError {
    /// Whether the device is gone, so that nothing is wrong with it that plugging it in again does not mend.
    pub fn is_gone(&self) -> bool {
        matches!(self, LinkError::Adb(error) if error.is_gone())
    }

    /// Whether trying again can help.
    pub fn is_transient(&self) -> bool {
        match self {
            LinkError::Refused { .. } | LinkError::NoAgent { .. } | LinkError::Storage { .. } => {
                false
            }
            LinkError::DiedAtStart { .. } | LinkError::Deadline { .. } => true,
            LinkError::Connection(error) => error.is_transient(),
            // The link has climbed its whole recovery ladder already.
            LinkError::Adb(_) => false,
        }
    }
}

fn last_words(said: &str) -> String {
    if said.is_empty() {
        String::new()
    } else {
        format!(": {said}")
    }
}

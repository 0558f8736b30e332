//! Raw readings of a link.

use serde::{Deserialize, Serialize};

use super::LinkDirection;
use crate::units::{Bytes, Nanos};

/// What is sent back and forth once and timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// A few bytes there and back.
    Echo,
    /// Many bytes to the server, and its acknowledgement.
    Upload,
    /// A request, and many bytes from the server.
    Download,
    /// A request to run layers on a few bytes, and what they give.
    Request,
}

impl From<LinkDirection> for Exchange {
    fn from(direction: LinkDirection) -> Exchange {
        match direction {
            LinkDirection::Upload => Exchange::Upload,
            LinkDirection::Download => Exchange::Download,
        }
    }
}

/// How long the server took for the parts of one exchange, by its own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTimes {
    /// From the request's first byte to its last.
    pub receive: Nanos,
    /// From the request's last byte to the beginning of work on it.
    pub queue: Nanos,
    /// Working on it.
    pub compute: Nanos,
    /// From the first byte of the answer's payload until the last was handed to the operating system.
    pub send: Nanos,
}

impl ServerTimes {
    /// All of them together.
    pub fn total(&self) -> Nanos {
        self.receive + self.queue + self.compute + self.send
    }
}

/// One timed exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSample {
    /// What was exchanged.
    pub exchange: Exchange,
    /// Its place in the random order of all exchanges, counted from 0.
    pub index: u32,
    /// The connection that it was timed on, counted from 0.
    pub connection: u32,
    /// The bytes that were sent one way; of an echo, each way; of a request to run layers, the tensors it has. Headers of the
    /// protocol are not counted.
    pub bytes: Bytes,
    /// When the first byte was written, since the measurement began.
    pub started: Nanos,
    /// From the first write until the last byte of the answer had come.
    pub duration: Nanos,
    /// How long the server took for its parts of it.
    pub server: ServerTimes,
}

/// What a saturated link carried in one interval of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceInterval {
    /// Which way.
    pub direction: LinkDirection,
    /// When the interval began, since the trace of this direction began.
    pub start: Nanos,
    /// How long it is.
    pub interval: Nanos,
    /// The bytes that arrived at the other end, and of which this end knew it.
    pub bytes: Bytes,
}

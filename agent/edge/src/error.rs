//! Why a server cannot be measured.

use std::io;
use std::time::Duration;

use crate::frame::FrameError;
use crate::message::MessageError;

/// Why the server did not do what it was asked for. Each message is one sentence with the server and the remedy in it.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// The address is none, or nobody listens there.
    #[error(
        "cannot reach an edge server at {address}: {source}; start `layerlab edge-server` there, or correct the address"
    )]
    NotReached {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// It did not answer in time.
    #[error(
        "the edge server at {address} did not answer within {} s while {doing}; see whether its machine is overloaded \
         or out of reach, and measure again",
        waited.as_secs_f64()
    )]
    Late {
        /// The address.
        address: String,
        /// What was going on.
        doing: &'static str,
        /// How long nothing came.
        waited: Duration,
    },
    /// The connection ended in the middle.
    #[error(
        "the connection to the edge server at {address} was lost while {doing}: {source}; see whether the server still \
         runs, and measure again"
    )]
    Lost {
        /// The address.
        address: String,
        /// What was going on.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It speaks another version of the protocol, or something else.
    #[error("what answers at {address} is no edge server of this layerlab: {source}")]
    Frame {
        /// The address.
        address: String,
        /// What is wrong with what it said.
        source: FrameError,
    },
    /// It speaks the protocol, but not sense.
    #[error(
        "the edge server at {address} broke the protocol while {doing}: {source}; update layerlab there or here"
    )]
    Message {
        /// The address.
        address: String,
        /// What was going on.
        doing: &'static str,
        /// What is wrong with what it said.
        source: MessageError,
    },
    /// It answered something else than what it was asked for.
    #[error(
        "the edge server at {address} answered something else while {doing}; update layerlab there or here"
    )]
    OtherAnswer {
        /// The address.
        address: String,
        /// What was going on.
        doing: &'static str,
    },
    /// What it should be asked does not fit into a frame.
    #[error(
        "the tensors of layers {first} to {last}, or what is said of them, are too large for one request to an edge \
         server: plan with another cut"
    )]
    NoFrame {
        /// The first layer.
        first: u32,
        /// The last.
        last: u32,
    },
    /// A picture does not fit into a frame.
    #[error(
        "a picture, or what is said of it, is too large for one request to an edge server: send it in a smaller form"
    )]
    NoPicture,
    /// It said why it will not.
    #[error("the edge server at {address} refused: {sentence}")]
    Refused {
        /// The address.
        address: String,
        /// What it said.
        sentence: String,
    },
    /// The shaper between the two cannot be started.
    #[error("cannot start the shaper: {source}; measure without a shape, or free a port")]
    Shaper {
        /// What the system said.
        source: io::Error,
    },
    /// It was cancelled.
    #[error("measuring the link to the edge server at {address} was cancelled")]
    Cancelled {
        /// The address.
        address: String,
    },
    /// Connections were lost again and again.
    #[error(
        "the connection to the edge server at {address} was lost {times} times; see what cuts it, and measure again"
    )]
    LostTooOften {
        /// The address.
        address: String,
        /// How often.
        times: u32,
    },
}

impl EdgeError {
    /// Whether a new connection may help.
    pub fn is_lost_connection(&self) -> bool {
        matches!(self, EdgeError::Lost { .. })
    }
}

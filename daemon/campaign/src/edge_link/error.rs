//! Why a link was not measured.

use std::io;
use std::time::Duration;

use layerlab_edge::{EdgeError, TokenFileError};
use layerlab_farm::adb::AdbError;
use layerlab_farm::{ConnectionError, LinkError};
use layerlab_profiles::link::{FitError, LinkKind, OtherKind};

use super::tunnel::TunnelElsewhere;

/// Why a link was not measured. The names of phones are printable.
#[derive(Debug, thiserror::Error)]
pub enum LinkCampaignError {
    /// There is no secret.
    #[error(transparent)]
    Token(#[from] TokenFileError),
    /// The server is on this machine, and was said to be behind a radio.
    #[error(
        "{server} is this machine itself, and no {carrier} is between: say kind usb-tunnel or ethernet, or measure a server \
         elsewhere"
    )]
    Here {
        /// Where the server listens.
        server: String,
        /// What was said to carry the link.
        carrier: LinkKind,
    },
    /// The phone's link cannot be what it was said to be.
    #[error("{server} is not measured as {carrier}: {other}; say so by its kind")]
    OtherKind {
        /// Where the server listens.
        server: String,
        /// What was said to carry the link.
        carrier: LinkKind,
        /// What it is instead.
        other: OtherKind,
    },
    /// No tunnel leads to the server.
    #[error(transparent)]
    Tunnel(#[from] TunnelElsewhere),
    /// The server cannot be measured from here.
    #[error(transparent)]
    Server(#[from] EdgeError),
    /// The server cannot be measured from the phone.
    #[error("{phone}: {message}")]
    ServerOfPhone {
        /// The phone.
        phone: String,
        /// What its agent said.
        message: String,
    },
    /// The phone cannot be reached, or no tunnel can be made.
    #[error(transparent)]
    Phone(#[from] LinkError),
    /// The connection to the agent ended.
    #[error(
        "the agent on {phone} did not finish measuring, for {source}; see whether phone and agent still run, and measure again"
    )]
    Lost {
        /// The phone.
        phone: String,
        /// How it ended.
        source: ConnectionError,
    },
    /// The agent does not speak.
    #[error(
        "the agent on {phone} has said nothing for {} s; see whether the phone is awake, and measure again", silence.as_secs()
    )]
    Silent {
        /// The phone.
        phone: String,
        /// For how long.
        silence: Duration,
    },
    /// The agent has something else to do.
    #[error("the agent on {phone} refused: {message}")]
    Busy {
        /// The phone.
        phone: String,
        /// What it said.
        message: String,
    },
    /// The agent does not measure that.
    #[error("the agent on {phone} refused: {message}; install the agent that came with layerlab")]
    Refused {
        /// The phone.
        phone: String,
        /// What it said.
        message: String,
    },
    /// The agent does not know how to answer.
    #[error(
        "the agent on {phone} said something else than it was asked for; install the agent that came with layerlab"
    )]
    OtherAnswer {
        /// The phone.
        phone: String,
    },
    /// The link is at fault: what was measured of it is no line.
    #[error("the link to {server} cannot be described: {source}")]
    Undescribed {
        /// Where the server listens.
        server: String,
        /// Why.
        source: FitError,
    },
    /// This machine cannot do any more.
    #[error(
        "cannot measure a link on a thread of its own: {source}; end something else, and measure again"
    )]
    Thread {
        /// What the system said.
        source: io::Error,
    },
}

impl LinkCampaignError {
    pub(super) fn phone(error: AdbError) -> LinkCampaignError {
        LinkCampaignError::Phone(error.into())
    }
}

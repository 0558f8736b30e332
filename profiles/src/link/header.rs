//! `link.json`: which link was measured, how, from where and when.

use serde::{Deserialize, Serialize};

use super::{LinkKind, LinkPhone};
use crate::document::{Host, Origin, Program};
use crate::units::{Bytes, Nanos};

/// What the field `format` says.
pub const LINK_FORMAT: &str = "layerlab-link";

/// The version of the format that is written and read.
pub const LINK_VERSION: u32 = 1;

/// All of `link.json` but the hashes of the tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkHeader {
    /// `layerlab-link`.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// What the link is called: in every row of every table.
    pub name: String,
    /// What carries its bytes, as stated by who configured it; `shaped` of every shaped link.
    pub kind: LinkKind,
    /// What carries the bytes of a shaped link.
    pub carrier: LinkKind,
    /// How it was shaped; `null` where it was not.
    pub shape: Option<LinkShape>,
    /// Where the server listens, as it was asked for.
    pub server: String,
    /// How it was measured.
    pub method: LinkMethod,
    /// How many connections were made: those of the method, and one for each that was lost.
    pub connections: u32,
    /// What differs between two measurements of one link.
    pub provenance: LinkProvenance,
}

/// What layerlab's shaper was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkShape {
    /// Bit/s, each way.
    pub bandwidth_bps: u64,
    /// The delay that is added to a round trip, half of it each way.
    pub round_trip_ns: Nanos,
}

/// How a link was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkMethod {
    /// The sizes of the transfers, each way.
    pub transfer_bytes: Vec<Bytes>,
    /// How many transfers there are of each size, each way.
    pub repeats: u32,
    /// How many echoes there are.
    pub echoes: u32,
    /// The bytes of an echo.
    pub echo_bytes: Bytes,
    /// How many connections share the exchanges evenly; one where it is not said, as of all links that were measured before it
    /// could be more.
    #[serde(default = "one")]
    pub connections: u32,
    /// The rest before each exchange; none where it is not said.
    #[serde(default)]
    pub gap_ns: Nanos,
    /// What the order of the exchanges was drawn from.
    pub seed: u64,
    /// The requests to run layers; absent where none were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<RequestMethod>,
}

/// The requests to run layers that were timed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestMethod {
    /// How many there are.
    pub count: u32,
    /// The model's name.
    pub model: String,
    /// The SHA-256 of its file.
    pub model_sha256: String,
    /// The layers that the server ran.
    pub first_layer: u32,
    /// The last of them.
    pub last_layer: u32,
    /// What it ran them on, as its profile calls it.
    pub processor: String,
    /// The bytes of the tensors that went up.
    pub request_bytes: Bytes,
    /// The bytes of those that came down.
    pub answer_bytes: Bytes,
}

fn one() -> u32 {
    1
}

/// From which end a link was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredFrom {
    /// By layerlab itself, on a computer: no phone had part in it.
    Host,
    /// By a phone's agent, which connected to the server itself.
    Phone,
}

/// What differs between two measurements of one link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkProvenance {
    /// When the measurement began, in RFC 3339, UTC.
    pub started_at: String,
    /// When the last sample had come, in RFC 3339, UTC.
    pub finished_at: String,
    /// From which end it was measured.
    pub measured_from: MeasuredFrom,
    /// The program that measured, or had the phone's agent measure.
    pub program: Program,
    /// The server's program, as it calls itself.
    pub server_program: String,
    /// The machine that layerlab ran on.
    pub host: Host,
    /// The phone that measured; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<LinkPhone>,
}

impl LinkHeader {
    /// Where the samples come from: those of a shaped link are simulated.
    pub fn origin_of_samples(&self) -> Origin {
        match self.shape {
            Some(_) => Origin::Simulated,
            None => Origin::Measured,
        }
    }

    /// Where what is derived from them comes from.
    pub fn origin_of_rows(&self) -> Origin {
        match self.shape {
            Some(_) => Origin::DerivedFromSimulated,
            None => Origin::Derived,
        }
    }
}

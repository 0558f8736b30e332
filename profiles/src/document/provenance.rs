//! What differs between two runs of the same measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// What differs between two runs of the same measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// When the first order was sent, in RFC 3339, UTC.
    pub started_at: String,
    /// When the last sample had come, in RFC 3339, UTC.
    pub finished_at: String,
    /// The program on the host that ran the measurement.
    pub host_program: Program,
    /// The program on the device that measured.
    pub device_program: Program,
    /// The identifier of the run.
    pub run: String,
    /// How the daemon reached the device.
    pub link: String,
    /// The operating system of the device, as it reports it.
    pub device_system: String,
    /// The machine that ran the daemon.
    pub host: Host,
}

/// A program by its name and version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// What it is called.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The machine that ran the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its operating system and version.
    pub system: String,
    /// The name of its CPU, as its system gives it.
    pub cpu: String,
    /// How many logical cores it has.
    pub logical_cores: u32,
    /// Its main memory.
    pub memory_bytes: Bytes,
}

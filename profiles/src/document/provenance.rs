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
    /// The phone that was measured, or whose agent played a simulated device; `null` where there was none, or nobody noted it.
    pub phone: Option<Phone>,
    /// Whether the device was fit to be measured when that began; `null` where nobody looked.
    pub fitness: Option<Fitness>,
}

/// A phone, as it describes itself. What it does not tell is `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phone {
    /// Its serial, by which it is known however it is reached.
    pub serial: String,
    /// Who made it.
    pub manufacturer: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Its SoC.
    pub soc: Option<String>,
    /// Its version of Android.
    pub android: Option<String>,
    /// The build of its Android: the fingerprint.
    pub build: Option<String>,
    /// The date of its security patches, such as 2024-05-05.
    pub security_patch: Option<String>,
    /// The binary interface of its processor.
    pub abi: Option<String>,
    /// The health of its battery: `good`, `overheat`, `dead`, `over_voltage`, `failure`, `cold` or `unknown`.
    pub battery_health: Option<String>,
}

/// Whether a device was fit to be measured when that began, as the lab's gates judge it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fitness {
    /// True when it was to be measured even if it was not fit: then blocks count in which it throttled, too.
    pub overridden: bool,
    /// What was wrong with it, such as `battery 51 °C > 37 °C`; empty when it was fit.
    pub not_fit: Vec<String>,
    /// What it did not tell, so that nobody knows whether it was fit in that; empty when it told all that is asked.
    pub not_told: Vec<String>,
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

//! `profile.json`: what was measured, where, how and when.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::design::Design;
use crate::units::{Bytes, Nanos};

/// The value of the field `format` in every profile.
pub const FORMAT: &str = "layerlab-profile";

/// The version of the format that this crate reads and writes.
pub const VERSION: u32 = 3;

/// The runtime of every simulated processor, and of no other.
pub const SIMULATED_RUNTIME: &str = "simulated";

/// Everything about a profile that is not a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Always `layerlab-profile`.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// True when any time or output comes from a simulated processor. Such a profile describes no real phone.
    pub simulated: bool,
    /// The network that was measured.
    pub model: Model,
    /// The device that it was measured on.
    pub device: Device,
    /// The device's processors that have rows in the tables.
    pub processors: Vec<Processor>,
    /// How each processor was measured, in the order of `processors`.
    pub measurements: Vec<Measurement>,
    /// What differs between two runs of the same measurement: times, versions, the host.
    pub provenance: Provenance,
}

impl Header {
    /// Each processor's place in `processors`, by its name; the first of two that share a name.
    pub(crate) fn places(&self) -> BTreeMap<&str, usize> {
        let mut places = BTreeMap::new();
        for (place, processor) in self.processors.iter().enumerate() {
            places.entry(processor.name.as_str()).or_insert(place);
        }
        places
    }
}

/// The network that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The model file's name without its extension.
    pub name: String,
    /// SHA-256 of the model file that the user gave, in hexadecimal.
    pub sha256: String,
    /// The version of ONNX's default operator set.
    pub opset: i64,
    /// How many layers the model has: the rows of `layers.csv`.
    pub layers: u32,
}

/// The device that was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// A short name that a person recognises.
    pub name: String,
    /// True when the device is a description played by the simulator.
    pub simulated: bool,
    /// What the times were read from.
    pub clock: Clock,
}

/// What durations were read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The device's monotonic clock.
    Monotonic,
    /// A simulated clock that is advanced by modelled times; nothing waits.
    SimulatedExact,
    /// The device's monotonic clock around simulated times that were slept.
    SimulatedReal,
}

/// One processor of the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// The name by which the tables refer to it, unique in the profile.
    pub name: String,
    /// What sort of processor it is.
    pub kind: ProcessorKind,
    /// What it computes in.
    pub numerics: Numerics,
    /// The software that runs networks on it.
    pub runtime: String,
    /// That software's version.
    pub runtime_version: String,
    /// Memory for loaded segments, where the processor has a limit of its own.
    pub memory_bytes: Option<Bytes>,
    /// How many threads compute on it, where that is the runtime's choice.
    pub threads: Option<u32>,
    /// The cores that these threads are bound to; absent where the system does not allow it.
    pub pinned_to_cores: Option<Vec<u32>>,
}

/// What sort of processor it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessorKind {
    /// Computes in main memory: entering and leaving it costs nothing.
    Cpu,
    /// Has memory of its own, into which inputs and out of which outputs are moved.
    Accelerator,
}

/// What a processor computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Numerics {
    /// 32-bit floating point.
    F32,
    /// 16-bit floating point.
    F16,
    /// 8-bit integers with a scale per tensor.
    I8,
}

/// How one processor was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The processor, by its name.
    pub processor: String,
    /// Which segments were measured.
    pub design: Design,
    /// How many samples each segment has; with the design adaptive, at least. The whole model may have
    /// more with any design, because it is timed as the sentinel too.
    pub samples_per_segment: u64,
    /// The idle time before each inference.
    pub gap_ns: Nanos,
    /// How layer times came from the samples.
    pub method: Method,
    /// The seed of the order in which segments were run and of their inputs.
    pub seed: u64,
}

/// How a layer time came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The median of the layer's own samples.
    Median,
    /// The papers' differencing of prefix and suffix medians (mlmp §4.2.2).
    Differencing,
    /// Least squares over all measured segments (docs/method.md §4).
    #[serde(rename = "least-squares")]
    Graph,
}

impl Method {
    /// The word in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Method::Median => "median",
            Method::Differencing => "differencing",
            Method::Graph => "least-squares",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What differs between two runs of the same measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// When the first order was sent, in RFC 3339, UTC.
    pub started_at: String,
    /// When the last sample had come, in RFC 3339, UTC.
    pub finished_at: String,
    /// The version of the `layerlab` that ran the measurement.
    pub layerlab_version: String,
    /// The version of the agent on the device.
    pub agent_version: String,
    /// The identifier of the run.
    pub run: String,
    /// How the daemon reached the device.
    pub link: String,
    /// The operating system of the device, as it reports it.
    pub device_system: String,
    /// The machine that ran the daemon.
    pub host: Host,
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

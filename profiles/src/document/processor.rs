//! A processor of the device.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HashedFile;
use crate::processor_kind::ProcessorKind;
use crate::units::Bytes;

/// The runtime of every simulated processor, and of no other.
pub const SIMULATED_RUNTIME: &str = "simulated";

/// ONNX Runtime, as agents name it: it places nodes on providers, of which an accelerator's must be proved.
pub const ONNX_RUNTIME: &str = "onnxruntime";

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
    /// True when its maker's emulator played it: its answers are the processor's own, its times are not.
    pub emulated: bool,
    /// The software that runs networks on it.
    pub runtime: String,
    /// That software's version.
    pub runtime_version: String,
    /// What the software was told that may change times or answers, by name; absent where that was not recorded.
    pub runtime_options: Option<BTreeMap<String, String>>,
    /// The libraries that it was loaded from; none where it is part of the agent, absent where that was not recorded.
    pub runtime_libraries: Option<Vec<HashedFile>>,
    /// Memory for loaded segments, where the processor has a limit of its own.
    pub memory_bytes: Option<Bytes>,
    /// How many threads compute on it, where that is the runtime's choice.
    pub threads: Option<u32>,
    /// The cores that these threads are bound to; absent where the system does not allow it.
    pub pinned_to_cores: Option<Vec<u32>>,
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

//! What an agent says of its device and the device's processors. Profiles have types of their own for the same things,
//! into which these turn.

use std::collections::BTreeMap;

use layerlab_profiles::document;
use layerlab_profiles::units::Bytes;
use serde::{Deserialize, Serialize};

/// The device that an agent runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// A short name that a person recognises.
    pub name: String,
    /// True when the device is a description played by the simulator.
    pub simulated: bool,
    /// What times are read from.
    pub clock: Clock,
}

/// What durations are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The device's monotonic clock.
    Monotonic,
    /// A simulated clock that is advanced by modelled times; nothing waits.
    SimulatedExact,
    /// The device's monotonic clock around simulated times that are slept.
    SimulatedReal,
}

/// A processor that can be measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// The name by which orders refer to it, unique on the device.
    pub name: String,
    /// What sort of processor it is.
    pub kind: ProcessorKind,
    /// What it computes in.
    pub numerics: Numerics,
    /// True when its maker's emulator plays it: its answers are the processor's own, its times are not.
    pub emulated: bool,
    /// The software that runs networks on it.
    pub runtime: String,
    /// That software's version.
    pub runtime_version: String,
    /// What the software was told that may change times or answers, by name; absent if the agent does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_options: Option<BTreeMap<String, String>>,
    /// The libraries that it was loaded from; none where it is part of the agent, absent if the agent does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_libraries: Option<Vec<Library>>,
    /// Memory for loaded segments, where the processor has a limit of its own.
    pub memory_bytes: Option<Bytes>,
    /// How many threads compute on it, where that is the runtime's choice.
    pub threads: Option<u32>,
    /// The cores that these threads are bound to; absent where the system does not allow it.
    pub pinned_to_cores: Option<Vec<u32>>,
}

/// A library of a runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Library {
    /// Its file's name.
    pub name: String,
    /// SHA-256 of its file, in hexadecimal.
    pub sha256: String,
}

/// What sort of processor it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessorKind {
    /// Computes in main memory: entering and leaving it costs nothing.
    Cpu,
    /// Has memory of its own, into which inputs and out of which outputs are moved.
    Accelerator,
}

/// What a processor computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Numerics {
    /// 32-bit floating point.
    F32,
    /// 16-bit floating point.
    F16,
    /// 8-bit integers with a scale per tensor.
    I8,
}

impl From<Device> for document::Device {
    fn from(device: Device) -> Self {
        document::Device {
            name: device.name,
            simulated: device.simulated,
            clock: device.clock.into(),
        }
    }
}

impl From<Clock> for document::Clock {
    fn from(clock: Clock) -> Self {
        match clock {
            Clock::Monotonic => document::Clock::Monotonic,
            Clock::SimulatedExact => document::Clock::SimulatedExact,
            Clock::SimulatedReal => document::Clock::SimulatedReal,
        }
    }
}

impl From<Processor> for document::Processor {
    fn from(processor: Processor) -> Self {
        let libraries = |libraries: Vec<Library>| libraries.into_iter().map(Into::into).collect();
        document::Processor {
            name: processor.name,
            kind: processor.kind.into(),
            numerics: processor.numerics.into(),
            emulated: processor.emulated,
            runtime: processor.runtime,
            runtime_version: processor.runtime_version,
            runtime_options: processor.runtime_options,
            runtime_libraries: processor.runtime_libraries.map(libraries),
            memory_bytes: processor.memory_bytes,
            threads: processor.threads,
            pinned_to_cores: processor.pinned_to_cores,
        }
    }
}

impl From<Library> for document::HashedFile {
    fn from(library: Library) -> Self {
        document::HashedFile {
            name: library.name,
            sha256: library.sha256,
        }
    }
}

impl From<ProcessorKind> for document::ProcessorKind {
    fn from(kind: ProcessorKind) -> Self {
        match kind {
            ProcessorKind::Cpu => document::ProcessorKind::Cpu,
            ProcessorKind::Accelerator => document::ProcessorKind::Accelerator,
        }
    }
}

impl From<Numerics> for document::Numerics {
    fn from(numerics: Numerics) -> Self {
        match numerics {
            Numerics::F32 => document::Numerics::F32,
            Numerics::F16 => document::Numerics::F16,
            Numerics::I8 => document::Numerics::I8,
        }
    }
}

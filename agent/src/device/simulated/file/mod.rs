//! The file that describes a simulated device: TOML as it is written, checked into [`DeviceFile`].
//!
//! Every number's unit is in its name. A file that is wrong gives one sentence that names the file, the
//! field and what to write instead.

mod check;
mod error;
mod gauge;
mod machine;
mod raw;
#[cfg(test)]
mod tests;

use std::path::Path;

use layerlab_profiles::{Bytes, Nanos};
use layerlab_protocol::{Numerics, ProcessorKind};
use serde::Deserialize;

pub use self::error::DeviceFileError;

use self::raw::RawDevice;
use super::gauge::Gauge;
use super::heat::Heat;
use super::machine_noise::MachineNoise;
use super::noise::Noise;

/// A simulated device: a description that has been found to make sense.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceFile {
    /// A short name that a person recognises.
    pub name: String,
    /// How modelled time passes.
    pub clock: ClockKind,
    /// How the device warms up and slows down; `None` if it never does.
    pub heat: Option<Heat>,
    /// What tells how much it draws; `None` if nothing does.
    pub gauge: Option<Gauge>,
    /// How the times of the whole machine move.
    pub machine_noise: MachineNoise,
    /// Its processors, each under a name of its own. At least one.
    pub processors: Vec<SimulatedProcessor>,
}

/// How modelled time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockKind {
    /// A clock of its own is advanced by exactly the modelled times; nothing waits.
    Exact,
    /// The modelled times are slept, and the machine's clock is read around the sleep.
    Real,
}

/// One processor of a simulated device.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedProcessor {
    /// The name that orders and tables use.
    pub name: String,
    /// What it computes in.
    pub arithmetic: Arithmetic,
    /// The ONNX operator types that it does not have: it runs no segment with one of them.
    pub unsupported_operators: Vec<String>,
    /// How fast it computes.
    pub throughput: Throughput,
    /// How fast it reads weights, in bytes per second; `None` if reading them takes no time.
    pub parameter_bytes_per_s: Option<f64>,
    /// The cost of moving tensors in and out; `None` for a CPU, which computes in main memory.
    pub transfer: Option<Transfer>,
    /// Memory for loaded segments; `None` if there is always enough.
    pub memory: Option<Bytes>,
    /// Whether it tells how much memory that is; else one has to find out by loading.
    pub tells_memory: bool,
    /// Where the weights of a unit are kept while it runs; `None` if they fit however long the unit is.
    pub on_chip: Option<OnChip>,
    /// The part of loading a segment that is the same for all segments.
    pub load_fixed: Nanos,
    /// How fast loading moves weights, in bytes per second; `None` if that takes no time.
    pub load_bytes_per_s: Option<f64>,
    /// How its times scatter.
    pub noise: Noise,
    /// What it draws while it computes, and turns into heat.
    pub power_watts: f64,
}

impl SimulatedProcessor {
    /// What sort of processor it is.
    pub fn kind(&self) -> ProcessorKind {
        match self.transfer {
            None => ProcessorKind::Cpu,
            Some(_) => ProcessorKind::Accelerator,
        }
    }
}

/// What a processor computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// 32-bit floats.
    F32,
    /// 16-bit floats; convolutions and matrix products add up in `accumulate`.
    F16 {
        /// What sums are kept in.
        accumulate: Accumulate,
    },
    /// 8-bit integers with one scale per tensor.
    I8,
}

/// What the sums of convolutions and matrix products are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accumulate {
    /// 32-bit floats, rounded to 16 bits at the end.
    F32,
    /// 16-bit floats: every product and every sum is rounded.
    F16,
}

impl Arithmetic {
    /// The arithmetic as profiles name it.
    pub fn numerics(self) -> Numerics {
        match self {
            Arithmetic::F32 => Numerics::F32,
            Arithmetic::F16 { .. } => Numerics::F16,
            Arithmetic::I8 => Numerics::I8,
        }
    }

    /// What a tensor of 32-bit floats takes in the processor's own memory.
    pub fn stored(self, as_f32: Bytes) -> Bytes {
        let shrink = match self {
            Arithmetic::F32 => 1,
            Arithmetic::F16 { .. } => 2,
            Arithmetic::I8 => 4,
        };
        Bytes::from_bytes(as_f32.as_bytes().div_ceil(shrink))
    }
}

/// Floating-point operations per second, by class of operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Floating-point operations per second of convolutions.
    pub convolution: f64,
    /// Fully connected operators: matrix products.
    pub fully_connected: f64,
    /// Floating-point operations per second of poolings.
    pub pooling: f64,
    /// Everything else: activations, normalisations, sums.
    pub other: f64,
}

/// What an accelerator with memory of its own costs apart from computing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// The part of an invocation that is the same for all segments. Half of it counts to entering the
    /// processor, half to leaving it.
    pub fixed: Nanos,
    /// Bytes of 32-bit tensors that enter per second.
    pub input_bytes_per_s: f64,
    /// Bytes of 32-bit tensors that leave per second.
    pub output_bytes_per_s: f64,
    /// What neighbouring layers save when they run as one unit: this fraction of the smaller of their
    /// compute times, at each boundary inside the unit.
    pub fusion_gain: f64,
}

/// Memory close to an accelerator's arithmetic. Weights of a unit that do not fit are fetched again in
/// every inference, so that a long unit takes longer than its parts let expect: times do not add up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnChip {
    /// How much it holds.
    pub memory: Bytes,
    /// How fast weights are fetched that do not fit, in bytes per second.
    pub spill_bytes_per_s: f64,
}

impl DeviceFile {
    /// Reads and checks the file at `path`.
    pub fn open(path: &Path) -> Result<Self, DeviceFileError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => DeviceFile::parse(&file, &text),
            Err(source) => Err(DeviceFileError::Unreadable { file, source }),
        }
    }

    /// Checks a file's text; `file` is the name by which errors call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, DeviceFileError> {
        let raw: RawDevice = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            DeviceFileError::Malformed {
                file: file.to_owned(),
                line: text.as_bytes()[..start]
                    .iter()
                    .filter(|&&byte| byte == b'\n')
                    .count()
                    + 1,
                message: error
                    .message()
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" "),
            }
        })?;
        raw.check(file)
    }
}

//! The seam between the timing loop and the runtimes: an [`Engine`] loads a segment of a network on a
//! processor, the [`Session`] that comes back runs it.

mod cores;
mod input;
pub mod simulated;
mod tensor;
mod tract;

use std::sync::Arc;

use layerlab_model::Network;
use layerlab_profiles::document::{Device, Processor};
use layerlab_profiles::{Bytes, Nanos, Segment};
use layerlab_protocol::Conditions;
use serde::Serialize;

pub use self::input::timing_input;
pub use self::simulated::Simulated;
pub use self::tensor::{Tensor, TensorError};
pub use self::tract::Host;

/// A device's processors and the runtimes that run networks on them.
///
/// An engine is used by one thread at a time. Its sessions may outlive calls to it, but not be used
/// while one of its methods runs.
pub trait Engine: Send {
    /// What the device is and which processors it has.
    fn describe(&self) -> DeviceDescription;

    /// The reading of the device's monotonic clock, counted from when the engine was made. It never
    /// goes back; on a device whose clock is simulated it stands still between calls.
    fn now(&self) -> Nanos;

    /// Lets `gap` pass with all processors idle: sleeps, or advances a simulated clock, and cools.
    fn idle(&mut self, gap: Nanos);

    /// The state of the device now. What it does not tell is absent.
    fn conditions(&mut self) -> Conditions;

    /// Makes layers `segment` of `network` ready to run on `processor`.
    ///
    /// Takes the device's memory until the session is dropped. Loads everything that a run needs, so
    /// that no run pays for it; how long that took is [`Session::load_time`].
    ///
    /// # Errors
    /// [`EngineError::UnknownProcessor`], [`EngineError::OutOfMemory`] if the processor's memory does
    /// not hold the segment beside those already loaded, [`EngineError::Load`] for anything else.
    fn load(
        &mut self,
        processor: &str,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<Box<dyn Session>, EngineError>;
}

/// A segment that is loaded on a processor. Dropping it frees its memory.
pub trait Session: Send {
    /// The processor's memory that the session takes.
    fn memory(&self) -> Bytes;

    /// How long loading took.
    fn load_time(&self) -> Nanos;

    /// Runs the segment once on `inputs`, one tensor for each of its left frontier, in that order.
    ///
    /// # Errors
    /// [`EngineError::Run`] if the inputs do not fit the segment or the runtime fails. NaN and
    /// infinite outputs are no error: overflow is what 16-bit numerics do.
    fn run(&mut self, inputs: &[Tensor], invocation: Invocation) -> Result<Inference, EngineError>;

    /// What [`Session::run`] answers, when nobody asks how long it takes.
    ///
    /// # Errors
    /// As [`Session::run`].
    fn outputs(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, EngineError> {
        Ok(self.run(inputs, Invocation::sample(0, 0))?.outputs)
    }
}

/// What one run of a segment gave.
#[derive(Clone, Debug)]
pub struct Inference {
    /// One tensor for each of the segment's right frontier, in that order.
    pub outputs: Vec<Tensor>,
    /// The clock's reading when the inference started.
    pub started: Nanos,
    /// From the inputs in main memory to the outputs in main memory.
    pub duration: Nanos,
}

/// Names one inference of one run.
///
/// A simulated processor derives its noise from it, so that a measurement that goes on after the agent
/// was killed gives the samples of one that was not interrupted. Real processors ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invocation {
    seed: u64,
    purpose: Purpose,
    index: u64,
    step: u64,
}

/// What an inference is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Sample,
    WarmUp { place: u64 },
    Sentinel { block: u64 },
}

impl Invocation {
    /// The inference that gives sample number `index` of the order with this seed.
    pub fn sample(seed: u64, index: u64) -> Self {
        Invocation {
            seed,
            purpose: Purpose::Sample,
            index,
            step: 0,
        }
    }

    /// The inference that is run number `run` of warming up the segment at `place` of the order with
    /// this seed.
    pub fn warm_up(seed: u64, place: usize, run: u32) -> Self {
        let purpose = Purpose::WarmUp {
            place: place as u64,
        };
        Invocation {
            seed,
            purpose,
            index: u64::from(run),
            step: 0,
        }
    }

    /// The inference that is run number `run` of the sentinels of `block` of the order with this seed.
    pub fn sentinel(seed: u64, block: u32, run: u32) -> Self {
        let purpose = Purpose::Sentinel {
            block: u64::from(block),
        };
        Invocation {
            seed,
            purpose,
            index: u64::from(run),
            step: 0,
        }
    }

    /// The inference that is step number `step` of a chain of segments, all of which go by this name.
    pub fn step(self, step: usize) -> Self {
        Invocation {
            step: step as u64,
            ..self
        }
    }

    /// The name in 40 bytes: different for different inferences, the same on every machine.
    fn bytes(self) -> [u8; 40] {
        let (purpose, of) = match self.purpose {
            Purpose::Sample => (0, 0),
            Purpose::WarmUp { place } => (1, place),
            Purpose::Sentinel { block } => (2, block),
        };
        let mut bytes = [0; 40];
        let words = [self.seed, purpose, of, self.index, self.step];
        for (slot, word) in bytes.chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// What a device is, as an engine knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceDescription {
    /// Its name, whether it is simulated, and its clock.
    pub device: Device,
    /// Its operating system.
    pub system: String,
    /// The processors that can be measured, each under a name of its own.
    pub processors: Vec<Processor>,
}

/// What an engine could not do.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The device has no processor of that name.
    #[error("this device has no processor `{processor}`: choose one of {}", known.join(", "))]
    UnknownProcessor {
        /// The name asked for.
        processor: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The processor's memory does not hold the segment.
    #[error(
        "layers {segment} need {needed} of the memory of {processor}, which has {free} of {capacity} free: \
         use a smaller model or a device with more memory"
    )]
    OutOfMemory {
        /// The processor whose memory is full, by its name.
        processor: String,
        /// The segment that was to be loaded.
        segment: Segment,
        /// What it needs.
        needed: Bytes,
        /// What is left beside the segments that are loaded.
        free: Bytes,
        /// What there is in all.
        capacity: Bytes,
    },
    /// The runtime cannot load the segment.
    #[error("cannot load layers {segment} on {processor}: {cause}")]
    Load {
        /// The processor on which it was to be loaded, by its name.
        processor: String,
        /// The segment that was to be loaded.
        segment: Segment,
        /// What the runtime said.
        cause: String,
    },
    /// The runtime cannot run the segment.
    #[error("cannot run layers {segment} on {processor}: {cause}")]
    Run {
        /// The processor on which it was to run, by its name.
        processor: String,
        /// The segment that was to be run.
        segment: Segment,
        /// What the runtime said.
        cause: String,
    },
}

/// The names of things that an error is about, before it is known which error it will be.
#[derive(Clone, Debug)]
struct Subject {
    processor: String,
    segment: Segment,
}

impl Subject {
    fn cannot_load(&self, cause: impl std::fmt::Display) -> EngineError {
        let Subject { processor, segment } = self.clone();
        EngineError::Load {
            processor,
            segment,
            cause: one_line(cause),
        }
    }

    fn cannot_run(&self, cause: impl std::fmt::Display) -> EngineError {
        let Subject { processor, segment } = self.clone();
        EngineError::Run {
            processor,
            segment,
            cause: one_line(cause),
        }
    }
}

/// A runtime's message with its chain of causes, without the line breaks some of them contain.
fn one_line(cause: impl std::fmt::Display) -> String {
    format!("{cause:#}")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The operating system of the machine that the agent runs on.
fn system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let text = format!(
        "{} {} {}",
        std::env::consts::OS,
        release.trim(),
        std::env::consts::ARCH
    );
    one_line(text)
}

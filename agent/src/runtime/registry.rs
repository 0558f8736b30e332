//! The runtimes of a real machine. A simulated device has one of its own.

use layerlab_profiles::document::ONNX_RUNTIME;
use layerlab_protocol::{Processor, ProcessorKind};

use super::onnxruntime::{self, OnnxRuntimeError};
use super::process::{self, Engine, RuntimeSetup};
use super::setup::RuntimesSetup;
use super::{DuplicateProcessor, Runtime, Runtimes, tract};
use crate::device::CoreSet;

/// Makes a runtime ready on a machine that has these cores, of which the first set is all of them; `None` where the
/// machine does not have the runtime.
type RuntimeOffer =
    fn(&[CoreSet], &RuntimesSetup) -> Result<Option<Box<dyn Runtime>>, OnnxRuntimeError>;

/// One line for each runtime.
const RUNTIMES: &[RuntimeOffer] = &[
    |cores, setup| Ok(tract::offered(cores, setup)), // always there, on the CPU
    onnxruntime::offered,                            // where the agent is told where its library is
];

/// Why the runtimes of a machine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Two of them offer a processor of the same name.
    #[error(transparent)]
    Duplicate(#[from] DuplicateProcessor),
    /// The agent was told of a runtime that cannot be used.
    #[error(transparent)]
    OnnxRuntime(#[from] OnnxRuntimeError),
    /// A processor to be treated as an accelerator is no CPU of any runtime's.
    #[error(
        "--as-accelerator takes a CPU, not `{given}`: choose one of {known}; those of ONNX Runtime need --onnxruntime"
    )]
    NoSuchCpu {
        /// The name given.
        given: String,
        /// The names that there are.
        known: String,
    },
}

/// The runtimes that a machine with these cores has.
///
/// # Errors
/// When one that the agent was told of cannot be used, two of them offer a processor of the same name, or none offers the CPU
/// that is to be offered as an accelerator.
pub fn runtimes(cores: &[CoreSet], setup: &RuntimesSetup) -> Result<Runtimes, RegistryError> {
    let mut runtimes = Vec::new();
    for offer in RUNTIMES {
        runtimes.extend(offer(cores, setup)?);
    }
    let runtimes = Runtimes::new(runtimes)?;
    if let Some(name) = &setup.onnxruntime.as_accelerator {
        refuse_unless_offered(name, &runtimes)?;
    }
    Ok(runtimes)
}

/// Refuses a name that no processor which computes in main memory has.
fn refuse_unless_offered(given: &str, runtimes: &Runtimes) -> Result<(), RegistryError> {
    let is_cpu = |one: &&Processor| one.name == given || one.kind == ProcessorKind::Cpu;
    let names = runtimes
        .processors()
        .filter(is_cpu)
        .map(|one| one.name.as_str());
    let known: Vec<&str> = names.collect();
    match known.contains(&given) {
        true => Ok(()),
        false => Err(RegistryError::NoSuchCpu {
            given: given.to_owned(),
            known: known.join(", "),
        }),
    }
}

/// What the child process of a runtime does, which the agent starts: it loads the runtime that it is told, and runs segments
/// until the agent is gone.
pub fn serve_runtime() -> ! {
    process::serve(engine)
}

fn engine(setup: &RuntimeSetup) -> Result<Box<dyn Engine>, String> {
    match setup.runtime.as_str() {
        tract::TRACT => tract::start(&setup.setup),
        ONNX_RUNTIME => onnxruntime::start(&setup.setup),
        other => Err(format!("this agent has no runtime `{other}`")),
    }
}

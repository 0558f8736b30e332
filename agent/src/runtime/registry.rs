//! The runtimes of a real machine. A simulated device has one of its own.

use super::onnxruntime::{OnnxRuntimeError, OnnxRuntimeSetup};
use super::{DuplicateProcessor, Runtime, Runtimes};
use crate::device::CoreSet;

/// Makes a runtime ready on a machine that has these cores, of which the first set is all of them; `None` where the
/// machine does not have the runtime.
type RuntimeOffer =
    fn(&[CoreSet], &OnnxRuntimeSetup) -> Result<Option<Box<dyn Runtime>>, OnnxRuntimeError>;

/// One line for each runtime.
const RUNTIMES: &[RuntimeOffer] = &[
    |cores, _| Ok(super::tract::offered(cores)), // always there, on the CPU
    super::onnxruntime::offered,                 // where the agent is told where its library is
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
}

/// The runtimes that a machine with these cores has.
///
/// # Errors
/// When one that the agent was told of cannot be used, or two of them offer a processor of the same name.
pub fn runtimes(cores: &[CoreSet], setup: &OnnxRuntimeSetup) -> Result<Runtimes, RegistryError> {
    let mut runtimes = Vec::new();
    for offer in RUNTIMES {
        runtimes.extend(offer(cores, setup)?);
    }
    Ok(Runtimes::new(runtimes)?)
}

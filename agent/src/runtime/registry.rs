//! The runtimes of a real machine. A simulated device has one of its own.

use super::{DuplicateProcessor, Runtime, Runtimes};
use crate::device::CoreSet;

/// Makes a runtime ready on a machine that has these cores, of which the first set is all of them; `None` where the
/// machine does not have the runtime.
type RuntimeOffer = fn(&[CoreSet]) -> Option<Box<dyn Runtime>>;

/// One line for each runtime.
const RUNTIMES: &[RuntimeOffer] = &[
    super::tract::offered, // always there, on the CPU
];

/// The runtimes that a machine with these cores has.
///
/// # Errors
/// When two of them offer a processor of the same name.
pub fn runtimes(cores: &[CoreSet]) -> Result<Runtimes, DuplicateProcessor> {
    Runtimes::new(RUNTIMES.iter().filter_map(|offer| offer(cores)).collect())
}

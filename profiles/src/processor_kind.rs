//! Processors that compute in main memory, and those that do not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What sort of processor it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessorKind {
    /// Computes in main memory: entering and leaving it costs nothing.
    Cpu,
    /// Has memory of its own, into which inputs and out of which outputs are moved.
    Accelerator,
}

//! What the child process of one processor is told.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::provider::Provider;
use crate::device::CoreSet;

/// What ONNX Runtime is loaded for: one processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OnnxSetup {
    /// ONNX Runtime's library.
    pub(super) library: PathBuf,
    /// What computes.
    pub(super) provider: Provider,
    /// The cores that the child's threads are bound to, and of which each has one thread.
    pub(super) cores: CoreSet,
    /// Whether copying inputs into the runtime's own tensors and outputs out of them is part of an inference's time,
    /// as it is on an accelerator.
    pub(super) copies_count: bool,
}

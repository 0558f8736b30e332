//! Why an order ended before its last sample, as whoever works on it says it.

use layerlab_protocol::{Failure, FailureKind};

use crate::files::FilesError;
use crate::queue::Abandoned;
use crate::runtime::RuntimeError;

/// Why an order ended before its last sample.
pub(crate) enum Ended {
    /// It cannot be done.
    Failed(Failure),
    /// Nobody wants it any more.
    Abandoned,
}

/// The end of an order that cannot be done: one sentence that names the thing and the remedy.
pub(crate) fn failed(kind: FailureKind, message: String) -> Ended {
    Ended::Failed(Failure { kind, message })
}

impl From<Abandoned> for Ended {
    fn from(_: Abandoned) -> Self {
        Ended::Abandoned
    }
}

impl From<FilesError> for Ended {
    fn from(error: FilesError) -> Self {
        failed(FailureKind::Model, error.to_string())
    }
}

impl From<RuntimeError> for Ended {
    fn from(error: RuntimeError) -> Self {
        let kind = match error {
            RuntimeError::UnknownProcessor { .. } => FailureKind::Order,
            RuntimeError::OutOfMemory { .. } => FailureKind::OutOfMemory,
            RuntimeError::Unsupported { .. } => FailureKind::Unsupported,
            RuntimeError::Load { .. } => FailureKind::Model,
            RuntimeError::Run { .. } => FailureKind::Device,
        };
        failed(kind, error.to_string())
    }
}

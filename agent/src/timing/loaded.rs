//! A segment that is loaded to be timed, or why it is not.

use std::sync::Arc;

use layerlab_profiles::Segment;

use crate::ended::Ended;
use crate::queue::Abandoned;
use crate::runtime::{RuntimeError, Session, Tensor};

/// A segment that is loaded, with the input that it is timed with.
pub(super) struct LoadedSegment {
    /// Its place in the order; `None` for a sentinel that is nothing else.
    pub(super) place: Option<usize>,
    pub(super) segment: Segment,
    /// `None` where it is loaded for each run.
    pub(super) session: Option<Box<dyn Session>>,
    pub(super) inputs: Arc<[Tensor]>,
}

/// Why a segment was not loaded.
pub(super) enum NotLoaded {
    /// Memory is full.
    Full(RuntimeError),
    /// The processor cannot run it.
    Unsupported(RuntimeError),
    /// Nothing more of the order can be loaded.
    Ended(Ended),
}

impl From<RuntimeError> for NotLoaded {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::OutOfMemory { .. } => NotLoaded::Full(error),
            RuntimeError::Unsupported { .. } => NotLoaded::Unsupported(error),
            error => NotLoaded::Ended(error.into()),
        }
    }
}

impl From<Abandoned> for NotLoaded {
    fn from(abandoned: Abandoned) -> Self {
        NotLoaded::Ended(abandoned.into())
    }
}

impl From<NotLoaded> for Ended {
    fn from(why: NotLoaded) -> Self {
        match why {
            NotLoaded::Full(error) | NotLoaded::Unsupported(error) => error.into(),
            NotLoaded::Ended(ended) => ended,
        }
    }
}

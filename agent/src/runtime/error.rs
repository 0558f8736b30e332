//! What a runtime could not do: one sentence each.

use layerlab_profiles::{Bytes, Segment};

/// What a runtime could not do.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The device has no processor of that name.
    #[error("this device has no processor `{processor}`: choose one of {}", known.join(", "))]
    UnknownProcessor {
        /// The name asked for.
        processor: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The processor cannot run the segment at all.
    #[error("{processor} cannot run layers {segment}: {reason}: place them on another processor")]
    Unsupported {
        /// The processor that cannot run it, by its name.
        processor: String,
        /// The segment that it cannot run.
        segment: Segment,
        /// Why it cannot.
        reason: Unsupported,
    },
    /// The processor's memory does not hold the segment.
    #[error(
        "layers {segment} need {needed} of the memory of {processor}, which {}: use a smaller model or a device with more \
         memory", room(*.free, *.capacity)
    )]
    OutOfMemory {
        /// The processor whose memory is full, by its name.
        processor: String,
        /// The segment that was to be loaded.
        segment: Segment,
        /// What it needs.
        needed: Bytes,
        /// What is left beside the segments that are loaded; `None` where the processor does not tell.
        free: Option<Bytes>,
        /// What there is in all; `None` likewise.
        capacity: Option<Bytes>,
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

/// What there is of a memory that does not hold a segment.
fn room(free: Option<Bytes>, capacity: Option<Bytes>) -> String {
    match (free, capacity) {
        (Some(free), Some(capacity)) => format!("has {free} of {capacity} free"),
        _ => "does not hold that".to_owned(),
    }
}

/// Why a processor cannot run a segment, such as an operator that it does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(String);

impl Unsupported {
    /// The reason, for a person: what of the segment the processor lacks.
    pub fn because(reason: impl std::fmt::Display) -> Self {
        Unsupported(one_line(reason))
    }
}

/// The names of things that an error is about, before it is known which error it will be.
#[derive(Clone, Debug)]
pub(crate) struct SegmentOnProcessor {
    pub(crate) processor: String,
    pub(crate) segment: Segment,
}

impl SegmentOnProcessor {
    pub(crate) fn cannot_load(&self, cause: impl std::fmt::Display) -> RuntimeError {
        let SegmentOnProcessor { processor, segment } = self.clone();
        RuntimeError::Load {
            processor,
            segment,
            cause: one_line(cause),
        }
    }

    pub(crate) fn cannot_run(&self, cause: impl std::fmt::Display) -> RuntimeError {
        let SegmentOnProcessor { processor, segment } = self.clone();
        RuntimeError::Run {
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

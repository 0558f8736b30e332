//! Why samples make no profile.

use super::{Method, MovingRefusal};
use crate::derive::graph::GraphError;
use crate::derive::{DifferencingError, MissingLayer};
use crate::design::{Design, choice};
use crate::segment::Segment;

/// Why samples make no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The header and the layer table are of different models.
    #[error("the header speaks of {header} layers and the layer table has {table}")]
    LayerCount {
        /// Layers according to the header.
        header: u32,
        /// Rows of the layer table.
        table: usize,
    },
    /// There are samples or other measurements of a processor that the header does not name.
    #[error(
        "there are measurements of the processor `{processor}`, which the header does not name"
    )]
    UnknownProcessor {
        /// The processor that the measurements name.
        processor: String,
    },
    /// The header does not say how a processor was measured.
    #[error("the header does not say how the processor `{processor}` was measured")]
    NoMeasurement {
        /// The processor that the header names.
        processor: String,
    },
    /// The times are said to rest on what probes say of how the costs of cuts divide, and they do not say it.
    #[error("processor `{processor}`: its probes do not say how the costs of cuts divide")]
    NoProbes {
        /// The processor.
        processor: String,
    },
    /// The costs of cuts are to divide as probes say from now on, and they do not say it.
    #[error(
        "processor `{processor}`: its probes do not say how the costs of cuts divide, for {refusal}; \
         `--method graph` derives its times without them"
    )]
    ProbesRefuse {
        /// The processor.
        processor: String,
        /// Why they do not.
        refusal: MovingRefusal,
    },
    /// Layer times do not follow from this design by this method.
    #[error(
        "processor `{processor}`: the method {method} does not apply to the design {design}, \
         which goes with {}",
        choice(design.methods().iter().map(|method| method.name()))
    )]
    Method {
        /// The name of the processor.
        processor: String,
        /// Which segments were measured.
        design: Design,
        /// How layer times were to be derived.
        method: Method,
    },
    /// A design that shows no transfers was used where there are transfers.
    #[error(
        "processor `{processor}` is an accelerator, whose transfers the design {design} cannot show; \
         measure with {}",
        Design::for_accelerators()
    )]
    TransfersHidden {
        /// The name of the processor.
        processor: String,
        /// The design that was used.
        design: Design,
    },
    /// Differencing lacks samples.
    #[error("processor `{processor}`: {reason}")]
    Differencing {
        /// The name of the processor that lacks samples.
        processor: String,
        /// The segment that it lacks.
        reason: DifferencingError,
    },
    /// Least squares lacks samples.
    #[error("processor `{processor}`: {reason}")]
    Graph {
        /// The name of the processor that lacks samples.
        processor: String,
        /// What it lacks.
        reason: GraphError,
    },
    /// A layer pass lacks samples.
    #[error("processor `{processor}`: {reason}")]
    Median {
        /// The name of the processor that lacks samples.
        processor: String,
        /// The layer that it lacks.
        reason: MissingLayer,
    },
    /// Segments were measured that the processor is said not to run.
    #[error(
        "layers {segment} were measured on the processor `{processor}`, which is said not to run all of them"
    )]
    RanUnsupported {
        /// The name of the processor.
        processor: String,
        /// The first such segment.
        segment: Segment,
    },
    /// The device was kept busy, and did not become steady.
    #[error(
        "`{processor}` did not become steady while it was kept busy; keep it busy for longer (--steady)"
    )]
    NotSteady {
        /// The name of the processor.
        processor: String,
    },
    /// The processor was in two states, and in neither for long enough.
    #[error(
        "`{processor}` was in two states: {usual} visits in one, {other} in the other, in which everything takes \
         {longer_percent} % {how}; intervals need three visits in one state: close what else runs on the device and \
         run again, or with more --visits"
    )]
    States {
        /// The name of the processor.
        processor: String,
        /// How many visits there were in the state that had more of them.
        usual: usize,
        /// How many there were in the other.
        other: usize,
        /// By how much the other state differs, in per cent.
        longer_percent: String,
        /// Whether everything takes more or less there.
        how: &'static str,
    },
}

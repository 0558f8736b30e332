//! Plans and profiles as documents for people and for other people's planners.

mod csv;
mod dnn_partitioning;
mod json;
mod least_energy;
mod source;
mod verified;

pub use csv::{outcomes_csv, outcomes_csv_with_energy, tried_csv};
pub use dnn_partitioning::dnn_partitioning;
pub use json::{FORMAT, VERSION, outcomes_json, time_plan_json};
pub use least_energy::energy_plan_json;
pub use source::Source;
pub use verified::{VerifiedPlacement, VerifiedPlacements};

use layerlab_profiles::Segment;

/// Why something cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// A table could not be written.
    #[error("the table cannot be written: {0}")]
    Csv(#[from] ::csv::Error),
    /// A document could not be written.
    #[error("the document cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    /// The table's bytes are incomplete.
    #[error("the table cannot be written: {0}")]
    Unfinished(String),
    /// The layer table and the times are of different models.
    #[error(
        "the layer table has {layers} layers and the times are of {times}; both must be of one model"
    )]
    Layers {
        /// Rows of the layer table.
        layers: usize,
        /// Layers with times.
        times: usize,
    },
    /// The format has CPUs and one kind of accelerator.
    #[error(
        "the dnn-partitioning format has a CPU and one accelerator, and there are {processors} processors; name two"
    )]
    TwoProcessors {
        /// How many processors there are.
        processors: usize,
    },
    /// The format knows what single nodes are supported on, not how many of them together.
    #[error(
        "the accelerator cannot run layers {segment} as one unit, which the dnn-partitioning format cannot say; \
         export plans instead"
    )]
    Together {
        /// The layers that cannot run as one unit.
        segment: Segment,
    },
    /// The format has one cost for both directions.
    #[error(
        "between layers {before} and {after} moving out and moving in differ; the dnn-partitioning format has one \
         cost for both, so derive the times by differencing or least squares"
    )]
    Asymmetric {
        /// The layer before the cut.
        before: usize,
        /// The layer after it.
        after: usize,
    },
}

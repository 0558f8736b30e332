//! Why nothing could be planned at all.

use crate::goal::GoalError;

/// Why nothing could be planned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The goal makes no sense for the model.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A beam of nothing finds nothing.
    #[error("mlmp-paper is to keep 0 triples per step; keep at least 1")]
    KeepsNothing,
    /// K is the papers' beam's.
    #[error(
        "{algorithm} keeps no triples, so that there is nothing to say how many; K is of mlmp-paper"
    )]
    KeepsNoTriples {
        /// The algorithm's name.
        algorithm: &'static str,
    },
    /// There are too many placements to try them all.
    #[error("the model has {layers} layers; all placements are tried up to {most}")]
    TooManyLayers {
        /// The model's layers.
        layers: usize,
        /// The most layers with so many processors.
        most: usize,
    },
    /// The algorithm is the papers', whose placements are on two processors.
    #[error(
        "{algorithm} plans for a CPU and one accelerator, and there are {processors} processors; name two, or use \
         {others}"
    )]
    TwoProcessors {
        /// The algorithm's name.
        algorithm: &'static str,
        /// The algorithms that take so many, by name.
        others: String,
        /// How many processors there are.
        processors: usize,
    },
}

//! What schedules are compared by.

use layerlab_profiles::Nanos;
use serde::{Deserialize, Serialize};

use super::super::error::VideoError;

/// What a schedule is to have most of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VideoGoal {
    /// The mean accuracy, where every frame must be answered (fastva Eq. 1).
    Accuracy,
    /// Answered frames per second plus `weight` times their mean accuracy, where frames may be skipped (fastva Eq. 9).
    Utility {
        /// α, the frames per second that an accuracy of 1 is worth.
        weight: f64,
    },
}

/// fastva Eq. 9: `answered` of `frames` frames, a frame each `interval`, whose accuracies sum to `accuracy_sum`; 0 where
/// nothing is answered.
pub fn utility(
    weight: f64,
    interval: Nanos,
    frames: usize,
    answered: usize,
    accuracy_sum: f64,
) -> f64 {
    if answered == 0 {
        return 0.0;
    }
    let seconds = frames as f64 * interval.as_nanos() as f64 / 1e9;
    answered as f64 / seconds + weight * accuracy_sum / answered as f64
}

/// Refuses a weight that makes no order of utilities.
pub(super) fn refuse_weight(weight: f64) -> Result<(), VideoError> {
    match weight.is_finite() && weight >= 0.0 {
        true => Ok(()),
        false => Err(VideoError::Weight(weight)),
    }
}

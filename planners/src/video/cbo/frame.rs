//! A frame that the NPU has answered.

use layerlab_profiles::{Bytes, Nanos};

use super::super::error::{VideoError, refuse_unless_fraction};
use super::conditions::EdgeConditions;

/// A frame that the NPU has answered and that may be sent as well.
#[derive(Clone, Debug, PartialEq)]
pub struct AnsweredFrame {
    /// When the camera delivered it, on the caller's clock (t^arr).
    pub arrival: Nanos,
    /// The probability that the NPU's answer is right: its calibrated confidence (p, which is also A_p^npu).
    pub confidence: f64,
    /// Its bytes in each resolution, S(I, r).
    pub sizes: Vec<Bytes>,
}

/// Refuses frames that do not belong to `conditions`.
pub(super) fn refuse_unfit(
    conditions: &EdgeConditions,
    frames: &[AnsweredFrame],
) -> Result<(), VideoError> {
    for (place, frame) in frames.iter().enumerate() {
        refuse_unless_fraction(
            || format!("the confidence of frame {place}"),
            frame.confidence,
        )?;
        if frame.sizes.len() != conditions.accuracies().len() {
            return Err(VideoError::Resolutions {
                what: format!("frame {place}"),
                found: frame.sizes.len(),
                resolutions: conditions.accuracies().len(),
            });
        }
    }
    Ok(())
}

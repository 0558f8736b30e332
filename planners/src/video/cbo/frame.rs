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
    /// The share of right answers of the server to frames like this one, in each resolution, where it is known; else that to all
    /// frames counts, A_r^o.
    pub server: Option<Vec<f64>>,
}

impl AnsweredFrame {
    /// The chance that the server is right about it in each resolution.
    pub(super) fn accuracies<'a>(&'a self, conditions: &'a EdgeConditions) -> &'a [f64] {
        self.server.as_deref().unwrap_or(conditions.accuracies())
    }
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
        let resolutions = conditions.accuracies().len();
        for found in [frame.sizes.len(), frame.accuracies(conditions).len()] {
            if found != resolutions {
                return Err(VideoError::Resolutions {
                    what: format!("frame {place}"),
                    found,
                    resolutions,
                });
            }
        }
        for &accuracy in frame.accuracies(conditions) {
            let what = || format!("the server's accuracy for frame {place}");
            refuse_unless_fraction(what, accuracy)?;
        }
    }
    Ok(())
}

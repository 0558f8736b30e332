//! Algorithm 1 of cbo: which of the frames that the NPU has answered to send, at what resolution.

use layerlab_profiles::Nanos;
use serde::{Deserialize, Serialize};

use super::super::error::VideoError;
use super::conditions::EdgeConditions;
use super::frame::{AnsweredFrame, refuse_unfit};
use super::offload_plan::OffloadPlan;
use super::sending::best_in_order;

/// In which order chosen frames are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SendingOrder {
    /// The surest first, as the paper sorts its frames (§IV-D).
    Paper,
    /// The earliest deadline first, which is the earliest arrival: no other order is better.
    EarliestDeadline,
}

/// The plan of the largest improvement among those that send `frames` in that `order`, the link being idle from `now` on, as
/// on the frames' clock.
///
/// Starts with the pair (now, 0), where the paper has (0, 0). Once the first frame is sent, plan again.
pub fn plan_offloads(
    conditions: &EdgeConditions,
    frames: &[AnsweredFrame],
    now: Nanos,
    order: SendingOrder,
) -> Result<OffloadPlan, VideoError> {
    refuse_unfit(conditions, frames)?;
    let mut places: Vec<usize> = (0..frames.len()).collect();
    match order {
        SendingOrder::Paper => {
            let confidence = |place: &usize| frames[*place].confidence;
            places.sort_by(|one, other| confidence(other).total_cmp(&confidence(one)));
        }
        SendingOrder::EarliestDeadline => places.sort_by_key(|&place| frames[place].arrival),
    }
    Ok(best_in_order(conditions, frames, &places, now))
}

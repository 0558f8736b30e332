//! The optimum of cbo §IV-C, for which all frames are known beforehand.

use layerlab_profiles::Nanos;

use super::super::error::VideoError;
use super::conditions::EdgeConditions;
use super::frame::{AnsweredFrame, refuse_unfit};
use super::offload_plan::OffloadPlan;
use super::sending::best_in_order;

/// The plan of the largest improvement for all `frames` of a video, given in the order of their arrival, the link being idle
/// from 0 on.
///
/// The least-cost path of the solution graph: an NPU node costs the negative of the accuracy there and has no time window, and
/// the window of a sending includes T^o + L. No threshold limits what is chosen, so that no policy with one is better.
pub fn optimal(
    conditions: &EdgeConditions,
    frames: &[AnsweredFrame],
) -> Result<OffloadPlan, VideoError> {
    refuse_unfit(conditions, frames)?;
    let out_of_order = |pair: &[AnsweredFrame]| pair[1].arrival < pair[0].arrival;
    if let Some(place) = frames.windows(2).position(out_of_order) {
        return Err(VideoError::Order { frame: place + 1 });
    }
    let order: Vec<usize> = (0..frames.len()).collect();
    Ok(best_in_order(conditions, frames, &order, Nanos::ZERO))
}

//! The baseline Server: every frame is sent (cbo §V-A).

use layerlab_profiles::{Bytes, Nanos};

use super::super::error::VideoError;
use super::conditions::EdgeConditions;

/// The resolution of the highest accuracy in which a frame of `sizes` has left before the next one arrives, an `interval`
/// later, and is answered in time; the first of several. None if there is no such resolution: the frame is not answered.
///
/// Nothing runs on the phone first, so that a frame is sent at its arrival.
pub fn server_resolution(
    conditions: &EdgeConditions,
    interval: Nanos,
    sizes: &[Bytes],
) -> Result<Option<usize>, VideoError> {
    let accuracies = conditions.accuracies();
    if sizes.len() != accuracies.len() {
        return Err(VideoError::Resolutions {
            what: "the frame".to_owned(),
            found: sizes.len(),
            resolutions: accuracies.len(),
        });
    }
    let mut best: Option<usize> = None;
    for (resolution, &size) in sizes.iter().enumerate() {
        let sent = conditions.sent_in_time(Nanos::ZERO, size, Nanos::ZERO);
        let fits = sent.is_some_and(|sent| sent <= interval);
        if fits && best.is_none_or(|best| accuracies[resolution] > accuracies[best]) {
            best = Some(resolution);
        }
    }
    Ok(best)
}

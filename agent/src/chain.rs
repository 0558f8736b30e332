//! The parts of a placement, one after the other.

use layerlab_profiles::Segment;
use layerlab_protocol::FailureKind;

use crate::ended::{Ended, failed};

/// Refuses segments of which not each begins where the one before ends, the first with layer 1 and the last with the model.
pub(crate) fn refuse_unless_chain(segments: &[Segment], layers: u32) -> Result<(), Ended> {
    match Segment::chained(segments.iter().copied()) == Some(layers) {
        true => Ok(()),
        false => Err(failed(
            FailureKind::Order,
            format!(
                "the parts of the order's placement are not layers 1..={layers} one after the other"
            ),
        )),
    }
}

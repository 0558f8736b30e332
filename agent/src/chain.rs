//! The parts of a placement, one after the other.

use layerlab_profiles::Segment;
use layerlab_protocol::FailureKind;

use crate::ended::{Ended, failed};

/// Refuses segments of which not each begins where the one before ends, the first with layer 1 and the last with the model.
pub(crate) fn refuse_unless_chain(segments: &[Segment], layers: u32) -> Result<(), Ended> {
    match is_chain(segments, layers) {
        true => Ok(()),
        false => Err(failed(
            FailureKind::Order,
            format!(
                "the parts of the order's placement are not layers 1..={layers} one after the other"
            ),
        )),
    }
}

fn is_chain(segments: &[Segment], layers: u32) -> bool {
    let mut next = 1;
    for segment in segments {
        if segment.first() != next {
            return false;
        }
        next = segment.last() + 1;
    }
    next == layers + 1
}

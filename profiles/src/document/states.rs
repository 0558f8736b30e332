//! What becomes of a measurement during which a processor had two states: the blocks of the one that it was in less often
//! do not count (docs/method.md §5).

use std::collections::BTreeMap;

use super::observed::visit_samples;
use super::{Block, BuildError, Header, Measurement, Rejected, Sample, Unsupported, supported};
use crate::derive::graph::{
    FEWEST_VISITS, TwoStates, Visit, VisitSamples, two_states, visit_speeds,
};
use crate::segment::Segment;

/// Of what was measured, which samples and blocks count and which do not.
pub(super) struct Counted<'a> {
    pub(super) samples: &'a mut Vec<Sample>,
    pub(super) rejected: &'a mut Vec<Sample>,
    pub(super) blocks: &'a mut [Block],
    pub(super) unsupported: &'a [Unsupported],
}

/// Moves the samples of the less usual state of each processor to the rejected ones and marks its blocks, again and again
/// until what counts is of one state. All blocks count on, and `check` says so, where layer times or all intervals would be
/// lost with those of the other state. Refuses a measurement of which no state had three visits.
pub(super) fn leave_out_other_states(
    header: &Header,
    counted: &mut Counted<'_>,
) -> Result<(), BuildError> {
    for measurement in &header.measurements {
        while let Some(states) = states(measurement, counted.samples.iter(), counted.blocks) {
            if states.usual.len() < FEWEST_VISITS {
                return Err(refusal(&measurement.processor, &states));
            }
            if !counted.is_enough(header, measurement, &states.other) {
                break;
            }
            counted.leave_out(&measurement.processor, &states.other);
        }
    }
    Ok(())
}

/// The states between which the processor changed, as the samples and blocks that count have it; `None` where it had one,
/// or visits are not told apart.
pub(crate) fn states<'a>(
    measurement: &Measurement,
    samples: impl Iterator<Item = &'a Sample>,
    blocks: &[Block],
) -> Option<TwoStates> {
    measurement.visits?;
    two_states(&visit_speeds(&visit_samples(measurement, samples, blocks)))
}

impl Counted<'_> {
    /// Whether without the `other` visits each segment of the design is still there, so that layer times follow as they do
    /// with them, and some segment still has the visits that intervals need.
    fn is_enough(&self, header: &Header, measurement: &Measurement, other: &[Visit]) -> bool {
        let all = visit_samples(measurement, self.samples.iter(), self.blocks);
        let mut left = all.clone();
        for &visit in other {
            left.forget(visit);
        }
        let lost = |segment: &Segment| {
            all.segments.contains_key(segment) && !left.segments.contains_key(segment)
        };
        let supported = supported(
            header.model.layers,
            &measurement.processor,
            self.unsupported,
        );
        let most_visits =
            |of: &VisitSamples| of.segments.values().map(BTreeMap::len).max().unwrap_or(0);
        most_visits(&left) >= most_visits(&all).min(FEWEST_VISITS)
            && !measurement.design.iter_on(&supported).any(|one| lost(&one))
    }

    fn leave_out(&mut self, processor: &str, other: &[Visit]) {
        let is_other = |order, block| other.contains(&Visit { order, block });
        let of_processor = self
            .blocks
            .iter_mut()
            .filter(|block| block.processor == processor);
        for block in of_processor.filter(|block| is_other(block.order, block.number)) {
            block.rejection = Some(Rejected::OtherState);
        }
        let is_left_out =
            |sample: &Sample| sample.processor == processor && is_other(sample.order, sample.block);
        let left_out = self.samples.extract_if(.., |sample| is_left_out(sample));
        self.rejected.extend(left_out);
    }
}

fn refusal(processor: &str, states: &TwoStates) -> BuildError {
    BuildError::States {
        processor: processor.to_owned(),
        usual: states.usual.len(),
        other: states.other.len(),
        longer_percent: format!("{:.0}", 100.0 * states.longer.abs()),
        how: if states.longer < 0.0 { "less" } else { "more" },
    }
}

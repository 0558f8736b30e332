//! What becomes of a measurement during which a processor had two states: the blocks of the one that it was in less often
//! do not count (docs/method.md §5).

use super::observed::visit_samples;
use super::{Block, BuildError, Header, Rejected, Sample};
use crate::derive::graph::{FEWEST_VISITS, TwoStates, Visit, two_states, visit_speeds};

/// Moves the samples of the less usual state of each processor to the rejected ones, and marks its blocks. Refuses a
/// measurement of which no state had three visits.
pub(super) fn leave_out_other_states(
    header: &Header,
    samples: &mut Vec<Sample>,
    rejected: &mut Vec<Sample>,
    blocks: &mut [Block],
) -> Result<(), BuildError> {
    for measurement in header
        .measurements
        .iter()
        .filter(|one| one.visits.is_some())
    {
        let processor = &measurement.processor;
        let speeds = visit_speeds(&visit_samples(measurement, samples.iter(), blocks));
        let Some(states) = two_states(&speeds) else {
            continue;
        };
        if states.usual.len() < FEWEST_VISITS {
            return Err(refusal(processor, &states));
        }
        let is_other = |order, block| states.other.contains(&Visit { order, block });
        let of_processor = blocks
            .iter_mut()
            .filter(|block| block.processor == *processor);
        for block in of_processor.filter(|block| is_other(block.order, block.number)) {
            block.rejection = Some(Rejected::OtherState);
        }
        let is_left_out = |sample: &Sample| {
            sample.processor == *processor && is_other(sample.order, sample.block)
        };
        rejected.extend(samples.extract_if(.., |sample| is_left_out(sample)));
    }
    Ok(())
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

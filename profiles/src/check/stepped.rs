//! Did a processor change its speed within a block? Blocks that do not count because their sentinels moved are looked at, too:
//! a machine that steps in those steps in others without its being seen at their ends.

use std::collections::BTreeMap;

use super::{Findings, Rule, Subject};
use crate::derive::graph::{Visit, speed_steps};
use crate::document::{Block, Measurement, Rejected, Sample};
use crate::segment::Segment;
use crate::units::Nanos;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let measurements = subject.profile.header.measurements.iter();
    // The times of an emulator are no device's.
    let real = measurements
        .filter(|measurement| !subject.profile.header.is_emulated(&measurement.processor));
    let stepped = real.filter_map(|measurement| sentence(subject, measurement));
    findings.add(Rule::SpeedSteps, stepped.collect::<Vec<_>>());
}

fn sentence(subject: &Subject<'_>, measurement: &Measurement) -> Option<String> {
    let (profile, processor) = (subject.profile, &measurement.processor);
    let of_processor = profile
        .blocks
        .iter()
        .filter(|block| block.processor == *processor);
    let counts: BTreeMap<Visit, bool> = of_processor
        .filter(|block| is_looked_at(block))
        .map(|block| (visit(block.order, block.number), block.rejection.is_none()))
        .collect();
    let mut samples: BTreeMap<Visit, Vec<&Sample>> = BTreeMap::new();
    let all = profile.samples.iter().chain(&profile.rejected);
    for sample in all.filter(|sample| sample.processor == *processor) {
        let visit = visit(sample.order, sample.block);
        if counts.contains_key(&visit) {
            samples.entry(visit).or_default().push(sample);
        }
    }
    let in_order = samples.into_iter().map(|(visit, mut samples)| {
        samples.sort_by_key(|sample| sample.started);
        let times = samples
            .iter()
            .map(|sample| (sample.segment, sample.duration));
        (visit, times.collect::<Vec<(Segment, Nanos)>>())
    });
    let steps = speed_steps(&in_order.collect());
    let most = steps
        .iter()
        .max_by(|one, other| one.longer.abs().total_cmp(&other.longer.abs()))?;
    let that_count = steps.iter().filter(|step| counts[&step.visit]).count();
    Some(format!(
        "in {} of {} blocks on `{processor}`, {that_count} of which count, everything took more or less from one inference to \
         the next (most: {:.0} % {} in block {} of order {})",
        steps.len(),
        counts.len(),
        100.0 * most.longer.abs(),
        if most.longer < 0.0 { "less" } else { "more" },
        most.visit.block,
        most.visit.order,
    ))
}

/// A device that throttled, or on which something else ran, says so itself.
fn is_looked_at(block: &Block) -> bool {
    matches!(
        block.rejection,
        None | Some(Rejected::SentinelMoved | Rejected::OtherState)
    )
}

fn visit(order: u32, block: u32) -> Visit {
    Visit { order, block }
}

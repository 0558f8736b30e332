//! Could these inferences have happened one after the other, each after its gap?

use std::collections::{BTreeMap, BTreeSet};

use super::{Findings, Rule, Subject};
use crate::document::{Clock, Measurement, Sample};
use crate::segment::Segment;

/// What a host's clock may differ by from a device's over a run, beside the whole seconds that instants are noted in.
const CLOCKS_DIFFER_BY_S: i64 = 2;

const NANOS: i64 = 1_000_000_000;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    // Wrong rows have been found before, and would be found here a second time.
    if findings.has_errors() {
        return;
    }
    let mut blocks: BTreeMap<(u32, u32), Vec<&Sample>> = BTreeMap::new();
    let profile = subject.profile;
    for sample in profile.samples.iter().chain(&profile.rejected) {
        let block = blocks.entry((sample.order, sample.block)).or_default();
        block.push(sample);
    }
    let cases = blocks.values_mut().filter_map(|block| {
        block.sort_by_key(|sample| (sample.started, sample.index));
        of_block(subject, block)
    });
    let cases: Vec<String> = cases.chain(longer_than_the_run(subject)).collect();
    findings.add(Rule::ClockContradiction, cases);
}

/// What cannot be of a block, whose samples are sorted by when they started.
fn of_block(subject: &Subject<'_>, block: &[&Sample]) -> Option<String> {
    let first = block.first()?;
    let place = subject.places.get(first.processor.as_str())?;
    let measurement = subject.measurement(*place)?;
    let gaps: Vec<i64> = block.windows(2).map(|pair| gap(pair[0], pair[1])).collect();
    let wrong = match measurement.design.shows_transfers() {
        true => wrong_between_turns(subject, measurement, &gaps),
        false => wrong_between_passes(subject, measurement, block, &gaps),
    }?;
    // An agent that was started anew went on with the block by a clock of its own.
    if begun_again(block) {
        return None;
    }
    let (before, after) = (block[wrong], block[wrong + 1]);
    Some(format!(
        "between index {} and index {} in order {} on `{}` lie {} ns, and profile.json has a gap of {} ns",
        before.index,
        after.index,
        before.order,
        before.processor,
        gaps[wrong],
        measurement.gap_ns.as_nanos()
    ))
}

/// The time from the end of one inference to the start of the next, in ns; negative where they overlap.
fn gap(before: &Sample, after: &Sample) -> i64 {
    let end = before.started.signed() + before.duration.signed();
    (after.started.signed() - end).as_nanos()
}

/// The first pair of neighbours whose gap cannot be, where each inference has one of its own.
fn wrong_between_turns(
    subject: &Subject<'_>,
    measurement: &Measurement,
    gaps: &[i64],
) -> Option<usize> {
    let expected = measurement.gap_ns.signed().as_nanos();
    let too_short = gaps.iter().position(|&gap| gap < expected);
    // An exact clock is advanced by the gap and by nothing else, but between two lives of an agent.
    let is_edge = |place: usize| place == 0 || place + 1 == gaps.len();
    let mut longer = (0..gaps.len()).filter(|&place| gaps[place] > expected);
    too_short.or_else(|| match subject.profile.header.device.clock {
        Clock::SimulatedExact => longer.find(|&place| is_edge(place)),
        Clock::SimulatedReal | Clock::Monotonic => None,
    })
}

/// The same where a gap lies before each pass over the model and none within it.
fn wrong_between_passes(
    subject: &Subject<'_>,
    measurement: &Measurement,
    block: &[&Sample],
    gaps: &[i64],
) -> Option<usize> {
    let expected = measurement.gap_ns.signed().as_nanos();
    let overlap = gaps.iter().position(|&gap| gap < 0);
    let exact = subject.profile.header.device.clock == Clock::SimulatedExact;
    let neither = || gaps.iter().position(|&gap| gap != 0 && gap < expected);
    if overlap.is_some() || exact {
        return overlap.or_else(neither);
    }
    let of_first = |sample: &&&Sample| sample.segment == block[0].segment;
    let passes = block.iter().filter(of_first).count();
    let mut by_length: Vec<usize> = (0..gaps.len()).collect();
    by_length.sort_by_key(|&place| std::cmp::Reverse(gaps[place]));
    let mut between_passes = by_length.into_iter().take(passes.saturating_sub(1));
    between_passes.find(|&place| gaps[place] < expected)
}

/// Whether the rounds of a block that is sorted by time are out of order, as those of a block are that another agent
/// went on with: its clock began anew. One row that lies elsewhere does not make it so.
fn begun_again(block: &[&Sample]) -> bool {
    let mut indices_of: BTreeMap<Segment, BTreeSet<u64>> = BTreeMap::new();
    for sample in block {
        let indices = indices_of.entry(sample.segment).or_default();
        indices.insert(sample.index);
    }
    let rounds_of: BTreeMap<Segment, BTreeMap<u64, usize>> = indices_of
        .into_iter()
        .map(|(segment, indices)| (segment, indices.into_iter().zip(0..).collect()))
        .collect();
    let round = |sample: &&Sample| rounds_of[&sample.segment][&sample.index];
    let rounds: Vec<usize> = block.iter().map(round).collect();
    let highest_before = rounds.iter().scan(0, |highest, &round| {
        *highest = round.max(*highest);
        Some(*highest)
    });
    let late = rounds
        .iter()
        .zip(highest_before)
        .filter(|(round, highest)| *round < highest);
    let lowest_after = rounds.iter().rev().scan(usize::MAX, |lowest, &round| {
        *lowest = round.min(*lowest);
        Some(*lowest)
    });
    let early = rounds
        .iter()
        .rev()
        .zip(lowest_after)
        .filter(|(round, lowest)| *round > lowest);
    late.count().min(early.count()) > 1
}

/// A real clock cannot have told more time than the run took.
fn longer_than_the_run(subject: &Subject<'_>) -> Option<String> {
    let header = &subject.profile.header;
    if header.device.clock == Clock::SimulatedExact {
        return None;
    }
    let samples = subject.profile.samples.iter();
    let busy: i64 = samples
        .map(|sample| sample.duration.signed().as_nanos())
        .sum();
    let (start, end) = (
        &header.provenance.started_at,
        &header.provenance.finished_at,
    );
    let took = super::utc::utc_seconds(end)? - super::utc::utc_seconds(start)?;
    (busy / NANOS > took + CLOCKS_DIFFER_BY_S).then(|| {
        format!(
            "the inferences of samples.csv took {} s, and the run from {start} to {end} {took} s",
            busy / NANOS
        )
    })
}

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
    let mut cases = Vec::new();
    let mut of_one_round: BTreeMap<&str, OneRoundBlocks> = BTreeMap::new();
    for block in blocks.values_mut() {
        let Some(measurement) = measurement_of(subject, block) else {
            continue;
        };
        block.sort_by_key(|sample| (sample.started, sample.index));
        let rhythm = Rhythm {
            clock: profile.header.device.clock,
            measurement,
        };
        let wrong = rhythm.wrong(block).map(|place| rhythm.says(block, place));
        let rounds = rounds(block);
        if rounds.iter().any(|&round| round > 0) {
            cases.extend(wrong.filter(|_| !rhythm.is_of_two_lives(block, &rounds)));
        } else {
            let blocks = of_one_round.entry(&measurement.processor).or_default();
            blocks.count += 1;
            match wrong {
                Some(wrong) if rhythm.divides_in_two(block) => blocks.divided.push(wrong),
                wrong => cases.extend(wrong),
            }
        }
    }
    let divided = of_one_round.into_values().filter(OneRoundBlocks::are_many);
    cases.extend(divided.flat_map(|blocks| blocks.divided));
    cases.extend(longer_than_the_run(subject));
    findings.add(Rule::ClockContradiction, cases);
}

fn measurement_of<'a>(subject: &Subject<'a>, block: &[&Sample]) -> Option<&'a Measurement> {
    let place = subject.places.get(block.first()?.processor.as_str())?;
    subject.measurement(*place)
}

/// The blocks of a processor that have one sample of each segment. The order of their turns is not known, so that nothing
/// but the gaps shows whether an agent was started anew.
#[derive(Default)]
struct OneRoundBlocks {
    count: usize,
    /// What would be wrong with those that divide into the inferences of two agents, had there been one.
    divided: Vec<String>,
}

impl OneRoundBlocks {
    /// Whether so many are divided that their gaps are wrong instead: agents are seldom killed.
    fn are_many(&self) -> bool {
        2 * self.divided.len() > self.count
    }
}

/// The time from the end of one inference to the start of the next, in ns; negative where they overlap.
fn gap(before: &Sample, after: &Sample) -> i64 {
    let end = before.started.signed() + before.duration.signed();
    (after.started.signed() - end).as_nanos()
}

/// For each row of a block, which of its segment's samples in the block it is, counted from 0.
fn rounds(block: &[&Sample]) -> Vec<usize> {
    let mut indices_of: BTreeMap<Segment, BTreeSet<u64>> = BTreeMap::new();
    for sample in block {
        let indices = indices_of.entry(sample.segment).or_default();
        indices.insert(sample.index);
    }
    let rounds_of: BTreeMap<Segment, BTreeMap<u64, usize>> = indices_of
        .into_iter()
        .map(|(segment, indices)| (segment, indices.into_iter().zip(0..).collect()))
        .collect();
    let rows = block.iter();
    rows.map(|sample| rounds_of[&sample.segment][&sample.index])
        .collect()
}

/// How the inferences of a block follow each other. Blocks are sorted by when their rows started.
struct Rhythm<'a> {
    clock: Clock,
    measurement: &'a Measurement,
}

impl Rhythm<'_> {
    fn expected(&self) -> i64 {
        self.measurement.gap_ns.signed().as_nanos()
    }

    fn is_exact(&self) -> bool {
        self.clock == Clock::SimulatedExact
    }

    /// The first row that cannot have been followed by the next one.
    fn wrong(&self, block: &[&Sample]) -> Option<usize> {
        let gaps: Vec<i64> = block.windows(2).map(|pair| gap(pair[0], pair[1])).collect();
        match self.measurement.design.shows_transfers() {
            true => self.wrong_between_turns(&gaps),
            false => self.wrong_between_passes(block, &gaps),
        }
    }

    fn says(&self, block: &[&Sample], wrong: usize) -> String {
        let (before, after) = (block[wrong], block[wrong + 1]);
        format!(
            "between index {} and index {} in order {} on `{}` lie {} ns, and profile.json has a gap of {} ns",
            before.index,
            after.index,
            before.order,
            before.processor,
            gap(before, after),
            self.expected()
        )
    }

    /// The same where each inference has a gap of its own.
    fn wrong_between_turns(&self, gaps: &[i64]) -> Option<usize> {
        let expected = self.expected();
        let too_short = gaps.iter().position(|&gap| gap < expected);
        // An exact clock is advanced by the gap and by nothing else, but between two lives of an agent.
        let is_edge = |place: usize| place == 0 || place + 1 == gaps.len();
        let mut longer = (0..gaps.len()).filter(|&place| gaps[place] > expected);
        too_short.or_else(|| longer.find(|&place| self.is_exact() && is_edge(place)))
    }

    /// The same where a gap lies before each pass over the model and none within it.
    fn wrong_between_passes(&self, block: &[&Sample], gaps: &[i64]) -> Option<usize> {
        let expected = self.expected();
        let overlap = gaps.iter().position(|&gap| gap < 0);
        let neither = || gaps.iter().position(|&gap| gap != 0 && gap < expected);
        if overlap.is_some() || self.is_exact() {
            return overlap.or_else(neither);
        }
        let of_first = |sample: &&&Sample| sample.segment == block[0].segment;
        let passes = block.iter().filter(of_first).count();
        let mut by_length: Vec<usize> = (0..gaps.len()).collect();
        by_length.sort_by_key(|&place| std::cmp::Reverse(gaps[place]));
        let mut between_passes = by_length.into_iter().take(passes.saturating_sub(1));
        between_passes.find(|&place| gaps[place] < expected)
    }

    /// Whether an agent that was started anew went on with a block of several rounds, by a clock that began anew, too:
    /// the rounds are out of order, or one row alone is of another agent than the rest.
    fn is_of_two_lives(&self, block: &[&Sample], rounds: &[usize]) -> bool {
        let last = rounds.iter().max().copied().unwrap_or(0);
        let lies_elsewhere = |place: usize| match rounds[place] {
            0 => self.is_first_of_all(block, place),
            round if round == last => self.is_left_over(block, place),
            // An agent that did nothing but this was killed before and after it.
            _ => false,
        };
        are_out_of_order(rounds) || (0..block.len()).any(lies_elsewhere)
    }

    /// Whether the row can have been timed before all others, by the agent that was killed after it. An exact clock tells
    /// less time at the same point of a block the less has been done before it.
    fn is_first_of_all(&self, block: &[&Sample], place: usize) -> bool {
        (place > 0 || !self.is_exact()) && self.are_consistent_without(block, place)
    }

    /// Whether the row can have been timed after all others, by an agent that was started anew for it.
    fn is_left_over(&self, block: &[&Sample], place: usize) -> bool {
        (place == 0 || !self.is_exact()) && self.are_consistent_without(block, place)
    }

    fn are_consistent_without(&self, block: &[&Sample], place: usize) -> bool {
        let mut others = block.to_vec();
        others.remove(place);
        self.wrong(&others).is_none()
    }

    /// Whether the rows of a block of one round divide into those of two agents, each of which can have timed its own.
    fn divides_in_two(&self, block: &[&Sample]) -> bool {
        let expected = self.expected();
        let follows = |after: &Sample, before: &Sample| {
            let gap = gap(before, after);
            match (self.measurement.design.shows_transfers(), self.is_exact()) {
                (true, true) => gap == expected,
                (true, false) => gap >= expected,
                (false, true) => gap == 0,
                (false, false) => gap >= 0,
            }
        };
        let mut last_of_each: Vec<&Sample> = Vec::new();
        for &row in block {
            let mut lives = last_of_each.iter_mut();
            match lives.find(|last| follows(row, last)) {
                Some(last) => *last = row,
                None => last_of_each.push(row),
            }
        }
        last_of_each.len() <= 2
    }
}

/// Whether the rounds of rows that are sorted by time are out of order. One row that lies elsewhere does not make it so.
fn are_out_of_order(rounds: &[usize]) -> bool {
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

//! Does `blocks.csv` say what the rows of the samples and the rule of what counts ask of it?

use std::collections::{BTreeMap, BTreeSet};

use super::{Findings, Rule, Subject};
use crate::document::{Block, BlockEnd, Measurement, Profile, Rejected, Sample};
use crate::soak::Thermal;

/// How far beyond the shortest and the longest sample of its own segment a sentinel may lie in the blocks that count: a
/// processor that changes its speed by more has long been noticed.
const SENTINEL_WITHIN: u64 = 3;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    if findings.has_errors() {
        return;
    }
    let profile = subject.profile;
    let fitness = profile.header.provenance.fitness.as_ref();
    let is_steady = profile.header.thermal == Thermal::Steady;
    let may_throttle = is_steady || fitness.is_some_and(|fitness| fitness.overridden);
    let cases = numbering(profile)
        .into_iter()
        .chain(empty(profile))
        .chain(indices(subject))
        .chain(
            profile
                .blocks
                .iter()
                .filter_map(|block| misjudged(block, may_throttle)),
        )
        .chain(disturbances(profile))
        .chain(sentinels(subject));
    findings.add(Rule::BlockContradiction, cases);
}

/// Blocks of an order that are not counted from 0.
fn numbering(profile: &Profile) -> Vec<String> {
    let orders = profile.blocks.chunk_by(|a, b| a.order == b.order);
    orders
        .filter_map(|blocks| {
            let wrong = (0..)
                .zip(blocks)
                .find(|(number, block)| block.number != *number)?;
            let (number, block) = (wrong.0, wrong.1.number);
            let order = wrong.1.order;
            Some(format!(
                "blocks.csv has block {block} of order {order} in the place of block {number}"
            ))
        })
        .collect()
}

/// Blocks that nothing was timed in.
fn empty(profile: &Profile) -> Vec<String> {
    let samples = profile.samples.iter().chain(&profile.rejected);
    let with: BTreeSet<_> = samples.map(|sample| (sample.order, sample.block)).collect();
    let blocks = profile.blocks.iter();
    blocks
        .filter(|block| !with.contains(&(block.order, block.number)))
        .map(|block| {
            format!(
                "blocks.csv has block {} of order {}, in which nothing was timed",
                block.number, block.order
            )
        })
        .collect()
}

/// Orders whose indices leave one out, and rejected samples that were not taken again. Those of blocks in another state
/// are not.
fn indices(subject: &Subject<'_>) -> Vec<String> {
    let mut taken: BTreeMap<(u32, u64), &Sample> = BTreeMap::new();
    let mut orders: BTreeMap<u32, (u64, u64, &str)> = BTreeMap::new();
    let blocks = subject.profile.blocks.iter();
    let of_other_state: BTreeSet<_> = blocks
        .filter(|block| block.rejection == Some(Rejected::OtherState))
        .map(|block| (block.order, block.number))
        .collect();
    let is_other = |sample: &Sample| of_other_state.contains(&(sample.order, sample.block));
    let (once, again): (Vec<&Sample>, Vec<&Sample>) =
        (subject.profile.rejected.iter()).partition(|sample| is_other(sample));
    for sample in subject.profile.samples.iter().chain(once) {
        taken.insert((sample.order, sample.index), sample);
        let (count, last, _) = orders
            .entry(sample.order)
            .or_insert((0, 0, &sample.processor));
        *count += 1;
        *last = sample.index.max(*last);
    }
    // The indices of segments that turned out not to run are left out. What does not fit was never asked for.
    let runs_all = |processor: &str| {
        let mut unsupported = subject.profile.unsupported.iter();
        !unsupported.any(|row| row.processor == processor && row.needed.is_none())
    };
    let holes = orders.iter().filter(|(_, (count, last, processor))| {
        last.checked_add(1) != Some(*count) && runs_all(processor)
    });
    let holes = holes.map(|(order, (count, last, _))| {
        format!("samples.csv has {count} rows of order {order}, whose indices go to {last}")
    });
    let lost = again.into_iter().filter(|sample| {
        let again = taken.get(&(sample.order, sample.index));
        !again.is_some_and(|again| again.segment == sample.segment && again.block > sample.block)
    });
    let lost = lost.map(|sample| {
        format!(
            "index {} in order {} of rejected.csv was not measured again in a later block",
            sample.index, sample.order
        )
    });
    holes.chain(lost).collect()
}

/// A block that counts although its ends say that it does not, or the other way round (docs/method.md §5). Whether a
/// sentinel moved depends on the blocks before it. Where a device was to be measured even if it was not fit, throttling
/// rejects nothing.
fn misjudged(block: &Block, may_throttle: bool) -> Option<String> {
    let status = |end: &BlockEnd| end.conditions.thermal_status.unwrap_or(0);
    let throttled = status(&block.before).max(status(&block.after)) > 0;
    let (before, after) = (&block.before.conditions, &block.after.conditions);
    let caps = (&before.frequency_caps_khz, &after.frequency_caps_khz);
    let capped = caps
        .0
        .iter()
        .any(|(group, cap)| caps.1.get(group) != Some(cap));
    let wrong = match block.rejection {
        None if throttled && !may_throttle => "counts, and the device throttled at an end of it",
        None if capped => "counts, and a clock cap changed in it",
        Some(Rejected::Throttling) if !throttled => {
            "was rejected for throttling, and the device throttled at neither end of it"
        }
        Some(Rejected::ClockCapChanged) if !capped => {
            "was rejected for a changed clock cap, and none changed"
        }
        _ => return None,
    };
    Some(format!(
        "block {} of order {} {wrong}",
        block.number, block.order
    ))
}

/// How many of these samples each block has, by its order and number.
pub(super) fn samples_of_blocks<'a>(
    samples: impl Iterator<Item = &'a Sample>,
) -> BTreeMap<(u32, u32), u64> {
    let mut counts = BTreeMap::new();
    for sample in samples {
        *counts.entry((sample.order, sample.block)).or_default() += 1;
    }
    counts
}

/// Blocks of which more samples were crowded than there are, or more time stolen than there is, or that were rejected for less
/// than is tolerated.
fn disturbances(profile: &Profile) -> Vec<String> {
    let samples = samples_of_blocks(profile.samples.iter().chain(&profile.rejected));
    let wrong = |block: &Block| {
        let samples = samples
            .get(&(block.order, block.number))
            .copied()
            .unwrap_or(0);
        let was_rejected = block.rejection == Some(Rejected::Disturbed);
        match block.disturbance {
            Some(told) if told.crowded_samples > samples => {
                Some("has more crowded samples than samples")
            }
            Some(told) if told.stolen_percent > 100 => Some("had more time stolen than there was"),
            Some(told) if was_rejected && told.is_too_much(samples) => None,
            _ if was_rejected => Some("was rejected as disturbed, and what else ran is tolerated"),
            _ => None,
        }
    };
    let blocks = profile.blocks.iter();
    blocks
        .filter_map(|block| {
            let wrong = wrong(block)?;
            Some(format!(
                "block {} of order {} {wrong}",
                block.number, block.order
            ))
        })
        .collect()
}

/// Sentinels of blocks that count which have nothing to do with the samples of what they timed.
fn sentinels(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let mut cases = Vec::new();
    // Version 3 did not record which segment the sentinel was; nor did it record who wrote it.
    if profile.header.written_by.is_none() {
        return cases;
    }
    for measurement in &profile.header.measurements {
        let Some((shortest, longest)) = range_of_sentinel(subject, measurement) else {
            continue;
        };
        let name = &measurement.processor;
        // The times of an emulator are no device's, and its sentinels are not judged.
        let of_processor = |block: &&Block| {
            &block.processor == name
                && block.rejection.is_none()
                && !profile.header.is_emulated(name)
        };
        for block in profile.blocks.iter().filter(of_processor) {
            for end in [&block.before, &block.after] {
                let found = end.sentinel.as_nanos();
                let is_near = found <= longest.saturating_mul(SENTINEL_WITHIN)
                    && found.saturating_mul(SENTINEL_WITHIN) >= shortest;
                if !is_near {
                    cases.push(format!(
                        "a sentinel of block {} of order {} is {found} ns, and the samples of what it timed on \
                         `{name}` {shortest} to {longest} ns",
                        block.number, block.order
                    ));
                }
            }
        }
    }
    cases
}

/// The shortest and the longest sample of the segment that was a processor's sentinel, in ns, or the sums of its layers'
/// where it was read in passes; `None` where no sample says anything of it.
fn range_of_sentinel(subject: &Subject<'_>, measurement: &Measurement) -> Option<(u64, u64)> {
    let place = *subject.places.get(measurement.processor.as_str())?;
    let sentinel = measurement.sentinel?;
    let range = |segment| {
        let row = subject.segments.get(&(place, segment))?;
        let (shortest, longest) = (row.summary.min, row.summary.max);
        Some((shortest.as_nanos(), longest.as_nanos()))
    };
    range(sentinel).or_else(|| {
        let layers = sentinel.first()..=sentinel.last();
        let all: Option<Vec<(u64, u64)>> = layers
            .map(|layer| range(crate::segment::Segment::single(layer)))
            .collect();
        let passes = !measurement.design.shows_transfers();
        let sum = |all: Vec<(u64, u64)>| {
            let (shortest, longest): (Vec<u64>, Vec<u64>) = all.into_iter().unzip();
            (shortest.iter().sum(), longest.iter().sum())
        };
        all.filter(|_| passes).map(sum)
    })
}

//! Are the rows the ones that the header promises: all of them, once each, in order, and no others?

use std::collections::{BTreeMap, BTreeSet};

use super::{Findings, Rule, Subject};
use crate::document::{Method, Profile, Sample};
use crate::segment::Segment;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    findings.add(Rule::UnknownProcessor, unknown_processors(subject));
    findings.add(Rule::UnknownLayer, unknown_layers(subject));
    findings.add(Rule::DuplicateRow, duplicates(subject));
    findings.add(Rule::RowOrder, disorder(subject));
    // How a processor without a measurement, or with the wrong number of layers, should look is
    // unknown; that it is so has been said already.
    if u64::from(subject.profile.header.model.layers) == subject.profile.layers.len() as u64 {
        findings.add(Rule::MissingRow, missing(subject));
    }
    findings.add(Rule::SegmentOutsideDesign, outside_design(subject));
    findings.add(Rule::SampleCount, sample_counts(subject));
    findings.add(Rule::BlockContradiction, block_contradictions(subject));
    findings.add(Rule::ZeroDuration, zero_durations(subject));
}

fn unknown_processors(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let in_times = profile
        .times
        .iter()
        .map(|row| ("times.csv", &row.processor));
    let in_segments = profile
        .segments
        .iter()
        .map(|row| ("segments.csv", &row.processor));
    let in_samples = sample_tables(profile).map(|(file, row)| (file, &row.processor));
    let in_blocks = profile
        .blocks
        .iter()
        .map(|row| ("blocks.csv", &row.processor));
    let in_cuts = profile.cuts.iter().map(|row| ("cuts.csv", &row.processor));
    in_times
        .chain(in_cuts)
        .chain(in_segments)
        .chain(in_samples)
        .chain(in_blocks)
        .filter(|(_, processor)| !subject.places.contains_key(processor.as_str()))
        .map(|(file, processor)| {
            format!("{file} has a row of `{processor}`, which profile.json does not name")
        })
        .collect()
}

fn unknown_layers(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let layers = subject.layers;
    let in_times = profile
        .times
        .iter()
        .filter(|row| row.layer == 0 || row.layer > layers)
        .map(|row| ("times.csv", row.layer));
    let in_segments = profile
        .segments
        .iter()
        .map(|row| ("segments.csv", row.segment.last()));
    let in_samples = sample_tables(profile).map(|(file, row)| (file, row.segment.last()));
    let beyond = in_segments
        .chain(in_samples)
        .filter(|&(_, last)| last > layers);
    // A cut has a layer on both sides.
    let in_cuts = profile
        .cuts
        .iter()
        .filter(|row| row.after_layer == 0 || row.after_layer >= layers)
        .map(|row| ("cuts.csv", row.after_layer.saturating_add(1)));
    in_times
        .chain(in_cuts)
        .chain(beyond)
        .map(|(file, layer)| {
            format!("{file} has a row of layer {layer}, and the model has {layers} layers")
        })
        .collect()
}

fn duplicates(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let mut cases = Vec::new();
    let mut times = BTreeSet::new();
    for row in &profile.times {
        if !times.insert((&row.processor, row.layer)) {
            let (processor, layer) = (&row.processor, row.layer);
            cases.push(format!(
                "times.csv has two rows of layer {layer} on `{processor}`"
            ));
        }
    }
    let mut cuts = BTreeSet::new();
    for row in &profile.cuts {
        if !cuts.insert((&row.processor, row.after_layer)) {
            let (processor, layer) = (&row.processor, row.after_layer);
            cases.push(format!(
                "cuts.csv has two rows of the cut after layer {layer} on `{processor}`"
            ));
        }
    }
    let mut segments = BTreeSet::new();
    for row in &profile.segments {
        if !segments.insert((&row.processor, row.segment)) {
            let (processor, segment) = (&row.processor, row.segment);
            cases.push(format!(
                "segments.csv has two rows of layers {segment} on `{processor}`"
            ));
        }
    }
    let mut samples = BTreeSet::new();
    for row in &profile.samples {
        if !samples.insert((row.order, row.index)) {
            let (order, index) = (row.order, row.index);
            cases.push(format!(
                "samples.csv has two rows of index {index} in order {order}"
            ));
        }
    }
    let mut rejected = BTreeSet::new();
    for row in &profile.rejected {
        if !rejected.insert((row.order, row.block, row.index)) {
            let (order, block, index) = (row.order, row.block, row.index);
            cases.push(format!(
                "rejected.csv has two rows of index {index} in block {block} of order {order}"
            ));
        }
    }
    let mut blocks = BTreeSet::new();
    for row in &profile.blocks {
        if !blocks.insert((row.order, row.number)) {
            let (order, block) = (row.order, row.number);
            cases.push(format!(
                "blocks.csv has two rows of block {block} in order {order}"
            ));
        }
    }
    cases
}

fn disorder(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let place = |processor: &str| subject.places.get(processor).copied();
    let times = profile
        .times
        .iter()
        .map(|row| (place(&row.processor), row.layer));
    let segments = profile
        .segments
        .iter()
        .map(|row| (place(&row.processor), row.segment));
    let sample = |row: &Sample| {
        let place = place(&row.processor);
        (place, row.segment, row.order, row.index, row.block)
    };
    let samples = profile.samples.iter().map(sample);
    let rejected = profile.rejected.iter().map(sample);
    let blocks = profile.blocks.iter().map(|row| (row.order, row.number));
    let cuts = profile
        .cuts
        .iter()
        .map(|row| (place(&row.processor), row.after_layer));
    [
        ("times.csv", times.is_sorted(), "processor and layer"),
        ("cuts.csv", cuts.is_sorted(), "processor and layer"),
        (
            "segments.csv",
            segments.is_sorted(),
            "processor and segment",
        ),
        (
            "samples.csv",
            samples.is_sorted(),
            "processor, segment, order and index",
        ),
        (
            "rejected.csv",
            rejected.is_sorted(),
            "processor, segment, order, index and block",
        ),
        ("blocks.csv", blocks.is_sorted(), "order and block"),
    ]
    .into_iter()
    .filter(|(_, sorted, _)| !sorted)
    .map(|(file, _, by)| format!("the rows of {file} are not sorted by {by}"))
    .collect()
}

fn missing(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let mut cases = Vec::new();
    let mut timed: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for row in &profile.times {
        timed.entry(&row.processor).or_default().insert(row.layer);
    }
    for processor in subject.places.keys() {
        let there = timed.get(processor);
        let absent = |layer: &u32| !there.is_some_and(|layers| layers.contains(layer));
        cases.extend(
            (1..=subject.layers)
                .filter(absent)
                .map(|layer| format!("times.csv has no row of layer {layer} on `{processor}`")),
        );
    }
    for measurement in &profile.header.measurements {
        let processor = measurement.processor.as_str();
        let Some(&place) = subject.places.get(processor) else {
            continue;
        };
        if measurement.method == Method::Graph {
            let cuts = profile.cuts.iter().filter(|row| row.processor == processor);
            let there: BTreeSet<u32> = cuts.map(|row| row.after_layer).collect();
            let absent = (1..subject.layers).find(|layer| !there.contains(layer));
            cases.extend(absent.map(|layer| {
                format!("cuts.csv has no row of the cut after layer {layer} on `{processor}`")
            }));
        }
        let there = subject
            .segments
            .range((place, Segment::single(1))..)
            .take_while(|((of, _), _)| *of == place)
            .map(|((_, segment), _)| *segment)
            .collect::<BTreeSet<Segment>>();
        // Only the first gap is named: a grouped table of a large model could have billions.
        let gap = measurement
            .design
            .iter(subject.layers)
            .find(|segment| !there.contains(segment));
        cases.extend(gap.map(|segment| {
            format!(
                "segments.csv has no row of layers {segment} on `{processor}`, \
                 which its design {} asks for",
                measurement.design
            )
        }));
    }
    cases
}

fn outside_design(subject: &Subject<'_>) -> Vec<String> {
    let keys: BTreeSet<_> = subject
        .segments
        .keys()
        .chain(subject.durations.keys())
        .collect();
    keys.into_iter()
        .filter(|(_, segment)| segment.last() <= subject.layers)
        .filter_map(|&(place, segment)| {
            let measurement = subject.measurement(place)?;
            (!measurement.design.contains(subject.layers, segment)).then(|| {
                format!(
                    "layers {segment} on `{}` have rows, and its design {} does not ask for them",
                    measurement.processor, measurement.design
                )
            })
        })
        .collect()
}

fn sample_counts(subject: &Subject<'_>) -> Vec<String> {
    let keys: BTreeSet<_> = subject
        .segments
        .keys()
        .chain(subject.durations.keys())
        .collect();
    keys.into_iter()
        .filter_map(|key| {
            let measurement = subject.measurement(key.0)?;
            let found = subject.durations.get(key).map_or(0, Vec::len);
            let expected = measurement.samples_per_segment;
            // A design that chooses as it goes gives segments more as it sees fit, and the whole model is timed around
            // every block, besides.
            let whole = key.1.first() == 1 && key.1.last() == subject.layers;
            let may_have_more = whole || measurement.design.chooses_as_it_goes();
            let right = found as u64 == expected || (may_have_more && found as u64 > expected);
            (!right).then(|| {
                format!(
                    "layers {} on `{}` have {found} samples, and profile.json says {expected}",
                    key.1, measurement.processor
                )
            })
        })
        .collect()
}

/// Samples whose block does not say what their table does: that they count, or that they do not.
fn block_contradictions(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let blocks: BTreeMap<_, _> = profile
        .blocks
        .iter()
        .map(|block| ((block.order, block.number), block))
        .collect();
    let mut said = BTreeSet::new();
    let mut cases = Vec::new();
    let of_known = |(_, sample): &(_, &Sample)| subject.places.contains_key(&*sample.processor);
    for (file, sample) in sample_tables(profile).filter(of_known) {
        let (order, number) = (sample.order, sample.block);
        let rejected = file == "rejected.csv";
        let wrong = match blocks.get(&(order, number)) {
            None => "which blocks.csv does not have",
            Some(block) if block.processor != sample.processor => {
                "which blocks.csv says to be of another processor"
            }
            Some(block) if block.rejection.is_some() && !rejected => {
                "which blocks.csv says was rejected"
            }
            Some(block) if block.rejection.is_none() && rejected => "which blocks.csv says counts",
            Some(_) => continue,
        };
        if said.insert((file, order, number)) {
            cases.push(format!(
                "{file} has rows of block {number} of order {order}, {wrong}"
            ));
        }
    }
    cases
}

/// Every row of `samples.csv` and `rejected.csv`, with its file.
fn sample_tables(profile: &Profile) -> impl Iterator<Item = (&'static str, &Sample)> {
    let samples = profile.samples.iter().map(|row| ("samples.csv", row));
    let rejected = profile.rejected.iter().map(|row| ("rejected.csv", row));
    samples.chain(rejected)
}

fn zero_durations(subject: &Subject<'_>) -> Vec<String> {
    let samples = subject.profile.samples.iter();
    samples
        .filter(|sample| sample.duration.as_nanos() == 0)
        .map(|sample| {
            format!(
                "index {} in order {} of samples.csv took no time",
                sample.index, sample.order
            )
        })
        .collect()
}

//! Are the rows the ones that the header promises: all of them, and no others?

use std::collections::{BTreeMap, BTreeSet};

use super::order::{disorder, duplicates};
use super::{Findings, Key, Rule, Subject};
use crate::document::{Measurement, Profile, Rejected, Sample};
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
    let in_unsupported = profile
        .unsupported
        .iter()
        .map(|row| ("unsupported.csv", &row.processor));
    let in_loads = profile
        .loads
        .iter()
        .map(|row| ("loads.csv", &row.processor));
    let in_placements = profile
        .placements
        .iter()
        .map(|row| ("placements.csv", &row.processor));
    let in_probes = profile
        .probes
        .iter()
        .map(|row| ("probes.csv", &row.processor));
    in_times
        .chain(in_probes)
        .chain(in_cuts)
        .chain(in_unsupported)
        .chain(in_loads)
        .chain(in_placements)
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
    let in_unsupported = profile
        .unsupported
        .iter()
        .map(|row| ("unsupported.csv", row.segment.last()));
    let in_loads = profile
        .loads
        .iter()
        .map(|row| ("loads.csv", row.segment.last()));
    let in_placements = profile
        .placements
        .iter()
        .map(|row| ("placements.csv", row.segment.last()));
    let beyond = in_segments
        .chain(in_samples)
        .chain(in_unsupported)
        .chain(in_loads)
        .chain(in_placements)
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

fn missing(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let mut cases = Vec::new();
    let mut timed: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for row in &profile.times {
        timed.entry(&row.processor).or_default().insert(row.layer);
    }
    for processor in subject.places.keys() {
        let there = timed.get(processor);
        let absent = |layer: &u32| {
            let has_row = there.is_some_and(|layers| layers.contains(layer));
            !has_row && profile.why_unsupported(processor, *layer).is_none()
        };
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
        let supported = subject.supported(processor);
        if measurement.method.is_least_squares() {
            let cuts = profile.cuts.iter().filter(|row| row.processor == processor);
            let there: BTreeSet<u32> = cuts.map(|row| row.after_layer).collect();
            let is_cut = |layer: &u32| {
                let pair = Segment::new(*layer, layer + 1).ok();
                pair.is_some_and(|pair| supported.stretch_of(pair).is_some())
            };
            let mut between = (1..subject.layers).filter(is_cut);
            let absent = between.find(|layer| !there.contains(layer));
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
            .iter_on(&supported)
            .find(|&segment| !there.contains(&segment) && !subject.lacks(processor, segment));
        let unloaded = unloaded(subject, processor, &there);
        cases.extend(unloaded.map(|segment| {
            format!(
                "loads.csv has no row of layers {segment} on `{processor}`, which have samples there"
            )
        }));
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

/// The first segment that was measured on a processor without having been loaded. Profiles from before loads were
/// published have none at all.
fn unloaded(
    subject: &Subject<'_>,
    processor: &str,
    measured: &BTreeSet<Segment>,
) -> Option<Segment> {
    let loads = subject.profile.loads.iter();
    let loaded: BTreeSet<Segment> = loads
        .filter(|load| load.processor == processor)
        .map(|load| load.segment)
        .collect();
    let mut measured = measured.iter().copied();
    measured.find(|segment| {
        let is_known = segment.last() <= subject.layers;
        is_known && !loaded.is_empty() && !loaded.contains(segment)
    })
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
            let supported = subject.supported(&measurement.processor);
            (!measurement.design.contains_on(&supported, segment)).then(|| {
                format!(
                    "layers {segment} on `{}` have rows, and its design {} does not ask for them",
                    measurement.processor, measurement.design
                )
            })
        })
        .collect()
}

/// Segments with another number of samples, or of visits, than the header says.
fn sample_counts(subject: &Subject<'_>) -> Vec<String> {
    let taken = taken(subject);
    let keys: BTreeSet<_> = subject.segments.keys().chain(taken.keys()).collect();
    let nothing = BTreeMap::new();
    let mut cases = Vec::new();
    for key in keys {
        let Some(measurement) = subject.measurement(key.0) else {
            continue;
        };
        let Measurement {
            processor,
            design,
            samples_per_segment,
            ..
        } = measurement;
        let visits = taken.get(key).unwrap_or(&nothing);
        let found: u64 = visits.values().sum();
        // A design that chooses as it goes gives segments more as it sees fit, and the sentinel is timed around
        // every block, besides.
        let chooses = design.chooses_as_it_goes();
        let may_have_more = chooses || measurement.sentinel == Some(key.1);
        let is_right =
            |found: u64, expected: u64| found == expected || (may_have_more && found > expected);
        if !is_right(found, *samples_per_segment) {
            cases.push(format!(
                "layers {} on `{processor}` have {found} samples, and profile.json says {samples_per_segment}",
                key.1
            ));
        }
        // What it chose itself it may have timed in a single visit.
        let supported = subject.supported(processor);
        let is_chosen = chooses && !design.iter_on(&supported).any(|one| one == key.1);
        let found = visits.len() as u64;
        let expected = measurement.visits.filter(|_| !is_chosen);
        if let Some(expected) = expected
            && !is_right(found, expected)
        {
            cases.push(format!(
                "the samples of layers {} on `{processor}` were taken in {found} visits, and profile.json says {expected}",
                key.1
            ));
        }
    }
    cases
}

/// How many samples of each segment were taken in each visit. Those that do not count because the processor was in another
/// state are among them: they are not measured again.
fn taken(subject: &Subject<'_>) -> BTreeMap<Key, BTreeMap<(u32, u32), u64>> {
    let profile = subject.profile;
    let blocks = profile.blocks.iter();
    let of_other_state: BTreeSet<_> = blocks
        .filter(|block| block.rejection == Some(Rejected::OtherState))
        .map(|block| (block.order, block.number))
        .collect();
    let left_out = profile
        .rejected
        .iter()
        .filter(|sample| of_other_state.contains(&(sample.order, sample.block)));
    let mut taken: BTreeMap<Key, BTreeMap<(u32, u32), u64>> = BTreeMap::new();
    for sample in profile.samples.iter().chain(left_out) {
        if let Some(&place) = subject.places.get(sample.processor.as_str()) {
            let visits = taken.entry((place, sample.segment)).or_default();
            *visits.entry((sample.order, sample.block)).or_default() += 1;
        }
    }
    taken
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

//! Are there two rows about the same thing, and are rows in the order of the format?

use std::collections::BTreeSet;

use super::Subject;
use crate::document::{Profile, Sample};
use crate::segment::Segment;

/// Rows, and evaluations, about what another one is about.
pub(super) fn duplicates(subject: &Subject<'_>) -> Vec<String> {
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
    for (file, rows) in segment_tables(profile) {
        let mut seen = BTreeSet::new();
        for (processor, segment) in rows {
            if !seen.insert((processor, segment)) {
                cases.push(format!(
                    "{file} has two rows of layers {segment} on `{processor}`"
                ));
            }
        }
    }
    let mut placements = BTreeSet::new();
    for row in &profile.placements {
        if !placements.insert((&row.processor, row.segment, &row.provider)) {
            let (processor, segment, provider) = (&row.processor, row.segment, &row.provider);
            cases.push(format!(
                "placements.csv has two rows of layers {segment} on `{processor}` by {provider}"
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
    let mut probes = BTreeSet::new();
    for row in &profile.probes {
        if !probes.insert((row.order, row.block, row.index)) {
            let (order, block, index) = (row.order, row.block, row.index);
            cases.push(format!(
                "probes.csv has two rows of index {index} in block {block} of order {order}"
            ));
        }
    }
    let mut evaluations = BTreeSet::new();
    for one in &profile.evaluations {
        if !evaluations.insert((&one.cpu, &one.accelerator)) {
            let (cpu, accelerator) = (&one.cpu, &one.accelerator);
            cases.push(format!(
                "profile.json has two `evaluations` of `{cpu}` and `{accelerator}`"
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

/// Tables, and the list of evaluations, that are not sorted.
pub(super) fn disorder(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let place = |processor: &str| subject.places.get(processor).copied();
    let times = profile
        .times
        .iter()
        .map(|row| (place(&row.processor), row.layer));
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
    let placements = profile
        .placements
        .iter()
        .map(|row| (place(&row.processor), row.segment, &row.provider));
    let probes = profile
        .probes
        .iter()
        .map(|row| (place(&row.processor), row.place()));
    let combinations = profile
        .combinations
        .iter()
        .map(|row| (&row.cpu, &row.accelerator, &row.combination));
    let evaluations = profile
        .evaluations
        .iter()
        .map(|one| (&one.cpu, &one.accelerator));
    let of_segments = segment_tables(profile).map(|(file, rows)| {
        let key = |&(processor, segment): &(&str, Segment)| (place(processor), segment);
        let sorted = rows.iter().is_sorted_by_key(key);
        (file, sorted, "processor and segment")
    });
    let others = [
        ("times.csv", times.is_sorted(), "processor and layer"),
        ("cuts.csv", cuts.is_sorted(), "processor and layer"),
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
        (
            "probes.csv",
            probes.is_sorted(),
            "processor, channels, side, layer, order, index and block",
        ),
        (
            "placements.csv",
            placements.is_sorted(),
            "processor, segment and provider",
        ),
        (
            "combinations.csv",
            combinations.is_sorted(),
            "cpu, accelerator and combination",
        ),
    ];
    let tables = others
        .into_iter()
        .chain(of_segments)
        .filter(|(_, sorted, _)| !sorted)
        .map(|(file, _, by)| format!("the rows of {file} are not sorted by {by}"));
    let unsorted = (!evaluations.is_sorted()).then(|| {
        "the `evaluations` of profile.json are not sorted by cpu and accelerator".to_owned()
    });
    tables.chain(unsorted).collect()
}

/// The tables with one row for a processor and a segment, by their file: which processor and segment each row is of.
fn segment_tables(profile: &Profile) -> [(&'static str, Vec<(&str, Segment)>); 3] {
    let segments = profile.segments.iter();
    let unsupported = profile.unsupported.iter();
    let loads = profile.loads.iter();
    [
        (
            "segments.csv",
            segments.map(|row| (&*row.processor, row.segment)).collect(),
        ),
        (
            "unsupported.csv",
            unsupported
                .map(|row| (&*row.processor, row.segment))
                .collect(),
        ),
        (
            "loads.csv",
            loads.map(|row| (&*row.processor, row.segment)).collect(),
        ),
    ]
}

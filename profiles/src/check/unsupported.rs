//! Is nothing said of what `unsupported.csv` says that a processor cannot run?

use std::collections::BTreeSet;

use super::{Findings, Rule, Subject};
use crate::segment::Segment;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let rows = &subject.profile.unsupported;
    let reasonless = rows.iter().filter(|row| row.reason.trim().is_empty());
    let reasonless = reasonless.map(|row| {
        format!(
            "unsupported.csv does not say why `{}` cannot run layers {}",
            row.processor, row.segment
        )
    });
    let cases = reasonless
        .chain(timed(subject))
        .chain(measured(subject))
        .chain(held_after_all(subject))
        .chain(sentinels(subject));
    findings.add(Rule::UnsupportedContradiction, cases);
}

/// Layers with times on a processor that cannot run them.
fn timed<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = String> + 'a {
    let times = subject.profile.times.iter();
    times
        .filter(|row| {
            let profile = subject.profile;
            profile.why_unsupported(&row.processor, row.layer).is_some()
        })
        .map(|row| {
            format!(
                "times.csv has a row of layer {} on `{}`, which unsupported.csv says cannot run it",
                row.layer, row.processor
            )
        })
}

/// Segments with samples on a processor that cannot run them, or one of their layers.
fn measured<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = String> + 'a {
    let keys: BTreeSet<_> = subject
        .segments
        .keys()
        .chain(subject.durations.keys())
        .copied()
        .collect();
    keys.into_iter().filter_map(|(place, segment)| {
        let processor = &subject.profile.header.processors.get(place)?.name;
        subject.lacks(processor, segment).then(|| {
            format!(
                "layers {segment} have samples on `{processor}`, which unsupported.csv says cannot run them"
            )
        })
    })
}

/// Segments that are said not to be held by memory that is large enough.
fn held_after_all<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = String> + 'a {
    let rows = subject.profile.unsupported.iter();
    rows.filter_map(|row| {
        let mut processors = subject.profile.header.processors.iter();
        let processor = processors.find(|one| one.name == row.processor)?;
        let (needed, memory) = (row.needed?, processor.memory_bytes?);
        (needed <= memory).then(|| {
            format!(
                "unsupported.csv says that layers {} on `{}` need {needed}, which its memory of {memory} holds",
                row.segment, row.processor
            )
        })
    })
}

/// Sentinels that their processor cannot run.
fn sentinels<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = String> + 'a {
    let measurements = subject.profile.header.measurements.iter();
    measurements.filter_map(|measurement| {
        let (processor, sentinel) = (&measurement.processor, measurement.sentinel?);
        let cannot_run = sentinel.last() > subject.layers || subject.lacks(processor, sentinel);
        cannot_run.then(|| {
            format!("the sentinel on `{processor}` is layers {sentinel}, which it cannot run")
        })
    })
}

impl Subject<'_> {
    /// Whether a processor cannot run `segment`: it is listed, or contains a layer that is, or what memory does not hold.
    pub(super) fn lacks(&self, processor: &str, segment: Segment) -> bool {
        let mut rows = self.profile.unsupported.iter();
        rows.any(|row| {
            let listed = row.segment == segment;
            let is_inherited = row.segment.layers() == 1 || row.needed.is_some();
            let contains_it = is_inherited && row.segment.is_within(segment);
            row.processor == processor && (listed || contains_it)
        })
    }
}

//! Does every number follow from the ones it is said to come from? Each is calculated again.

use std::collections::BTreeMap;

use super::{Findings, Rule, Subject};
use crate::document::{LayerTimeRow, is_histogram_of, layer_times};
use crate::segment::Segment;
use crate::summary::Summary;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    findings.add(Rule::SummaryContradiction, summaries(subject));
    findings.add(Rule::HistogramContradiction, histograms(subject));
    findings.add(Rule::TimeContradiction, times(subject));
}

/// Segments without any sample are left out: that is a wrong number of samples, not a wrong summary.
fn summaries(subject: &Subject<'_>) -> Vec<String> {
    let measured = subject.durations.iter();
    measured
        .filter_map(|(key, durations)| {
            let row = subject.segments.get(key)?;
            let expected = Summary::of(durations)?;
            (row.summary != expected).then(|| {
                format!(
                    "the summary of layers {} on `{}` in segments.csv (median {}) does not follow from \
                     samples.csv (median {})",
                    row.segment,
                    row.processor,
                    exact(row.summary.median.as_nanos()),
                    exact(expected.median.as_nanos())
                )
            })
        })
        .collect()
}

fn histograms(subject: &Subject<'_>) -> Vec<String> {
    let measured = subject.durations.iter();
    measured
        .filter_map(|(key, durations)| {
            let row = subject.segments.get(key)?;
            (!is_histogram_of(&row.histogram, durations)).then(|| {
                format!(
                    "the histogram of layers {} on `{}` in segments.csv does not hold the samples of \
                     samples.csv",
                    row.segment, row.processor
                )
            })
        })
        .collect()
}

/// Times are compared with what the rows of segments.csv give, so that a wrong summary is not reported
/// a second time as a wrong time.
fn times(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let mut cases = Vec::new();
    for measurement in &profile.header.measurements {
        let Some(&place) = subject.places.get(measurement.processor.as_str()) else {
            continue;
        };
        let Some(processor) = profile.header.processors.get(place) else {
            continue;
        };
        let summaries: BTreeMap<Segment, Summary> = subject
            .segments
            .range((place, Segment::single(1))..)
            .take_while(|((of, _), _)| *of == place)
            .map(|((_, segment), row)| (*segment, row.summary))
            .collect();
        // What keeps times from being derived has been found before: a missing row or a wrong method.
        let Ok(expected) = layer_times(processor.kind, measurement, subject.layers, &summaries)
        else {
            continue;
        };
        let rows = profile
            .times
            .iter()
            .filter(|row| row.processor == measurement.processor);
        cases.extend(rows.filter_map(|row| {
            let expected = expected.get((row.layer as usize).checked_sub(1)?)?;
            let case = |reason: String| {
                let LayerTimeRow {
                    layer, processor, ..
                } = row;
                format!("the times of layer {layer} on `{processor}` {reason}")
            };
            if row.method != measurement.method {
                let (row, header) = (row.method, measurement.method);
                return Some(case(format!(
                    "come from {row} according to times.csv and from {header} according to profile.json"
                )));
            }
            (row.time != *expected).then(|| {
                case(format!(
                    "(compute {} ns) do not follow from segments.csv (compute {} ns)",
                    row.time.compute.value.as_nanos(),
                    expected.compute.value.as_nanos()
                ))
            })
        }));
    }
    cases
}

fn exact(nanos: u64) -> String {
    format!("{nanos} ns")
}

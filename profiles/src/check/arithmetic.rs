//! Does every number follow from the ones it is said to come from? Each is calculated again.

use std::collections::BTreeMap;

use super::{Findings, Rule, Subject};
use crate::derive::LayerTime;
use crate::document::{Additivity, CutRow, Derivation, LayerTimeRow, Measurement, Method};
use crate::document::{Timings, derivation, is_histogram_of};
use crate::segment::Segment;
use crate::summary::{Estimate, Summary};
use crate::units::Nanos;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    findings.add(Rule::SummaryContradiction, summaries(subject));
    findings.add(Rule::HistogramContradiction, histograms(subject));
    let derived = derivations(subject);
    findings.add(
        Rule::TimeContradiction,
        derived.iter().flat_map(|(measurement, derivation)| {
            let times = times(subject, measurement, derivation);
            times
                .into_iter()
                .chain(cuts(subject, measurement, derivation))
        }),
    );
    findings.add(Rule::AdditivityContradiction, additivity(subject, &derived));
    findings.add(Rule::SuspectSegments, suspects(&derived));
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

/// What follows from each processor's segments. Times by the papers' formulas are calculated from the rows
/// of segments.csv, so that a wrong summary is not reported a second time as a wrong time.
fn derivations<'a>(subject: &Subject<'a>) -> Vec<(&'a Measurement, Derivation)> {
    let profile = subject.profile;
    let derive = |measurement: &'a Measurement| {
        let place = *subject.places.get(measurement.processor.as_str())?;
        let processor = profile.header.processors.get(place)?;
        let of_processor = (place, Segment::single(1))..;
        let summaries: BTreeMap<Segment, Summary> = subject
            .segments
            .range(of_processor.clone())
            .take_while(|((of, _), _)| *of == place)
            .map(|((_, segment), row)| (*segment, row.summary))
            .collect();
        let durations: BTreeMap<Segment, Vec<Nanos>> = subject
            .durations
            .range(of_processor)
            .take_while(|((of, _), _)| *of == place && measurement.method == Method::Graph)
            .map(|((_, segment), durations)| (*segment, durations.clone()))
            .collect();
        // What keeps times from being derived has been found before: a missing row or a wrong method.
        let timings = Timings {
            summaries,
            durations,
        };
        let supported = subject.supported(&measurement.processor);
        let derived = derivation(processor.kind, measurement, &supported, &timings).ok()?;
        Some((measurement, derived))
    };
    profile
        .header
        .measurements
        .iter()
        .filter_map(derive)
        .collect()
}

fn times(subject: &Subject<'_>, measurement: &Measurement, derivation: &Derivation) -> Vec<String> {
    let rows = subject.profile.times.iter();
    rows.filter(|row| row.processor == measurement.processor)
        .filter_map(|row| {
            let expected = derivation.times.get(&row.layer)?;
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
            (!is_about(row.method, &row.time, expected)).then(|| {
                case(format!(
                    "(compute {} ns) do not follow from segments.csv (compute {} ns)",
                    row.time.compute.value.as_nanos(),
                    expected.compute.value.as_nanos()
                ))
            })
        })
        .collect()
}

fn cuts(subject: &Subject<'_>, measurement: &Measurement, derivation: &Derivation) -> Vec<String> {
    let rows = subject.profile.cuts.iter();
    rows.filter(|row| row.processor == measurement.processor && row.after_layer > 0)
        .filter_map(|row| {
            let CutRow {
                after_layer,
                processor,
                cost,
                method,
            } = row;
            let expected = derivation
                .cuts
                .get(after_layer)
                .filter(|_| *method == measurement.method);
            let follows = expected.is_some_and(|expected| near(*cost, *expected));
            (!follows).then(|| {
                format!(
                    "the cost of the cut after layer {after_layer} on `{processor}` ({} ns by {method}) does \
                     not follow from samples.csv",
                    cost.value.as_nanos()
                )
            })
        })
        .collect()
}

/// Least squares is floating-point arithmetic, whose last digit another machine may round otherwise.
fn is_about(method: Method, found: &LayerTime, expected: &LayerTime) -> bool {
    if method != Method::Graph {
        return found == expected;
    }
    let transfers = |a: Option<Estimate>, b: Option<Estimate>| match (a, b) {
        (Some(a), Some(b)) => near(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    near(found.compute, expected.compute)
        && found.compute_includes == expected.compute_includes
        && transfers(found.to_processor, expected.to_processor)
        && transfers(found.from_processor, expected.from_processor)
}

fn near(found: Estimate, expected: Estimate) -> bool {
    let near = |a: crate::SignedNanos, b| (a - b).as_nanos().unsigned_abs() <= 1;
    near(found.value, expected.value)
        && match (found.ci95, expected.ci95) {
            (Some(found), Some(expected)) => near(found.0, expected.0) && near(found.1, expected.1),
            (found, expected) => found.is_none() && expected.is_none(),
        }
}

fn additivity(subject: &Subject<'_>, derived: &[(&Measurement, Derivation)]) -> Vec<String> {
    let published = &subject.profile.additivity;
    let names: Vec<&str> = derived.iter().map(|(m, _)| m.processor.as_str()).collect();
    let of = |name: &str| -> Vec<&Additivity> {
        published
            .iter()
            .filter(|found| found.processor == name)
            .collect()
    };
    let wrong = derived.iter().filter_map(|(measurement, derivation)| {
        let name = &measurement.processor;
        let follows = match (&derivation.additivity, of(name).as_slice()) {
            (None, []) => true,
            (Some(expected), [found]) => found.is_about(expected),
            _ => false,
        };
        (!follows).then(|| {
            format!("`additivity` of `{name}` in profile.json does not follow from samples.csv")
        })
    });
    let stray = published
        .iter()
        .filter(|found| !names.contains(&found.processor.as_str()))
        .map(|found| {
            let name = &found.processor;
            format!(
                "`additivity` in profile.json tells of `{name}`, of which no times can be derived"
            )
        });
    wrong.chain(stray).collect()
}

/// Segments whose own samples agree but which contradict all others.
fn suspects(derived: &[(&Measurement, Derivation)]) -> Vec<String> {
    derived
        .iter()
        .flat_map(|(measurement, derivation)| {
            derivation.suspects.iter().map(|segment| {
                format!(
                    "the time of layers {segment} on `{}` contradicts those of the other segments and has \
                     lost its weight",
                    measurement.processor
                )
            })
        })
        .collect()
}

fn exact(nanos: u64) -> String {
    format!("{nanos} ns")
}

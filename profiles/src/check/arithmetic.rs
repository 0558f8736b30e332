//! Does every number follow from the ones it is said to come from? Each is calculated again, to the last digit, by what
//! calculated it for publication.

use std::collections::BTreeMap;

use super::{Findings, Rule, Subject};
use crate::document::{
    self, Additivity, CutRow, Derivation, LayerTimeRow, Measurement, Method, Moving,
};
use crate::document::{Timings, derivation, is_histogram_of};
use crate::probe::frontiers;
use crate::segment::Segment;
use crate::summary::Summary;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    findings.add(Rule::SummaryContradiction, summaries(subject));
    findings.add(Rule::HistogramContradiction, histograms(subject));
    let (derived, mut underivable) = derivations(subject);
    // A missing row or a wrong method, which keeps times from being derived, has been found before.
    if findings.has_errors() {
        underivable.clear();
    }
    let wrong = derived.iter().flat_map(|(measurement, derivation)| {
        let times = times(subject, measurement, derivation);
        times
            .into_iter()
            .chain(cuts(subject, measurement, derivation))
    });
    let cases: Vec<String> = wrong.chain(underivable).collect();
    findings.add(Rule::TimeContradiction, cases);
    findings.add(Rule::AdditivityContradiction, additivity(subject, &derived));
    findings.add(Rule::MovingContradiction, moving(subject));
    findings.add(Rule::SuspectSegments, suspects(&derived));
}

/// Segments without any sample are left out: that is a wrong number of samples, not a wrong summary.
fn summaries(subject: &Subject<'_>) -> Vec<String> {
    let measured = subject.durations.iter();
    measured
        .filter_map(|(key, durations)| {
            let row = subject.segments.get(key)?;
            let (measurement, observations) = (subject.measurement(key.0), subject.observed.get(&key.0));
            let expected = document::summary(measurement, observations, key.1, durations)?;
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

/// What follows from each processor's segments, and why nothing follows from the others'. Times by the papers' formulas
/// are calculated from the rows of segments.csv, so that a wrong summary is not reported a second time as a wrong time.
fn derivations<'a>(subject: &Subject<'a>) -> (Vec<(&'a Measurement, Derivation)>, Vec<String>) {
    let profile = subject.profile;
    let (mut derived, mut underivable) = (Vec::new(), Vec::new());
    for measurement in &profile.header.measurements {
        let place = subject.places.get(measurement.processor.as_str());
        let Some((&place, processor)) =
            place.and_then(|place| Some((place, profile.header.processors.get(*place)?)))
        else {
            continue;
        };
        let of_processor = (place, Segment::single(1))..;
        let summaries: BTreeMap<Segment, Summary> = subject
            .segments
            .range(of_processor)
            .take_while(|((of, _), _)| *of == place)
            .map(|((_, segment), row)| (*segment, row.summary))
            .collect();
        let timings = Timings {
            summaries,
            observations: subject.observed.get(&place).cloned(),
            moving: subject.probed(&measurement.processor).model,
            frontiers: frontiers(&profile.layers),
        };
        let supported = subject.supported(&measurement.processor);
        match derivation(processor.kind, measurement, &supported, &timings) {
            Ok(found) => derived.push((measurement, found)),
            Err(why) => underivable.push(format!(
                "no times can be derived by the method {}: {why}",
                measurement.method
            )),
        }
    }
    (derived, underivable)
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
            (row.time != *expected).then(|| {
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
            let follows = expected == Some(cost);
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

/// `moving` is what follows from probes.csv and layers.csv, for each processor that has probes or times that rest on them.
fn moving(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let mut cases = Vec::new();
    let mut expected = Vec::new();
    for measurement in &profile.header.measurements {
        let name = &measurement.processor;
        let has_samples = profile.probes.iter().any(|one| one.processor == *name);
        let is_told = profile.moving.iter().any(|one| one.processor == *name);
        if has_samples || is_told || measurement.method == Method::Probed {
            expected.push(subject.probed(name).moving);
        }
    }
    for one in &expected {
        let mut told = profile
            .moving
            .iter()
            .filter(|told| told.processor == one.processor);
        let follows = told.next().is_some_and(|told| told.is_about(one)) && told.next().is_none();
        if !follows {
            let name = &one.processor;
            cases.push(format!(
                "`moving` of `{name}` in profile.json does not follow from probes.csv"
            ));
        }
    }
    let stranger = |told: &&Moving| !expected.iter().any(|one| one.processor == told.processor);
    cases.extend(profile.moving.iter().filter(stranger).map(|told| {
        let name = &told.processor;
        format!("`moving` in profile.json tells of `{name}`, which is no processor of the profile")
    }));
    cases
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
            (Some(expected), [found]) => *found == expected,
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

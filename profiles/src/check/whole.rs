//! Does the whole contradict the sum of its parts, by more than chance explains? Where it does nothing is sound.

use std::collections::BTreeMap;

use super::{Findings, Rule, Subject};
use crate::derive::graph::{
    ErrorVariance, Visit, VisitSamples, WholeAgainstParts, pass_times, whole_against_parts,
};
use crate::document::{Measurement, Method, visit_samples};
use crate::segment::Segment;
use crate::summary::median_of_sorted;

/// How seldom chance may explain a contradiction.
const IMPROBABLE: f64 = 0.001;

/// A contradiction smaller than this share is a property of every real device.
const TOLERATED: f64 = 0.02;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let measurements = subject.profile.header.measurements.iter();
    // The times of an emulator are no device's.
    let real = measurements
        .filter(|measurement| !subject.profile.header.is_emulated(&measurement.processor));
    let contradictions = real.filter_map(|measurement| {
        let found = match measurement.method {
            Method::Median | Method::Robust => of_passes(subject, measurement),
            Method::Graph | Method::Probed => of_segments(subject, measurement),
            // The papers' formulas hold for any segment times; there is nothing left to test.
            Method::Differencing => None,
        }?;
        let contradicts = found.p_value < IMPROBABLE && found.longer.abs() > TOLERATED;
        contradicts.then(|| {
            format!(
                "on `{}` {} takes {:.1} % {} than the sum of its layers with what cuts cost, which chance \
                 explains with a probability of {:.1e}",
                measurement.processor,
                whole(subject, measurement),
                100.0 * found.longer.abs(),
                if found.longer < 0.0 { "less" } else { "more" },
                found.p_value
            )
        })
    });
    findings.add(Rule::SumContradiction, contradictions.collect::<Vec<_>>());
}

/// What is compared with the sum of its layers, in words.
fn whole(subject: &Subject<'_>, measurement: &Measurement) -> String {
    let supported = subject.supported(&measurement.processor);
    let largest = supported.largest().filter(|_| !supported.holds_whole());
    let of_layers = largest.map(|segment| format!("the segment of layers {segment}"));
    of_layers.unwrap_or_else(|| "the whole model".to_owned())
}

/// A processor that is measured in segments, on the longest stretch of layers that it can run: the longest segment that its
/// memory holds of that.
fn of_segments(subject: &Subject<'_>, measurement: &Measurement) -> Option<WholeAgainstParts> {
    measurement.visits?;
    let place = *subject.places.get(measurement.processor.as_str())?;
    let supported = subject.supported(&measurement.processor);
    let stretch = supported.longest()?;
    let observations = subject.observed.get(&place)?.within(stretch);
    let layers = supported.stretch(stretch);
    let held_back = measurement.design.held_back(&layers, measurement.seed);
    whole_against_parts(
        layers.layers(),
        layers.longest()?,
        &observations,
        &held_back,
    )
}

/// A processor that is read in passes: in each visit the times of its layers against the passes at the visit's ends.
fn of_passes(subject: &Subject<'_>, measurement: &Measurement) -> Option<WholeAgainstParts> {
    measurement.visits?;
    let profile = subject.profile;
    let whole = Segment::whole(subject.layers.max(1));
    if measurement.sentinel != Some(whole) {
        return None;
    }
    let samples = visit_samples(measurement, profile.samples.iter(), &profile.blocks);
    let visits = match measurement.method {
        // Their layers add up to them.
        Method::Robust => pass_times(&samples),
        _ => sums_of_medians(&samples, subject.layers),
    };
    let ratios = samples.sentinels.iter().filter_map(|(visit, ends)| {
        let parts = visits.get(visit)?;
        let ends = ends.map(|end| end.as_nanos() as f64);
        Some(((ends[0] * ends[1]).sqrt() / parts).ln())
    });
    let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
    let count = ratios.len() as f64;
    if count < 3.0 {
        return None;
    }
    let mean = ratios.iter().sum::<f64>() / count;
    let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    let error = ErrorVariance {
        variance: squares / (count - 1.0) / count,
        freedom: count - 1.0,
    };
    Some(WholeAgainstParts::new(mean, error))
}

/// The sum of the medians of so many layers' samples in each visit that timed all of them, in ns.
fn sums_of_medians(samples: &VisitSamples, layers: u32) -> BTreeMap<Visit, f64> {
    let mut by_visit: BTreeMap<Visit, (u32, f64)> = BTreeMap::new();
    for layer in 1..=layers {
        for (&visit, times) in samples
            .segments
            .get(&Segment::single(layer))
            .into_iter()
            .flatten()
        {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let (count, sum) = by_visit.entry(visit).or_default();
            *count += 1;
            *sum += median_of_sorted(&sorted).as_nanos() as f64;
        }
    }
    let all = by_visit
        .into_iter()
        .filter(|(_, (count, _))| *count == layers);
    all.map(|(visit, (_, sum))| (visit, sum)).collect()
}

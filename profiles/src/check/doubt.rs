//! Sound numbers that say less than one may hope.

use super::blocks::samples_of_blocks;
use super::{Findings, Rule, Subject};
use crate::document::{self, Disturbance, LayerTimeRow, Profile, SegmentRow};
use crate::summary::{Estimate, Summary};
use crate::units::{Nanos, SignedNanos};

/// Below six samples no two of them enclose the median with 95 % confidence: 2 / 2^5 > 5 %. Where visits are told apart,
/// intervals do not rest on that, and six are what it takes to see how far samples of one segment scatter.
pub const SAMPLES_FOR_AN_INTERVAL: u64 = 6;

/// The largest median absolute deviation, as a share of the median, that is not remarked on.
///
/// 10 % is what a block's sentinel may move before the block is discarded (docs/method.md §5): where half of
/// the samples lie further off than that, a hot block could not be told from a good one.
pub const LARGE_SPREAD: f64 = 0.10;

/// The misfit in per cent below which times add up well enough: what T(L) promises (1 %).
pub const LARGE_MISFIT_PERCENT: f64 = 1.0;

/// Additivity is doubted when chance explains the misfit less often than once in a hundred profiles.
const IMPROBABLE: f64 = 0.01;

/// The largest standard deviation of blocks' sentinels, as a share of them, that is not remarked on.
const UNSTEADY: f64 = 0.03;

/// Of so few blocks no spread is known.
const FEWEST_BLOCKS: usize = 3;

/// So many times as large as their ends explain must the variance of blocks be: else it is the noise of single inferences.
const MORE_THAN_ENDS: f64 = 4.0;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    findings.add(Rule::FewSamples, few_samples(subject));
    findings.add(Rule::LargeSpread, large_spread(subject));
    findings.add(Rule::TwoStates, two_states(subject));
    // What contradicts itself says nothing of the device.
    if !findings.has_errors() {
        findings.add(Rule::Unsteady, unsteady(subject));
        findings.add(Rule::Disturbed, disturbed(subject.profile));
    }
    findings.add(Rule::UnresolvedTimes, unresolved(subject));
    findings.add(Rule::NegativeTimes, negative(subject));
    findings.add(Rule::NotAdditive, not_additive(subject));
    findings.add(Rule::ProbesRefused, probes_refused(subject));
    findings.add(Rule::NotFit, not_fit(subject.profile));
}

/// Why the device was not fit to be measured, where somebody had it measured all the same.
fn not_fit(profile: &document::Profile) -> Vec<String> {
    let Some(fitness) = &profile.header.provenance.fitness else {
        return Vec::new();
    };
    let throttled = |block: &&document::Block| {
        let ends = [&block.before, &block.after];
        let mut status = ends.iter().filter_map(|end| end.conditions.thermal_status);
        let counts = fitness.overridden && block.rejection.is_none();
        counts && status.any(|status| status > 0)
    };
    let throttled = profile.blocks.iter().filter(throttled).count();
    let began = fitness.not_fit.join("; ");
    let began =
        (!began.is_empty()).then(|| format!("the device was not fit to be measured: {began}"));
    let went_on = (throttled > 0)
        .then(|| format!("the device throttled in {throttled} of the blocks that count"));
    began.into_iter().chain(went_on).collect()
}

/// A misfit that is certain but small is a property of every real device; one that is large and uncertain
/// may be noise.
fn not_additive(subject: &Subject<'_>) -> Vec<String> {
    let tested = subject.profile.additivity.iter();
    tested
        .filter(|found| found.misfit_percent >= LARGE_MISFIT_PERCENT)
        .filter_map(|found| {
            let p_value = found.p_value.filter(|p| *p < IMPROBABLE)?;
            Some(format!(
                "the {} long segments on `{}` that were predicted from the others take {:.1} % more or less \
                 than predicted, which noise explains with a probability of {p_value}",
                found.segments.len(),
                found.processor,
                found.misfit_percent
            ))
        })
        .collect()
}

/// Where probes do not divide the costs of cuts, the papers' assumption does, which the profile must not keep to itself.
fn probes_refused(subject: &Subject<'_>) -> Vec<String> {
    let moving = subject.profile.moving.iter();
    let refused = moving.filter_map(|moving| {
        let refusal = moving.refusal?;
        let misfit = moving.line.as_ref().map_or_else(String::new, |line| {
            format!(" (misfit {:.1} %)", line.misfit_percent)
        });
        Some(format!(
            "the {} layers of probes timed on `{}` do not tell moving in from moving out, for {refusal}{misfit}",
            moving.probe_layers, moving.processor
        ))
    });
    refused.collect()
}

fn few_samples(subject: &Subject<'_>) -> Option<String> {
    let rows = &subject.profile.segments;
    let few = |row: &&SegmentRow| row.summary.count < SAMPLES_FOR_AN_INTERVAL;
    let count = rows.iter().filter(few).count();
    let first = rows.iter().find(few)?;
    // Where visits are told apart, the intervals come from their spread.
    let measurements = subject.profile.header.measurements.iter();
    let so_what = match measurements.filter_map(|one| one.visits).next() {
        None => " and so no interval",
        Some(_) => ", too few for their spread to be known",
    };
    Some(format!(
        "{count} of {} segments have fewer than {SAMPLES_FOR_AN_INTERVAL} samples{so_what} \
         (first: layers {} on `{}`, {} samples)",
        rows.len(),
        first.segment,
        first.processor,
        first.summary.count
    ))
}

fn large_spread(subject: &Subject<'_>) -> Option<String> {
    let spread = |summary: &Summary| {
        summary.median_absolute_deviation.as_nanos() as f64 / summary.median.as_nanos() as f64
    };
    let rows = &subject.profile.segments;
    let large: Vec<_> = rows
        .iter()
        .filter(|row| spread(&row.summary) > LARGE_SPREAD)
        .collect();
    let worst = large
        .iter()
        .max_by(|a, b| spread(&a.summary).total_cmp(&spread(&b.summary)))?;
    Some(format!(
        "in {} of {} segments half of the samples lie more than {:.0} % from the median \
         (most: layers {} on `{}`, {:.0} %)",
        large.len(),
        rows.len(),
        LARGE_SPREAD * 100.0,
        worst.segment,
        worst.processor,
        spread(&worst.summary) * 100.0
    ))
}

/// Blocks of another state do not count, unless layer times or all intervals would be lost with them.
fn two_states(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let measurements = profile.header.measurements.iter();
    let found = measurements.filter_map(|measurement| {
        let states = document::states(measurement, profile.samples.iter(), &profile.blocks)?;
        Some(format!(
            "`{}` was in two states: {} visits in one, {} in the other, in which everything takes {:.0} % {}, and its \
             times are of both",
            measurement.processor,
            states.usual.len(),
            states.other.len(),
            100.0 * states.longer.abs(),
            if states.longer < 0.0 { "less" } else { "more" }
        ))
    });
    found.collect()
}

/// Intervals hold what differs between visits as far as visits are many and each is another draw. Where a governor's steps or a
/// neighbour last longer than visits, they are neither, and the numbers are of whatever the device did meanwhile.
fn unsteady(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let measurements = profile.header.measurements.iter();
    let found = measurements.filter_map(|measurement| {
        let of_it = profile.blocks.iter().filter(|block| {
            block.processor == measurement.processor && block.rejection.is_none()
        });
        let ends: Vec<(f64, f64)> = of_it
            .map(|block| (logarithm(block.before.sentinel), logarithm(block.after.sentinel)))
            .collect();
        if ends.len() < FEWEST_BLOCKS {
            return None;
        }
        let count = ends.len() as f64;
        let blocks = ends.iter().map(|(before, after)| (before + after) / 2.0);
        let mean = blocks.clone().sum::<f64>() / count;
        let variance = blocks.clone().map(|block| (block - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // The variance of the mean of two ends.
        let of_ends = ends.iter().map(|(before, after)| (after - before).powi(2)).sum::<f64>() / (4.0 * count);
        let (least, most) = blocks.fold((f64::MAX, f64::MIN), |(least, most), block| {
            (least.min(block), most.max(block))
        });
        (variance.sqrt() > UNSTEADY && variance > MORE_THAN_ENDS * of_ends).then(|| {
            format!(
                "the whole model took up to {:.0} % longer in some of the {count} blocks on `{}` that count than in others \
                 (standard deviation {:.0} %)",
                100.0 * (most - least).exp_m1(),
                measurement.processor,
                100.0 * variance.sqrt()
            )
        })
    });
    found.collect()
}

/// Blocks are measured again a few times; beside a program that never rests they count as they are.
fn disturbed(profile: &Profile) -> Vec<String> {
    let samples = samples_of_blocks(profile.samples.iter());
    let told = |processor: &str| {
        let of_it = profile
            .blocks
            .iter()
            .filter(|block| block.processor == processor && block.rejection.is_none());
        let blocks: Vec<(Disturbance, u64)> = of_it
            .filter_map(|block| {
                let samples = samples.get(&(block.order, block.number)).copied();
                Some((block.disturbance?, samples.unwrap_or(0)))
            })
            .collect();
        let count = blocks
            .iter()
            .filter(|(told, samples)| told.is_too_much(*samples))
            .count();
        (count > 0).then(|| {
            let crowded: u64 = blocks.iter().map(|(told, _)| told.crowded_samples).sum();
            let samples: u64 = blocks.iter().map(|(_, samples)| samples).sum();
            let stolen = blocks.iter().map(|(told, _)| told.stolen_percent).max();
            format!(
                "{count} of {} blocks on `{processor}` count although other programs ran: {crowded} of {samples} samples began \
                 beside them, and up to {} % of the cores' time were stolen",
                blocks.len(),
                stolen.unwrap_or(0)
            )
        })
    };
    let processors = profile.header.processors.iter();
    processors
        .filter_map(|processor| told(&processor.name))
        .collect()
}

fn logarithm(time: Nanos) -> f64 {
    (time.as_nanos().max(1) as f64).ln()
}

/// All times of the profile with their row and what they are.
fn estimates<'a>(
    subject: &Subject<'a>,
) -> impl Iterator<Item = (&'a LayerTimeRow, &'static str, Estimate)> {
    subject.profile.times.iter().flat_map(|row| {
        let time = &row.time;
        let transfers = [
            ("to_processor", time.to_processor),
            ("from_processor", time.from_processor),
        ];
        std::iter::once((row, "compute", time.compute)).chain(
            transfers
                .into_iter()
                .filter_map(move |(name, estimate)| Some((row, name, estimate?))),
        )
    })
}

fn unresolved(subject: &Subject<'_>) -> Option<String> {
    tell(subject, Estimate::is_unresolved, "cannot be told from zero")
}

/// A negative number within noise of zero is unresolved; one beyond it contradicts an assumption.
fn negative(subject: &Subject<'_>) -> Option<String> {
    let negative =
        |estimate: &Estimate| estimate.value < SignedNanos::ZERO && !estimate.is_unresolved();
    tell(subject, negative, "are below zero by more than noise")
}

fn tell(subject: &Subject<'_>, doubtful: impl Fn(&Estimate) -> bool, what: &str) -> Option<String> {
    let total = estimates(subject).count();
    let mut cases = estimates(subject).filter(|(_, _, estimate)| doubtful(estimate));
    let (row, name, estimate) = cases.next()?;
    let count = 1 + cases.count();
    let interval = estimate.ci95.map_or_else(String::new, |(low, high)| {
        format!(", 95 % in {low} to {high}")
    });
    Some(format!(
        "{count} of {total} times {what} (first: {name} of layer {} on `{}`, {}{interval})",
        row.layer, row.processor, estimate.value
    ))
}

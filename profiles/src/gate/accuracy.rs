//! The accuracies that a gate tests: with all layers on one processor, and with each layer alone elsewhere.
//!
//! Both profiles answered the same images, and what both get right or wrong alike would cancel. What they answered to each
//! image is not published, so that the errors are taken as independent: they are larger than they would be.

use super::{Candidate, GatedNumber, normal_error};
use crate::accuracy::{Tally, is_reference};
use crate::derive::graph::ErrorVariance;
use crate::document::{CombinationRow, Evaluation, Profile};

/// Published shares have six decimals.
const ROUNDING: f64 = 2e-6;

/// The accuracies that both profiles measured on the same processors by the same images.
pub(super) fn candidates(one: &Profile, other: &Profile) -> Vec<Candidate> {
    let evaluations = one.evaluations.iter();
    let common = evaluations.filter_map(|ours| {
        let theirs = other
            .evaluations
            .iter()
            .find(|theirs| is_same(ours, theirs));
        theirs.map(|theirs| (ours, theirs))
    });
    common
        .flat_map(|(ours, theirs)| of_evaluation((one, ours), (other, theirs)))
        .collect()
}

/// Whether the same was asked.
fn is_same(one: &Evaluation, other: &Evaluation) -> bool {
    let asked = |evaluation: &Evaluation| {
        (
            evaluation.cpu.clone(),
            evaluation.accelerator.clone(),
            evaluation.set_sha256.clone(),
            evaluation.answers,
            evaluation.seed,
            evaluation.as_runs,
        )
    };
    asked(one) == asked(other) && one.metric == other.metric
}

fn of_evaluation(
    (one, ours): (&Profile, &Evaluation),
    (other, theirs): (&Profile, &Evaluation),
) -> Vec<Candidate> {
    let processors = ours.processors(&one.header);
    let supported: Vec<_> = processors.iter().map(|name| one.supported(name)).collect();
    let candidate = |row: &CombinationRow| {
        let counterpart = rows(other, theirs).find(|found| found.combination == row.combination)?;
        let number = GatedNumber::Accuracy {
            processors: processors.iter().map(ToString::to_string).collect(),
            placement: row.combination.clone(),
        };
        let (worse, errors) = match row.combination.is_all_on(0) {
            // Losses are differences to it; that it differs is what its own score says.
            true => (
                row.score - counterpart.score,
                [of_score(row.tally), of_score(counterpart.tally)],
            ),
            false => (
                counterpart.loss - row.loss,
                [of_loss(row), of_loss(counterpart)],
            ),
        };
        Some(Candidate {
            number,
            one: row.score,
            other: counterpart.score,
            worse,
            errors,
            between: None,
            rounding: ROUNDING,
        })
    };
    rows(one, ours)
        .filter(|row| is_reference(&row.combination, &supported))
        .filter_map(candidate)
        .collect()
}

/// What an evaluation measured.
fn rows<'a>(
    profile: &'a Profile,
    evaluation: &'a Evaluation,
) -> impl Iterator<Item = &'a CombinationRow> {
    profile
        .combinations
        .iter()
        .filter(|row| row.cpu == evaluation.cpu && row.accelerator == evaluation.accelerator)
}

fn of_loss(row: &CombinationRow) -> ErrorVariance {
    let (low, high) = row.loss_ci95;
    normal_error((high - low) / 2.0)
}

/// A score of so many things found or not is about a share of them.
fn of_score(tally: Tally) -> ErrorVariance {
    let score = tally.score();
    let things = tally.hits as f64 + (tally.false_alarms as f64 + tally.misses as f64) / 2.0;
    ErrorVariance {
        variance: score * (1.0 - score) / things.max(1.0),
        freedom: f64::INFINITY,
    }
}

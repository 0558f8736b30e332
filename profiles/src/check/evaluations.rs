//! Do the losses of `combinations.csv` follow from what was answered, and `evaluations` from the rows?

use std::collections::{BTreeMap, BTreeSet};

use super::{Findings, Rule, Subject};
use crate::accuracy::{
    Metric, Part, chosen_in_version_3, chosen_placements, interval_centre, number_of_placements,
};
use crate::document::{CombinationRow, Evaluation, rounded};

/// A row's last digit.
const DIGIT: f64 = 1e-6;

/// What rounding two numbers to their last digit can make of their sum, and what adding floating-point numbers can.
const ROUNDED_TWICE: f64 = DIGIT * 1.001;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    // Rows that are missing, or of other layers, have been found before.
    if findings.has_errors() {
        return;
    }
    let evaluations = subject.profile.evaluations.iter();
    let cases: Vec<String> = evaluations.flat_map(|one| of_one(subject, one)).collect();
    findings.add(Rule::CombinationContradiction, cases);
}

fn of_one(subject: &Subject<'_>, evaluation: &Evaluation) -> Vec<String> {
    let rows = subject.profile.combinations.iter();
    let rows: Vec<&CombinationRow> = rows
        .filter(|row| row.cpu == evaluation.cpu && row.accelerator == evaluation.accelerator)
        .collect();
    let baseline = rows
        .iter()
        .find(|row| row.combination.is_all_on(0))
        .copied();
    let Some(baseline) = baseline else {
        return Vec::new();
    };
    let mut cases = Vec::new();
    if evaluation.answers != baseline.answers {
        cases.push(format!(
            "all layers on `{}` have {} answers in combinations.csv, and `evaluations` say {}",
            evaluation.cpu, baseline.answers, evaluation.answers
        ));
    }
    cases.extend(settings(evaluation));
    cases.extend(operations(subject, evaluation, &rows));
    cases.extend(other_placements(subject, evaluation, &rows));
    for row in &rows {
        let wrong =
            wrong_answers(evaluation, row).or_else(|| wrong_loss(evaluation, row, baseline));
        let wrong = wrong.or_else(|| wrong_interval(row, baseline));
        cases.extend(wrong.map(|wrong| format!("{wrong} of {} {}", row.combination, WHY)));
    }
    cases.extend(different_truths(&rows));
    cases
}

const WHY: &str = "does not follow from what was answered";

/// What nothing else determines, and still cannot be.
fn settings(evaluation: &Evaluation) -> Option<String> {
    let Evaluation {
        stop_at_half_width,
        preprocessing,
        ..
    } = evaluation;
    let is_share = |share: f64| share > 0.0 && share < 1.0;
    let finite =
        preprocessing.mean.iter().all(|mean| mean.is_finite()) && preprocessing.scale.is_finite();
    let possible = finite && preprocessing.scale != 0.0 && stop_at_half_width.is_none_or(is_share);
    (!possible).then(|| {
        "`preprocessing` or `stop_at_half_width` of an evaluation cannot be as they are".to_owned()
    })
}

/// How many operations the rows would have taken one by one, and whether fewer were executed.
fn operations(
    subject: &Subject<'_>,
    evaluation: &Evaluation,
    rows: &[&CombinationRow],
) -> Option<String> {
    let layers = subject.profile.layers.iter();
    let each: u128 = layers
        .map(|layer| u128::from(layer.additions) + u128::from(layer.multiplications))
        .sum();
    let each = each * evaluation.metric.images_per_answer() as u128;
    let answers: u128 = rows.iter().map(|row| u128::from(row.answers)).sum();
    let (executed, naive) = (
        u128::from(evaluation.executed_flop),
        u128::from(evaluation.naive_flop),
    );
    let at_least = each * u128::from(evaluation.answers);
    (naive != each * answers || !(at_least..=naive).contains(&executed)).then(|| {
        format!(
            "`naive_flop` {naive} or `executed_flop` {executed} do not follow from layers.csv and the answers: {}, and \
             from {at_least} to that",
            each * answers
        )
    })
}

/// The first placement that the seed does not choose, or chooses for something else, and the first that is missing.
fn other_placements(
    subject: &Subject<'_>,
    evaluation: &Evaluation,
    rows: &[&CombinationRow],
) -> Option<String> {
    let processors = evaluation.processors(&subject.profile.header);
    let supported: Vec<_> = processors
        .iter()
        .map(|name| subject.supported(name))
        .collect();
    let found: BTreeSet<_> = rows
        .iter()
        .map(|row| (row.combination.clone(), row.part))
        .collect();
    let expected: BTreeSet<_> = match evaluation.samples {
        // These were asked for one by one.
        0 => found
            .iter()
            .map(|(one, _)| (one.clone(), Part::Reference))
            .collect(),
        // As many as there are rows at most, unless there are no more: a changed number must not take years to draw.
        samples
            if u128::from(samples).min(number_of_placements(&supported) - 1)
                > rows.len() as u128 =>
        {
            BTreeSet::new()
        }
        samples => {
            let samples = usize::try_from(samples).unwrap_or(usize::MAX);
            let once: BTreeSet<_> = chosen_in_version_3(&supported, samples, evaluation.seed)
                .into_iter()
                .collect();
            if found == once {
                return None;
            }
            chosen_placements(&supported, samples, evaluation.seed)
                .into_iter()
                .collect()
        }
    };
    let stranger = found.symmetric_difference(&expected).next()?;
    let (combination, _) = stranger;
    Some(format!(
        "combination {combination}, or its part, is not what `samples` {} and `seed` {} choose",
        evaluation.samples, evaluation.seed
    ))
}

/// Counts of answers that cannot be.
fn wrong_answers(evaluation: &Evaluation, row: &CombinationRow) -> Option<&'static str> {
    let tally = row.tally;
    let whole = matches!(
        evaluation.metric,
        Metric::TopK { .. } | Metric::Verification { .. }
    );
    let wrong_as_a_whole = tally.hits.checked_add(tally.misses) != Some(row.answers)
        || tally.false_alarms != tally.misses;
    let stopped = row.answers != evaluation.answers;
    let may_stop = row.answers > 0
        && row.answers < evaluation.answers
        && evaluation.stop_at_half_width.is_some_and(|target| {
            let (low, high) = row.loss_ci95;
            (high - low) / 2.0 <= target + DIGIT
        });
    match (whole && wrong_as_a_whole, stopped && !may_stop) {
        (true, _) => Some("the number of hits, false alarms and misses"),
        (_, true) => Some("the number of answers"),
        (false, false) => None,
    }
}

/// A loss that is not the difference of the two scores. What all layers on the CPU have on fewer answers is not published,
/// but it is the same for all rows of so many answers.
fn wrong_loss(
    evaluation: &Evaluation,
    row: &CombinationRow,
    baseline: &CombinationRow,
) -> Option<&'static str> {
    let expected = rounded(baseline.tally.score() - row.tally.score());
    let complete = row.answers == evaluation.answers;
    let wrong = match complete {
        true => row.loss != expected,
        false => !(0.0 - DIGIT..=1.0 + DIGIT).contains(&(row.loss + row.score)),
    };
    wrong.then_some("the loss")
}

/// An interval that does not lie around its loss. How wide it is depends on which answers differ, which is not published.
fn wrong_interval(row: &CombinationRow, baseline: &CombinationRow) -> Option<&'static str> {
    let (low, high) = row.loss_ci95;
    let complete = row.answers == baseline.answers;
    let (loss, rounding) = match complete {
        true => (baseline.tally.score() - row.tally.score(), ROUNDED_TWICE),
        // The loss itself is rounded, too, and counts twice.
        false => (row.loss, 2.0 * ROUNDED_TWICE),
    };
    let wrong = match std::ptr::eq(row, baseline) {
        true => (low, high) != (0.0, 0.0),
        false => {
            let off = low + high - 2.0 * interval_centre(loss, row.answers);
            low >= high || off.abs() > rounding
        }
    };
    wrong.then_some("the interval of the loss")
}

/// Rows that were judged by other truths than those of as many answers, or against another baseline.
fn different_truths(rows: &[&CombinationRow]) -> Vec<String> {
    let mut first_of: BTreeMap<u64, &CombinationRow> = BTreeMap::new();
    let mut cases = Vec::new();
    for row in rows {
        let first = *first_of.entry(row.answers).or_insert(row);
        let there = |row: &CombinationRow| row.tally.hits.checked_add(row.tally.misses);
        if there(row) != there(first) {
            cases.push(format!(
                "{} and {} gave {} answers, and hits and misses are not together as many",
                first.combination, row.combination, row.answers
            ));
        }
        let against = |row: &CombinationRow| row.score + row.loss;
        if (against(row) - against(first)).abs() > 2.0 * ROUNDED_TWICE {
            cases.push(format!(
                "{} and {} gave {} answers, and score and loss are not together the same",
                first.combination, row.combination, row.answers
            ));
        }
    }
    cases
}

//! Do the rows of `combinations.csv` follow from each other, from `layers.csv` and from `profile.json`?

use std::collections::BTreeSet;

use super::{Findings, Rule, Subject};
use crate::accuracy::features;
use crate::document::{CombinationRow, Evaluation, rounded, single_losses};

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let profile = subject.profile;
    let mut cases = Vec::new();
    let evaluation_of = |row: &CombinationRow| {
        let mut evaluations = profile.evaluations.iter();
        evaluations.find(|e| e.cpu == row.cpu && e.accelerator == row.accelerator)
    };
    let stray = profile
        .combinations
        .iter()
        .find(|row| evaluation_of(row).is_none());
    cases.extend(stray.map(|row| {
        format!(
            "combinations.csv has rows of `{}` and `{}`, of which `evaluations` does not speak",
            row.cpu, row.accelerator
        )
    }));
    for evaluation in &profile.evaluations {
        cases.extend(of_one(subject, evaluation));
    }
    findings.add(Rule::CombinationContradiction, cases);
}

fn of_one(subject: &Subject<'_>, evaluation: &Evaluation) -> Vec<String> {
    let mut cases = Vec::new();
    let profile = subject.profile;
    let Evaluation {
        cpu, accelerator, ..
    } = evaluation;
    let processors = evaluation.processors(&profile.header);
    for &name in &processors {
        if !subject.places.contains_key(name) {
            cases.push(format!(
                "`evaluations` speak of `{name}`, which `processors` does not name"
            ));
        }
    }
    let rows: Vec<&CombinationRow> = profile
        .combinations
        .iter()
        .filter(|row| &row.cpu == cpu && &row.accelerator == accelerator)
        .collect();
    let supported: Vec<_> = processors
        .iter()
        .map(|name| subject.supported(name))
        .collect();
    let mut seen = BTreeSet::new();
    for row in &rows {
        let combination = &row.combination;
        if combination.layers() != profile.layers.len() {
            cases.push(format!(
                "combination {combination} is not one of this model"
            ));
            return cases;
        }
        if let Err(error) = combination.refuse_beyond(processors.len()) {
            cases.push(error.to_string());
            return cases;
        }
        let places = (1..).zip(combination.processors());
        let mut impossible = places.filter(|(layer, on)| !supported[usize::from(**on)].has(*layer));
        if let Some((layer, &on)) = impossible.next() {
            cases.push(format!(
                "combination {combination} has layer {layer} on `{}`, which unsupported.csv says cannot run it",
                processors[usize::from(on)]
            ));
        }
        if !seen.insert(combination) {
            cases.push(format!("combinations.csv has two rows of {combination}"));
        }
        if row.score != rounded(row.tally.score()) {
            cases.push(format!(
                "the score {} of {combination} does not follow from its hits, false alarms and misses",
                row.score
            ));
        }
    }
    let owned: Vec<CombinationRow> = rows.iter().map(|&row| row.clone()).collect();
    let singles = single_losses(&supported, &owned);
    let is_baseline = |row: &&CombinationRow| row.combination.is_all_on(0);
    let (Ok(singles), true) = (singles, rows.iter().any(is_baseline)) else {
        cases.push(format!(
            "combinations.csv lacks all layers on `{cpu}`, or a layer alone on `{accelerator}`"
        ));
        return cases;
    };
    for row in rows {
        let mut expected = features(&profile.layers, &singles, &row.combination);
        expected.mean_single_loss = rounded(expected.mean_single_loss);
        if row.features != expected {
            cases.push(format!(
                "the features of {} do not follow from layers.csv and the losses of single layers",
                row.combination
            ));
        }
    }
    cases
}

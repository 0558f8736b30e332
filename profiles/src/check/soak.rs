//! Are the times of the state that the profile says, and does what it says of the way there follow from what was timed?

use std::collections::BTreeSet;

use super::{Findings, Rule, Subject, check_into};
use crate::document::{Profile, STEADY_FOLDER, SoakPhase, SoakRow, Soaking};
use crate::soak::Thermal;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let profile = subject.profile;
    findings.add(
        Rule::ThermalContradiction,
        state(profile).into_iter().chain(beside(profile)),
    );
    findings.add(
        Rule::SoakContradiction,
        rows(subject).into_iter().chain(derived(profile)),
    );
    if let Some(steady) = &profile.steady {
        let mut of_steady = Findings::default();
        check_into(steady, &mut of_steady);
        findings
            .0
            .extend(of_steady.0.into_iter().map(|finding| super::Finding {
                sentence: format!("in {STEADY_FOLDER}: {}", finding.sentence),
                ..finding
            }));
    }
}

/// A hot device's times can never pass for a cool one's: what was timed to heat it must be there, and nowhere else.
fn state(profile: &Profile) -> Vec<String> {
    let soaking = &profile.soaking;
    let has_any = *soaking != Soaking::default();
    let mut cases = Vec::new();
    match profile.header.thermal {
        Thermal::Cold if has_any => cases.push(
            "profile.json does not call its times steady, and soak.csv, minutes.csv or `soaks` says how the device became so"
                .to_owned(),
        ),
        Thermal::Steady => {
            let kept_busy = |name: &str| soaking.rows.iter().any(|row| row.processor == name);
            let names: BTreeSet<&str> = profile
                .samples
                .iter()
                .map(|sample| sample.processor.as_str())
                .collect();
            if names.is_empty() && !has_any {
                cases.push("profile.json calls its times steady, and nothing was kept busy".to_owned());
            }
            cases.extend(names.into_iter().filter(|name| !kept_busy(name)).map(|name| {
                format!("profile.json calls its times steady, and soak.csv has no row of `{name}`")
            }));
            let gaps = profile.header.measurements.iter();
            let gaps = gaps.filter(|one| one.gap_ns > crate::units::Nanos::ZERO);
            cases.extend(gaps.map(|one| {
                format!(
                    "profile.json calls its times steady, and `{}` idled for {} before each inference",
                    one.processor, one.gap_ns
                )
            }));
        }
        Thermal::Cold => {}
    }
    cases
}

/// The steady profile beside a cool device's must be of the same model on the same device.
fn beside(profile: &Profile) -> Vec<String> {
    let Some(steady) = &profile.steady else {
        return Vec::new();
    };
    let (ours, theirs) = (&profile.header, &steady.header);
    let same = [
        (
            ours.thermal == Thermal::Cold,
            "beside times that are steady themselves",
        ),
        (
            theirs.thermal == Thermal::Steady,
            "of times that it does not call steady",
        ),
        (
            ours.model == theirs.model && profile.layers == steady.layers,
            "of another model",
        ),
        (
            ours.device == theirs.device && ours.simulated == theirs.simulated,
            "of another device",
        ),
        (ours.processors == theirs.processors, "of other processors"),
        (steady.steady.is_none(), "with another one beside it"),
    ];
    let wrong = same.into_iter().filter(|(is_so, _)| !is_so);
    wrong
        .map(|(_, what)| format!("{STEADY_FOLDER} has a profile {what}"))
        .collect()
}

/// Rows that cannot have been timed so.
fn rows(subject: &Subject<'_>) -> Vec<String> {
    let profile = subject.profile;
    let rows = &profile.soaking.rows;
    let mut cases = Vec::new();
    let known = |row: &&SoakRow| subject.places.contains_key(row.processor.as_str());
    cases.extend(rows.iter().filter(|row| !known(row)).map(|row| {
        format!(
            "soak.csv has a row of `{}`, which profile.json does not name",
            row.processor
        )
    }));
    let empty = rows.iter().filter(|row| {
        row.runs == 0
            || row.median.as_nanos() == 0
            || (row.phase == SoakPhase::Rested && row.runs != 1)
    });
    cases.extend(empty.map(|row| {
        format!(
            "soak.csv has {} inferences of {} in one row of `{}`, {}",
            row.runs,
            row.median,
            row.processor,
            match row.phase {
                SoakPhase::Rested => "each of which is one after a rest",
                SoakPhase::Busy => "which has some that take time",
            }
        )
    }));
    // Half of a slice's inferences take no less than their median.
    let least = |row: &SoakRow| {
        let half = row.runs.div_ceil(2);
        row.started
            .as_nanos()
            .saturating_add(row.median.as_nanos().saturating_mul(half))
    };
    let pairs = rows.windows(2).filter(|pair| {
        pair[0].processor == pair[1].processor && least(&pair[0]) > pair[1].started.as_nanos()
    });
    cases.extend(pairs.map(|pair| {
        format!(
            "soak.csv has inferences of `{}` that began at {} ns and were not over at {} ns, when the next began",
            pair[0].processor,
            pair[0].started.as_nanos(),
            pair[1].started.as_nanos()
        )
    }));
    for name in subject.places.keys() {
        let of_it = |row: &&SoakRow| row.processor == *name;
        let last = rows.iter().filter(of_it).map(|row| row.order).max();
        let samples = profile.samples.iter().chain(&profile.rejected);
        let first = samples
            .filter(|sample| sample.processor == *name)
            .map(|sample| sample.order)
            .min();
        // By orders and not by time: the clock of an agent that was killed may begin anew.
        if let (Some(last), Some(first)) = (last, first)
            && first < last
        {
            cases.push(format!(
                "samples of `{name}` were taken before it had been kept busy, as soak.csv has it"
            ));
        }
    }
    cases
}

/// Whatever of minutes.csv and `soaks` does not follow from soak.csv.
fn derived(profile: &Profile) -> Vec<String> {
    let soaking = &profile.soaking;
    let again = match Soaking::of(&profile.header, soaking.rows.clone()) {
        Ok(again) => again,
        Err(error) => return vec![format!("soak.csv: {error}")],
    };
    let mut cases = Vec::new();
    if again.rows != soaking.rows {
        cases.push(
            "the rows of soak.csv are not in the order of processors, phases and time".to_owned(),
        );
    }
    let differ = again.minutes.iter().zip(&soaking.minutes);
    let minute = differ
        .filter(|(again, found)| again != found)
        .map(|(again, _)| {
            format!(
                "minute {} of `{}` in minutes.csv is not what soak.csv has",
                again.minute, again.processor
            )
        });
    cases.extend(minute);
    if again.minutes.len() != soaking.minutes.len() {
        cases.push(format!(
            "minutes.csv has {} rows, and soak.csv {} minutes",
            soaking.minutes.len(),
            again.minutes.len()
        ));
    }
    if again.found.len() != soaking.found.len() {
        cases.push(format!(
            "`soaks` has {} processors, and soak.csv {}",
            soaking.found.len(),
            again.found.len()
        ));
    }
    let soaks = again.found.iter().zip(&soaking.found);
    let soaks = soaks.filter(|(again, found)| again != found);
    cases.extend(soaks.map(|(again, _)| {
        format!(
            "`soaks` of `{}` does not follow from soak.csv",
            again.processor
        )
    }));
    cases
}

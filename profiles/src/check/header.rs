//! Does `profile.json` agree with itself?

use std::collections::BTreeSet;

use super::utc::utc_seconds;
use super::{Findings, Rule};
use crate::document::{
    Clock, Header, Profile, Provenance, SIMULATED_RUNTIME, refuse_unless_derivable,
};

pub(super) fn check(profile: &Profile, findings: &mut Findings) {
    let header = &profile.header;
    findings.add(Rule::SimulatedContradiction, simulated(header));
    findings.add(Rule::EmulatedContradiction, emulated(header));
    findings.add(Rule::NothingMeasured, nothing_measured(profile));
    findings.add(Rule::MalformedField, malformed(profile));
    findings.add(Rule::DuplicateProcessor, duplicate_processors(header));
    findings.add(Rule::MeasurementMismatch, measurements(header));
}

/// A simulated device can never pass for a real one: all places that say so must agree.
fn simulated(header: &Header) -> Vec<String> {
    let expected = header.simulated;
    let says = |place: String, simulated: bool| {
        let yes_no = |simulated| if simulated { "simulated" } else { "real" };
        (simulated != expected).then(|| {
            format!(
                "profile.json calls itself {} and {place} {}",
                yes_no(expected),
                yes_no(simulated)
            )
        })
    };
    let device = says("its device".to_owned(), header.device.simulated);
    let clock = match header.device.clock {
        Clock::Monotonic => says("its clock".to_owned(), false),
        Clock::SimulatedExact | Clock::SimulatedReal => says("its clock".to_owned(), true),
    };
    let runtimes = header.processors.iter().filter_map(|processor| {
        let simulated = processor.runtime == SIMULATED_RUNTIME;
        // A simulated device may have a processor that really computes, but not the other way round.
        (simulated && !expected)
            .then(|| says(format!("its processor `{}`", processor.name), simulated))
            .flatten()
    });
    device.into_iter().chain(clock).chain(runtimes).collect()
}

/// Likewise an emulated processor for a device's own.
fn emulated(header: &Header) -> Vec<String> {
    let emulated = || header.processors.iter().filter(|one| one.emulated);
    let mut cases = Vec::new();
    match (header.emulated, emulated().next()) {
        (true, None) => cases.push(
            "profile.json calls itself emulated and none of its processors emulated".to_owned(),
        ),
        (false, Some(processor)) => cases.push(format!(
            "profile.json does not call itself emulated and its processor `{}` emulated",
            processor.name
        )),
        (true, Some(_)) | (false, None) => {}
    }
    let both = emulated().filter(|one| one.runtime == SIMULATED_RUNTIME || header.simulated);
    cases.extend(both.map(|one| {
        format!(
            "the processor `{}` is called both simulated and emulated",
            one.name
        )
    }));
    cases
}

fn nothing_measured(profile: &Profile) -> Option<String> {
    let header = &profile.header;
    if header.model.layers == 0 && profile.layers.is_empty() {
        Some("the profile has no layer".to_owned())
    } else if header.processors.is_empty() {
        Some("the profile has no processor".to_owned())
    } else {
        None
    }
}

fn malformed(profile: &Profile) -> Vec<String> {
    let header = &profile.header;
    let mut cases = Vec::new();
    let model = ("`model.sha256`".to_owned(), &header.model.sha256);
    let quantised = header.model.quantised.iter();
    let quantised = quantised.map(|file| ("`model.quantised.sha256`".to_owned(), &file.sha256));
    let weights = header.model.external_weights.iter().flatten();
    let libraries = header.processors.iter().flat_map(|processor| {
        let libraries = processor.runtime_libraries.iter().flatten();
        libraries.map(move |library| (&processor.name, library))
    });
    let weights = weights.map(|file| {
        let place = format!("the SHA-256 of `{}` in `external_weights`", file.name);
        (place, &file.sha256)
    });
    let libraries = libraries.map(|(processor, file)| {
        let place = format!("the SHA-256 of `{}` of `{processor}`", file.name);
        (place, &file.sha256)
    });
    let sets = profile.evaluations.iter().enumerate();
    let sets = sets.map(|(place, evaluation)| {
        let place = format!("`evaluations[{place}].set_sha256`");
        (place, &evaluation.set_sha256)
    });
    let hashes = std::iter::once(model)
        .chain(quantised)
        .chain(weights)
        .chain(libraries)
        .chain(sets);
    cases.extend(
        hashes
            .filter(|(_, hash)| !is_sha256(hash))
            .map(|(place, hash)| {
                format!("{place} is `{hash}`, not 64 lower-case hexadecimal digits")
            }),
    );
    let evaluations = profile.evaluations.iter().enumerate();
    let of_evaluations = evaluations.filter_map(|(place, evaluation)| {
        let provenance = evaluation.provenance.as_ref()?;
        Some((format!("evaluations[{place}].provenance"), provenance))
    });
    let own = ("provenance".to_owned(), &header.provenance);
    for (place, provenance) in std::iter::once(own).chain(of_evaluations) {
        cases.extend(impossible_times(&place, provenance));
    }
    let nameless = header.processors.iter().any(|p| p.name.is_empty());
    cases.extend(nameless.then(|| "a processor has an empty name".to_owned()));
    cases
}

fn is_sha256(hash: &str) -> bool {
    let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    hash.len() == 64 && hash.bytes().all(hexadecimal)
}

/// What is wrong with the instants of the provenance at `place`.
fn impossible_times(place: &str, provenance: &Provenance) -> Vec<String> {
    let (start, end) = (&provenance.started_at, &provenance.finished_at);
    let mut cases = Vec::new();
    for (field, instant) in [("started_at", start), ("finished_at", end)] {
        if utc_seconds(instant).is_none() {
            cases.push(format!(
                "`{place}.{field}` is `{instant}`, no instant such as 2025-01-31T23:59:59Z"
            ));
        }
    }
    // To the second: instants may differ in how many decimals they carry.
    if cases.is_empty() && utc_seconds(end) < utc_seconds(start) {
        cases.push(format!(
            "by `{place}` the run finished at {end}, before {start}"
        ));
    }
    cases
}

fn duplicate_processors(header: &Header) -> Vec<String> {
    let mut seen = BTreeSet::new();
    header
        .processors
        .iter()
        .filter(|processor| !seen.insert(&processor.name))
        .map(|processor| format!("two processors are named `{}`", processor.name))
        .collect()
}

fn measurements(header: &Header) -> Vec<String> {
    let measured = header.measurements.iter().map(|m| &m.processor);
    let named = header.processors.iter().map(|p| &p.name);
    if !measured.eq(named) {
        return vec!["`measurements` are not one for each of `processors`, in order".to_owned()];
    }
    let pairs = header.processors.iter().zip(&header.measurements);
    pairs
        .filter_map(|(processor, measurement)| {
            refuse_unless_derivable(processor.kind, measurement).err()
        })
        .map(|error| error.to_string())
        .collect()
}

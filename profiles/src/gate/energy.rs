//! The energies that a gate tests: of each layer's computing, and of the whole model.
//!
//! What two kinds of meters see is not the same: one reads a battery, another one rail. Energies by different ones are not
//! compared.

use super::{Candidate, GatedNumber};
use crate::compare::names;
use crate::derive::graph::DerivedNumber;
use crate::document::Profile;
use crate::energy::DerivedEnergy;

/// Published energies are whole nanojoules, and sums of such.
const ROUNDING_NJ: f64 = 2.0;

/// The energies that both profiles have with an error, and how many they have without one; nothing where their meters are of
/// different kinds. A layer whose energy contains that of moving in one of them alone is left out.
pub(super) fn candidates(one: &Profile, other: &Profile) -> Option<(Vec<Candidate>, usize)> {
    let source = |profile: &Profile| {
        let energy = profile.energy.as_ref()?;
        Some(energy.found.measurement.meter.source)
    };
    if source(one)? != source(other)? {
        return None;
    }
    let mut found = Vec::new();
    for processor in names(one).filter(|name| names(other).any(|known| known == *name)) {
        let derived = [one, other].map(|profile| profile.derived_energy(processor));
        if let [Some(ours), Some(theirs)] = &derived {
            found.extend(of_processor(processor, ours, theirs));
        }
    }
    let all = found.len();
    let known: Vec<Candidate> = found.into_iter().flatten().collect();
    let untested = all - known.len();
    Some((known, untested))
}

/// Each energy that both have; `None` in the place of one without an error.
fn of_processor(
    processor: &str,
    ours: &DerivedEnergy,
    theirs: &DerivedEnergy,
) -> Vec<Option<Candidate>> {
    let number = |layer| GatedNumber::Energy {
        processor: processor.to_owned(),
        layer,
    };
    let includes = |derived: &DerivedEnergy, layer: u32| {
        let time = derived.layers.get(&layer);
        time.map(|time| time.compute_includes)
    };
    let mut found = Vec::new();
    for (&layer, energy) in &ours.numbers.layers {
        if includes(ours, layer) != includes(theirs, layer) {
            continue;
        }
        if let Some(counterpart) = theirs.numbers.layers.get(&layer) {
            found.push(candidate(number(Some(layer)), energy, counterpart));
        }
    }
    if let (Some(energy), Some(counterpart)) = (&ours.numbers.whole, &theirs.numbers.whole) {
        found.push(candidate(number(None), energy, counterpart));
    }
    found
}

fn candidate(
    number: GatedNumber,
    ours: &DerivedNumber,
    theirs: &DerivedNumber,
) -> Option<Candidate> {
    Some(Candidate {
        number,
        one: ours.value_ns,
        other: theirs.value_ns,
        worse: theirs.value_ns - ours.value_ns,
        errors: [ours.error?, theirs.error?],
        between: None,
        rounding: ROUNDING_NJ,
    })
}

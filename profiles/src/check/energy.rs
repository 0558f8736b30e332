//! Does what is said of energy follow from the windows in which a meter was read, and can those have been?

use std::collections::BTreeSet;

use super::{Findings, Rule, Subject};
use crate::document::{Energy, Profile};
use crate::energy::{EnergyWindow, segments};
use crate::units::Nanos;

/// No phone, nor any machine that runs one network, draws ten kilowatts.
const LARGEST_POWER_UW: f64 = 1e10;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Findings) {
    let Some(energy) = &subject.profile.energy else {
        return;
    };
    let cases = windows(subject, energy)
        .into_iter()
        .chain(overlaps(energy))
        .chain(visits(subject.profile, energy))
        .chain(derived(subject.profile, energy));
    findings.add(Rule::EnergyContradiction, cases);
}

/// Windows that cannot have been measured so.
fn windows(subject: &Subject<'_>, energy: &Energy) -> Vec<String> {
    let shortest = energy.found.measurement.window_ns;
    let layers = subject.profile.header.model.layers;
    let wrong = |window: &EnergyWindow| -> Option<&'static str> {
        let power =
            window.energy.as_nanojoules() as f64 * 1e6 / window.duration.as_nanos().max(1) as f64;
        Some(match window {
            _ if !subject.places.contains_key(window.processor.as_str()) => {
                "of a processor that profile.json does not name"
            }
            _ if window
                .segment
                .is_some_and(|segment| segment.last() > layers) =>
            {
                "of layers that the model does not have"
            }
            _ if window.segment.is_some() != (window.runs > 0) => {
                "in which nothing ran, or something while the device idled"
            }
            _ if window.duration < shortest => "that is shorter than profile.json says",
            _ if window.readings < 2 => "with fewer than two readings",
            _ if power.abs() > LARGEST_POWER_UW => "of more than ten kilowatts",
            _ => return None,
        })
    };
    let described = |window: &EnergyWindow| {
        let what = match window.segment {
            Some(segment) => format!("layers {segment}"),
            None => "the idle device".to_owned(),
        };
        let wrong = wrong(window)?;
        Some(format!(
            "energy.csv has a window of {what}, order {} on `{}`, {wrong}",
            window.order, window.processor
        ))
    };
    energy.windows.iter().filter_map(described).collect()
}

/// Windows of one device, which follow each other.
fn overlaps(energy: &Energy) -> Option<String> {
    let mut windows: Vec<&EnergyWindow> = energy.windows.iter().collect();
    // The agent's clock begins anew where it was started again: orders are told apart.
    windows.sort_by_key(|window| (window.order, window.started));
    let pairs = windows.windows(2);
    let mut overlapping = pairs.filter(|pair| {
        pair[0].order == pair[1].order && pair[0].started + pair[0].duration > pair[1].started
    });
    let first = overlapping.next()?;
    Some(format!(
        "energy.csv has windows of order {} that overlap",
        first[0].order
    ))
}

/// Each segment is measured once in each visit, and nothing else is.
fn visits(profile: &Profile, energy: &Energy) -> Vec<String> {
    let mut cases = Vec::new();
    let visits = energy.found.measurement.visits;
    for processor in &profile.header.processors {
        let of_it = || {
            let windows = energy.windows.iter();
            windows.filter(|window| window.processor == processor.name)
        };
        let orders: BTreeSet<u32> = of_it().map(|window| window.order).collect();
        if orders.is_empty() {
            continue;
        }
        if orders.len() != visits as usize {
            cases.push(format!(
                "energy.csv has {} visits on `{}`, and profile.json says {visits}",
                orders.len(),
                processor.name
            ));
        }
        let expected = segments(processor.kind, &profile.supported(&processor.name));
        for order in orders {
            let of_order = of_it().filter(|window| window.order == order);
            let mut found: Vec<_> = of_order.filter_map(|window| window.segment).collect();
            found.sort();
            if found != expected {
                cases.push(format!(
                    "energy.csv does not have each segment once in order {order} on `{}`",
                    processor.name
                ));
            }
        }
    }
    cases
}

fn derived(profile: &Profile, energy: &Energy) -> Option<String> {
    let measurement = energy.found.measurement.clone();
    if measurement.window_ns == Nanos::ZERO {
        return Some("profile.json says that windows take no time".to_owned());
    }
    match Energy::of(profile, measurement, energy.windows.clone()) {
        Err(error) => Some(error.to_string()),
        Ok(again) if again.layers != energy.layers => {
            Some("layer_energy.csv does not follow from energy.csv".to_owned())
        }
        Ok(again) if again.found != energy.found => {
            Some("`energy` of profile.json does not follow from energy.csv".to_owned())
        }
        Ok(again) if again.windows != energy.windows => {
            Some("energy.csv is not in order".to_owned())
        }
        Ok(_) => None,
    }
}

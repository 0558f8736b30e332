//! What a gate could have seen of the times on each processor, and what to measure for it to see more.

use layerlab_profiles::document::{Measurement, Profile};
use layerlab_profiles::gate::{GateSight, POWER};
use serde::Serialize;

use layerlab_lab::text_table::table;

/// Beyond this many times as long nobody measures.
const MOST_LONGER: f64 = 1000.0;

/// Less is not worth another measurement.
const ENOUGH: f64 = 1.0;

/// What was seen, as a table; then what it takes to see `wanted` beyond the tolerated, where there is one good profile.
pub(super) fn text(sights: &[GateSight], second: &Profile, wanted: f64, good: usize) -> String {
    let share = |share: Option<f64>| share.map_or_else(String::new, |share| told(&[share]));
    let range = |range: Option<(f64, f64)>| {
        range.map_or_else(String::new, |(least, most)| told(&[least, most]))
    };
    let rows = sights.iter().map(|sight| {
        vec![
            sight.processor.clone(),
            share(sight.whole),
            range(sight.layers),
            range(sight.cuts),
        ]
    });
    let heads = ["on", "whole model", "layers", "cuts"];
    let mut parts = vec![
        format!(
            "\nFound in {:.0} % of cases is what is slower by so much (of itself, or of an average layer where that takes longer):",
            100.0 * POWER
        ),
        table(&heads, &[1], rows),
    ];
    match good {
        0 | 1 => parts.extend(sights.iter().map(|sight| advice(sight, second, wanted))),
        // How long a run is changes nothing of how far runs differ.
        _ => parts.push(format!(
            "That follows from how far the {good} good profiles differ as well. More of them, or a steadier device, would show \
             smaller changes."
        )),
    }
    parts.join("\n")
}

/// What to do for `wanted` to be seen on a processor.
fn advice(sight: &GateSight, second: &Profile, wanted: f64) -> String {
    let (processor, wanted) = (&sight.processor, percent(wanted));
    let see = format!("To see {wanted} % more than is tolerated of each of them on {processor}");
    if sight.both_longer <= ENOUGH {
        return format!("{see}, nothing more is needed.");
    }
    if sight.both_longer > MOST_LONGER {
        return format!(
            "{see}, both profiles would have to be measured {MOST_LONGER} times as long and more."
        );
    }
    let options = options(second, processor, sight.both_longer);
    let alone = match sight.second_longer {
        Some(longer) if longer <= MOST_LONGER => {
            format!("; or the second alone {longer:.1} times as long")
        }
        _ => String::new(),
    };
    format!(
        "{see}, measure both {:.1} times as long ({options}, about {} more each){alone}.",
        sight.both_longer,
        rounded(sight.more_time.as_nanos())
    )
}

/// The options of `layerlab profile` for so many times as long.
fn options(second: &Profile, processor: &str, longer: f64) -> String {
    let mut measurements = second.header.measurements.iter();
    let Some(measurement) = measurements.find(|one| one.processor == processor) else {
        return String::new();
    };
    let Measurement {
        samples_per_segment,
        visits,
        target,
        budget_ns,
        ..
    } = measurement;
    if let (Some(target), Some(budget)) = (target, budget_ns) {
        // An interval narrows with the square root of the time.
        let target = 100.0 * target / longer.sqrt();
        let budget = (budget.as_nanos() as f64 * longer).ceil() as u64;
        return format!("--target-ci {target:.2}% --budget {}", rounded(budget));
    }
    let times = |count: u64| (count as f64 * longer).ceil() as u64;
    let samples = format!("--samples {}", times(*samples_per_segment));
    match visits {
        Some(visits) => format!("{samples} --visits {}", times(*visits)),
        None => samples,
    }
}

/// Whole seconds as people write them, rounded up.
fn rounded(nanos: u64) -> humantime::FormattedDuration {
    humantime::format_duration(std::time::Duration::from_secs(
        nanos.div_ceil(1_000_000_000),
    ))
}

/// One share or the ends of a range as percentages.
fn told(shares: &[f64]) -> String {
    let shares = shares.iter().map(|share| format!("{:.1}", 100.0 * share));
    shares.collect::<Vec<_>>().join(" to ") + " %"
}

/// A share as a percentage without more digits than it needs.
pub(super) fn percent(share: f64) -> f64 {
    (1e9 * share).round() / 1e7
}

/// The same for scripts. Shares are of the number or of an average layer, times in ns.
#[derive(Serialize)]
pub(super) struct SightView {
    processor: String,
    whole: Option<f64>,
    layers: Option<(f64, f64)>,
    cuts: Option<(f64, f64)>,
    /// How much longer must be measured to see more; `null` beside several good profiles, of which that alone does not decide.
    both_longer: Option<f64>,
    second_longer: Option<f64>,
    more_time_ns: Option<u64>,
}

impl SightView {
    pub(super) fn of(sight: GateSight, good: usize) -> SightView {
        let beside_one = |value: f64| (good <= 1).then_some(value);
        SightView {
            processor: sight.processor,
            whole: sight.whole,
            layers: sight.layers,
            cuts: sight.cuts,
            both_longer: beside_one(sight.both_longer),
            second_longer: sight.second_longer.and_then(beside_one),
            more_time_ns: (good <= 1).then(|| sight.more_time.as_nanos()),
        }
    }
}

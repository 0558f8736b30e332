//! How the device became steady, and its steady times beside the cold ones.

use layerlab_lab::text_table::table;
use layerlab_profiles::document::{LayerTimeRow, Profile, Soak};
use layerlab_profiles::soak::Thermal;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Nanos, SignedNanos};

use super::estimate;

/// What is said of a profile with steady times; nothing of one without.
pub(super) fn steady(profile: &Profile) -> Vec<String> {
    let Some(steady) = profile.steady_times() else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    if profile.header.thermal == Thermal::Steady {
        parts.push(
            "All times are steady ones: the device did not get cool, and was measured after it had been kept busy."
                .to_owned(),
        );
    } else {
        parts.push(side_by_side(profile, steady));
    }
    let lines: Vec<String> = steady.soaking.found.iter().map(in_words).collect();
    parts.push(lines.join("\n"));
    parts
}

/// What each layer takes on the cool device and on the steady one, moving included.
fn side_by_side(cold: &Profile, steady: &Profile) -> String {
    let processors: Vec<&str> = cold
        .header
        .processors
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let mut heads = vec!["layer".to_owned(), "name".to_owned()];
    for name in &processors {
        heads.extend([
            format!("{name} cold"),
            format!("{name} steady"),
            "ratio".to_owned(),
        ]);
    }
    let row_of = |profile: &'_ Profile, name: &str, layer: u32| -> Option<LayerTimeRow> {
        let mut rows = profile.times.iter();
        rows.find(|row| row.processor == name && row.layer == layer)
            .cloned()
    };
    let rows = cold.layers.iter().map(|layer| {
        let mut cells = vec![layer.number.to_string(), layer.name.clone()];
        for name in &processors {
            let times = [cold, steady].map(|profile| row_of(profile, name, layer.number));
            let computes = times.map(|row| row.map(|row| row.time.compute));
            cells.extend(
                computes
                    .iter()
                    .map(|time| time.as_ref().map_or_else(String::new, estimate)),
            );
            cells.push(ratio(computes));
        }
        cells
    });
    let right: Vec<usize> = (0..heads.len()).filter(|place| *place != 1).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut text = format!(
        "Computing, cold and steady:\n\n{}",
        table(&heads, &right, rows)
    );
    let wholes = [cold, steady].map(Profile::whole_model_times);
    for (place, name) in processors.iter().enumerate() {
        if let (Some(cold), Some(steady)) = (wholes[0][place], wholes[1][place]) {
            let space = if place == 0 { "\n" } else { "" };
            text.push_str(&format!(
                "{space}\nall layers on {name}: cold {cold}, steady {steady}"
            ));
        }
    }
    text
}

/// How many times as long the steady one takes, where both are known to take any time.
fn ratio([cold, steady]: [Option<Estimate>; 2]) -> String {
    let (Some(cold), Some(steady)) = (cold, steady) else {
        return String::new();
    };
    if cold.is_unresolved() || steady.is_unresolved() || cold.value <= SignedNanos::ZERO {
        return String::new();
    }
    let ratio = steady.value.as_nanos() as f64 / cold.value.as_nanos() as f64;
    format!("{ratio:.2}")
}

/// What a processor that was kept busy showed.
fn in_words(soak: &Soak) -> String {
    let name = &soak.processor;
    let begun = match (soak.rested_ns, soak.onset_ns) {
        (None, _) => "not cool at first".to_owned(),
        (Some(rested), None) => format!("{rested} after a rest, no throttling"),
        (Some(rested), Some(onset)) => {
            format!("{rested} after a rest, throttling from {} on", after(onset))
        }
    };
    format!(
        "{name}, kept busy for {} minutes: {begun}, {} in minute 1, steady from minute {} on: {} ({} to {})",
        soak.minutes,
        soak.first_minute_ns,
        soak.steady_from_minute,
        soak.steady_ns,
        soak.steady_ci95_low_ns,
        soak.steady_ci95_high_ns
    )
}

/// A time since the start, in minutes and seconds.
fn after(time: Nanos) -> String {
    let seconds = time.as_nanos() / 1_000_000_000;
    format!("{}:{:02} min", seconds / 60, seconds % 60)
}

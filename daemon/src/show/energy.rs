//! What inferences draw: what the meter is worth, and each layer on each processor.

use layerlab_lab::text_table::table;
use layerlab_profiles::document::{Energy, ProcessorEnergy, ProcessorKind, Profile};
use layerlab_profiles::energy::MeterSource;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{NanoJoules, SignedNanos};
use serde::Serialize;

/// What is said of a profile with energies; nothing of one without.
pub(super) fn energy(profile: &Profile) -> Vec<String> {
    let Some(energy) = &profile.energy else {
        return Vec::new();
    };
    let measurement = &energy.found.measurement;
    let meter = match measurement.meter.source {
        MeterSource::External => "an external meter",
        MeterSource::Rails => "power rails",
        MeterSource::FuelGauge => "the fuel gauge",
        MeterSource::Rapl => "RAPL",
        MeterSource::Simulated => "a simulated gauge",
    };
    let head = format!(
        "Energy by {meter} ({}), in windows of {}, {} visits, above what the idle device draws:",
        measurement.meter.name, measurement.window_ns, measurement.visits
    );
    let lines: Vec<String> = energy
        .found
        .processors
        .iter()
        .map(|one| in_words(one, energy))
        .collect();
    vec![
        format!("{head}\n\n{}", layers(profile, energy)),
        lines.join("\n"),
    ]
}

fn layers(profile: &Profile, energy: &Energy) -> String {
    let mut heads = vec!["layer".to_owned(), "name".to_owned()];
    let processors = &profile.header.processors;
    for processor in processors {
        let name = &processor.name;
        match processor.kind {
            ProcessorKind::Cpu => heads.push(format!("{name} compute")),
            ProcessorKind::Accelerator => heads.extend([
                format!("to {name}"),
                format!("{name} compute"),
                format!("from {name}"),
            ]),
        }
    }
    let count = profile.header.model.layers;
    let of_processors: Vec<_> = processors
        .iter()
        .map(|one| (one.kind, energy.of_layers(&one.name, count)))
        .collect();
    let cell = |number: Option<Estimate>| number.map_or_else(String::new, drawn);
    let rows = profile.layers.iter().enumerate().map(|(place, layer)| {
        let mut cells = vec![layer.number.to_string(), layer.name.clone()];
        for (kind, layers) in &of_processors {
            let cost = layers.get(place).copied().flatten();
            let compute = cell(cost.map(|cost| cost.compute));
            match kind {
                ProcessorKind::Cpu => cells.push(compute),
                ProcessorKind::Accelerator => cells.extend([
                    cell(cost.and_then(|cost| cost.to_processor)),
                    compute,
                    cell(cost.and_then(|cost| cost.from_processor)),
                ]),
            }
        }
        cells
    });
    let right: Vec<usize> = (0..heads.len()).filter(|place| *place != 1).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    table(&heads, &right, rows)
}

/// An energy with its interval; `?` where it cannot be told from nothing.
pub(crate) fn drawn(energy: Estimate) -> String {
    let joules = |number: SignedNanos| NanoJoules::from_nanojoules(number.as_nanos());
    let mark = if energy.is_unresolved() { "? " } else { "" };
    match energy.ci95 {
        None => joules(energy.value).to_string(),
        Some((low, high)) => {
            format!(
                "{mark}{} ± {}",
                joules(energy.value),
                joules((high - low).half())
            )
        }
    }
}

/// What a processor draws, and what of it the meter cannot resolve.
fn in_words(one: &ProcessorEnergy, energy: &Energy) -> String {
    let busy = watts(one.busy_uw);
    let half = |low: Option<u64>, high: Option<u64>| Some((high? - low?) / 2);
    let busy = match half(one.busy_ci95_low_uw, one.busy_ci95_high_uw) {
        Some(half) => format!("{busy} ± {}", watts(half)),
        None => busy,
    };
    let mut text = format!(
        "{}: draws {busy} while it works, above {} of the idle device",
        one.processor,
        watts(one.idle_uw)
    );
    if let Some(whole) = one.whole_nj {
        let ci95 = one.whole_ci95_low_nj.zip(one.whole_ci95_high_nj);
        let signed = |energy: NanoJoules| SignedNanos::from_nanos(energy.as_nanojoules());
        let whole = Estimate {
            value: signed(whole),
            ci95: ci95.map(|(low, high)| (signed(low), signed(high))),
        };
        text.push_str(&format!("; all layers: {}", drawn(whole)));
    }
    if let Some(step) = one.hidden_step_uw {
        text.push_str(&format!(
            "; the meter's steps of {} hide what is smaller, which intervals hold",
            watts(step)
        ));
    }
    if let Some(misfit) = one.misfit_percent {
        let p = one
            .p_value
            .map_or_else(String::new, |p| format!(" (p = {p:.3})"));
        text.push_str(&format!(
            "; the longest segment deviates from its parts by {misfit:.1} %{p}"
        ));
    }
    let rows = || {
        energy
            .layers
            .iter()
            .filter(|row| row.processor == one.processor)
    };
    let unresolved = rows()
        .filter(|row| row.time.compute.is_unresolved())
        .count();
    if unresolved > 0 {
        text.push_str(&format!(
            "; of {} layers, {unresolved} draw too little to be told from nothing",
            rows().count()
        ));
    }
    text
}

fn watts(microwatts: u64) -> String {
    match microwatts {
        0..1_000 => format!("{microwatts} µW"),
        1_000..1_000_000 => format!("{:.1} mW", microwatts as f64 / 1e3),
        _ => format!("{:.3} W", microwatts as f64 / 1e6),
    }
}

/// The same in `show --json`: what each layer draws, and what follows for each processor.
#[derive(Serialize)]
pub(super) struct EnergyView<'a> {
    measured: &'a layerlab_profiles::document::MeasuredEnergy,
    layers: Vec<LayerEnergyView<'a>>,
}

#[derive(Serialize)]
struct LayerEnergyView<'a> {
    layer: u32,
    processor: &'a str,
    compute: EnergyEstimateView,
    to_processor: Option<EnergyEstimateView>,
    from_processor: Option<EnergyEstimateView>,
}

#[derive(Serialize)]
struct EnergyEstimateView {
    value_nj: i64,
    ci95_low_nj: Option<i64>,
    ci95_high_nj: Option<i64>,
}

impl From<Estimate> for EnergyEstimateView {
    fn from(estimate: Estimate) -> Self {
        let (low, high) = estimate.ci95.unzip();
        EnergyEstimateView {
            value_nj: estimate.value.as_nanos(),
            ci95_low_nj: low.map(SignedNanos::as_nanos),
            ci95_high_nj: high.map(SignedNanos::as_nanos),
        }
    }
}

impl<'a> EnergyView<'a> {
    pub(super) fn of(profile: &'a Profile) -> Option<EnergyView<'a>> {
        let energy = profile.energy.as_ref()?;
        let layers = energy.layers.iter().map(|row| LayerEnergyView {
            layer: row.layer,
            processor: &row.processor,
            compute: row.time.compute.into(),
            to_processor: row.time.to_processor.map(Into::into),
            from_processor: row.time.from_processor.map(Into::into),
        });
        Some(EnergyView {
            measured: &energy.found,
            layers: layers.collect(),
        })
    }
}

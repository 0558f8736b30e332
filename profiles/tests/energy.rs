//! Energies: derived as planted, with intervals that hold them; written and read as they are; and every derived number is made
//! again by `check`.

use crate::common;

use std::fs;
use std::path::Path;

use common::spoiled::{changed, errors, finds, written};
use common::{CPU, NPU, by_least_squares, good_profile};
use layerlab_profiles::check::{Rule, check, check_directory};
use layerlab_profiles::document::{
    Energy, EnergyMeasurement, PROFILE_JSON, ProcessorKind, Profile,
};
use layerlab_profiles::energy::{
    EnergyError, EnergyWindow, Meter, MeterSource, SHORTEST_WINDOW, derive, drawn_together,
    segments,
};
use layerlab_profiles::gate::{GateResult, GateSettings, GatedNumber, gate};
use layerlab_profiles::{NanoJoules, Nanos, Segment, SupportedLayers};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

const VISITS: u32 = 3;

/// What the idle device draws, in µW.
const IDLE_UW: f64 = 800_000.0;

/// A gauge with errors of its own, in µW.
#[derive(Clone, Copy)]
struct Gauge {
    /// Of the mean of a window, independently.
    noise: f64,
    /// Of all, alike.
    offset: f64,
    /// Means are multiples of it, as those of readings are that do not scatter.
    step: f64,
}

/// What is drawn above idling, in µW, and how long a segment takes, in ns.
fn planted(processor: &str, segment: Segment) -> (f64, f64) {
    let layers = (segment.first()..=segment.last()).map(f64::from);
    match processor {
        CPU => (3e6, layers.map(|layer| layer * 4e7).sum()),
        // Moving in and out costs what neighbours save, and each layer saves a little beside another one.
        _ => {
            let compute: f64 = layers.map(|layer| layer * 2e6).sum();
            let cut = |after: u32| f64::from(after + 1) * 1.5e6;
            let moving = cut(segment.first() - 1) + cut(segment.last());
            (5e5, compute + moving)
        }
    }
}

/// Windows in which a gauge was read, as an agent journals them.
fn windows(layers: u32, gauge: Gauge, seed: u64) -> Vec<EnergyWindow> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let supported = SupportedLayers::all(layers);
    let mut all = Vec::new();
    let processors = [(CPU, ProcessorKind::Cpu), (NPU, ProcessorKind::Accelerator)];
    for (order, (processor, kind)) in (1..).zip((0..VISITS).flat_map(|_| processors)) {
        let mut started = Nanos::from_millis(u64::from(order) * 10_000_000);
        let mut window = |segment: Option<Segment>| {
            let (power, time) = segment.map_or((0.0, 1.0), |one| planted(processor, one));
            let runs = (SHORTEST_WINDOW.as_nanos() as f64 / time).ceil();
            let duration = match segment {
                Some(_) => Nanos::from_nanos((runs * time) as u64),
                None => SHORTEST_WINDOW,
            };
            let error: f64 = random.sample(StandardNormal);
            let seen = IDLE_UW + power + gauge.offset + gauge.noise * error;
            let seen = match gauge.step > 0.0 {
                true => (seen / gauge.step).round() * gauge.step,
                false => seen,
            };
            all.push(EnergyWindow {
                processor: processor.to_owned(),
                order,
                segment,
                started,
                duration,
                runs: segment.map_or(0, |_| runs as u64),
                energy: NanoJoules::from_nanojoules(
                    (seen * duration.as_nanos() as f64 / 1e6).round() as i64,
                ),
                readings: 30,
                scatter_uw: (gauge.noise * 30_f64.sqrt()) as u64,
                step_uw: (gauge.step > 0.0).then_some(gauge.step as u64),
            });
            started = started + duration + Nanos::from_millis(1_000);
        };
        window(None);
        for segment in segments(kind, &supported) {
            window(Some(segment));
            window(None);
        }
    }
    all
}

const GOOD: Gauge = Gauge {
    noise: 2_000.0,
    offset: 30_000.0,
    step: 0.0,
};

fn measurement() -> EnergyMeasurement {
    EnergyMeasurement {
        meter: Meter {
            source: MeterSource::External,
            name: "tcp:lab:9000".to_owned(),
            settle_ns: Nanos::from_millis(1_000),
        },
        window_ns: SHORTEST_WINDOW,
        visits: VISITS,
    }
}

fn metered() -> Profile {
    let profile = by_least_squares();
    let windows = windows(profile.header.model.layers, GOOD, 1);
    profile
        .with_energy(measurement(), windows)
        .expect("all windows")
}

/// Of all derived numbers, those whose interval holds the planted one, and how many there are.
fn held(layers: u32, gauge: Gauge, seed: u64) -> (u32, u32) {
    let all = windows(layers, gauge, seed);
    let supported = SupportedLayers::all(layers);
    let (mut held, mut tried) = (0, 0);
    for (name, kind) in [(CPU, ProcessorKind::Cpu), (NPU, ProcessorKind::Accelerator)] {
        let of_it: Vec<&EnergyWindow> = all.iter().filter(|one| one.processor == name).collect();
        let derived = derive(kind, &supported, &of_it)
            .expect("windows")
            .expect("some");
        let nj = |segment: Segment| {
            let (power, time) = planted(name, segment);
            power * time / 1e6
        };
        let mut expect = |found: Option<layerlab_profiles::summary::Estimate>, truth: f64| {
            let (low, high) = found.and_then(|one| one.ci95).expect("an interval");
            let is_held = (low.as_nanos() as f64..=high.as_nanos() as f64).contains(&truth);
            held += u32::from(is_held);
            tried += 1;
        };
        for (&layer, cost) in &derived.layers {
            let single = Segment::single(layer);
            let cut = |after: u32| f64::from(after + 1) * 1.5e6 * 0.5;
            let inner = |after: u32| {
                if after == 0 || after == layers {
                    0.0
                } else {
                    cut(after)
                }
            };
            let truth = match kind {
                ProcessorKind::Cpu => nj(single),
                // What leaving and entering cost together, halved: both sides of a cut are the same here.
                ProcessorKind::Accelerator => nj(single) - inner(layer - 1) - inner(layer),
            };
            expect(Some(cost.compute), truth);
        }
        let whole = match kind {
            ProcessorKind::Cpu => (1..=layers).map(|layer| nj(Segment::single(layer))).sum(),
            ProcessorKind::Accelerator => nj(Segment::whole(layers)),
        };
        expect(derived.whole(), whole);
    }
    (held, tried)
}

#[test]
fn intervals_hold_what_is_planted_95_times_in_100() {
    let (mut held_all, mut tried_all) = (0, 0);
    for seed in 0..200 {
        let (held, tried) = held(5, GOOD, seed);
        held_all += held;
        tried_all += tried;
    }
    let share = f64::from(held_all) / f64::from(tried_all);
    assert!((0.92..=0.98).contains(&share), "{share}");
}

#[test]
fn what_a_coarse_step_hides_is_in_the_intervals() {
    // A tenth of the power of the accelerator, and hardly any noise that would show what the step hides.
    let coarse = |offset| Gauge {
        noise: 20.0,
        offset,
        step: 50_000.0,
    };
    let (mut held_all, mut tried_all) = (0, 0);
    for seed in 0..200 {
        let (held, tried) = held(5, coarse(137.0 * seed as f64), seed);
        held_all += held;
        tried_all += tried;
    }
    // What it hides is anything up to half a step, and taken to be normal: no fewer than 95 in 100.
    let share = f64::from(held_all) / f64::from(tried_all);
    assert!(share >= 0.92, "{share}");
    let profile = by_least_squares();
    let windows = windows(3, coarse(0.0), 1);
    let energy = Energy::of(&profile, measurement(), windows).expect("all windows");
    assert_eq!(
        energy.of_processor(NPU).expect("the npu").hidden_step_uw,
        Some(50_000)
    );
}

#[test]
fn a_meter_that_does_not_see_a_processor_is_named_and_so_is_what_is_missing() {
    let profile = by_least_squares();
    let of = |change: fn(&mut Vec<EnergyWindow>)| {
        let mut windows = windows(3, GOOD, 1);
        change(&mut windows);
        Energy::of(&profile, measurement(), windows).expect_err("no energies")
    };
    let blind = of(|windows| {
        for window in windows.iter_mut().filter(|one| one.processor == NPU) {
            window.energy = NanoJoules::from_nanojoules(24_000_000_000);
        }
    });
    assert!(
        matches!(&blind, EnergyError::Unseen { processor, .. } if processor == NPU),
        "{blind}"
    );
    let never_idle = of(|windows| windows.retain(|window| window.segment.is_some()));
    assert!(
        matches!(never_idle, EnergyError::NoIdle { .. }),
        "{never_idle}"
    );
    let missing = of(|windows| {
        windows
            .retain(|window| window.processor == NPU || window.segment != Some(Segment::single(2)));
    });
    assert!(
        matches!(missing, EnergyError::MissingLayer { layer: 2, .. }),
        "{missing}"
    );
    let open = of(|windows| {
        windows.retain(|window| {
            window.processor == CPU || window.segment.is_none_or(|one| one.layers() != 2)
        });
    });
    assert!(matches!(open, EnergyError::Graph { .. }), "{open}");
}

/// A profile in which layer 2 draws so many nJ more wherever the accelerator runs it.
fn metered_with(source: MeterSource, more_nj: i64, seed: u64) -> Profile {
    let profile = by_least_squares();
    let mut windows = windows(profile.header.model.layers, GOOD, seed);
    for window in windows.iter_mut().filter(|one| one.processor == NPU) {
        let runs = |segment: Segment| (segment.first()..=segment.last()).contains(&2);
        if window.segment.is_some_and(runs) {
            let more = more_nj * window.runs as i64;
            window.energy = NanoJoules::from_nanojoules(window.energy.as_nanojoules() + more);
        }
    }
    let mut measurement = measurement();
    measurement.meter.source = source;
    profile
        .with_energy(measurement, windows)
        .expect("all windows")
}

fn passes(one: &Profile, other: &Profile) -> GateResult {
    let settings = GateSettings {
        tolerance: 0.05,
        alpha: 0.01,
    };
    gate(&[one], other, settings).expect("of one model")
}

#[test]
fn a_layer_that_draws_more_does_not_pass_a_gate() {
    let good = metered();
    // The layer's computing draws 2 mJ, and all of the model about 10.
    let other = metered_with(MeterSource::External, 400_000, 2);
    let found = passes(&good, &other);
    let named: Vec<&GatedNumber> = found.worse().map(|gated| &gated.number).collect();
    let layer = GatedNumber::Energy {
        processor: NPU.to_owned(),
        layer: Some(2),
    };
    assert_eq!(named, [&layer], "{found:?}");
    assert!(found.has_energy);
    // What draws less is not worse, and neither is another night.
    assert!(!passes(&other, &good).fails());
    assert!(!passes(&good, &metered_with(MeterSource::External, 0, 2)).fails());
}

/// The most false alarms of 200 pairs that a chance of 1 % gives but once in a hundred times.
const MOST_BY_CHANCE: usize = 6;

#[test]
fn energies_give_no_more_false_alarms_than_alpha_says() {
    let of_night = |seed| metered_with(MeterSource::External, 0, seed);
    let nights = (0..200).map(|pair| (of_night(2 * pair + 1), of_night(2 * pair + 2)));
    let settings = GateSettings {
        tolerance: 0.0,
        alpha: 0.01,
    };
    let alarms = nights
        .filter(|(one, other)| {
            let found = gate(&[one], other, settings).expect("of one model");
            let mut worse = found.worse();
            worse.any(|gated| matches!(gated.number, GatedNumber::Energy { .. }))
        })
        .count();
    assert!(alarms <= MOST_BY_CHANCE, "{alarms} of 200");
}

#[test]
fn what_meters_of_two_kinds_say_is_not_compared() {
    let other = metered_with(MeterSource::FuelGauge, 400_000, 2);
    let found = passes(&metered(), &other);
    assert!(!found.has_energy && !found.fails(), "{found:?}");
    assert!(!passes(&metered(), &by_least_squares()).has_energy);
}

#[test]
fn a_profile_with_energies_is_read_as_it_was_written_and_one_without_has_the_bytes_that_it_had() {
    let profile = metered();
    assert_eq!(errors(check(&profile)), []);
    let folder = written(&profile);
    assert_eq!(Profile::read(folder.path()).expect("a profile"), profile);
    let (_, findings) = check_directory(folder.path()).expect("a profile");
    assert_eq!(errors(findings), []);
    let folder = written(&good_profile());
    let json = fs::read_to_string(folder.path().join(PROFILE_JSON)).expect("the header");
    assert!(!json.contains("energy"));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 14);
}

#[test]
fn no_derived_energy_can_be_changed_unnoticed() {
    let folder = written(&metered());
    let table = fs::read_to_string(folder.path().join("layer_energy.csv")).expect("a table");
    let columns = table.lines().next().expect("columns").split(',').count();
    let mut tried = 0;
    let rows = csv::Reader::from_reader(table.as_bytes()).records().count();
    for row in 0..rows {
        for column in 0..columns {
            if let Some(text) = changed(&table, row, column) {
                tried += 1;
                assert!(
                    finds(folder.path(), "layer_energy.csv", &text),
                    "row {row}, column {column}"
                );
            }
        }
    }
    assert!(tried > 30, "{tried}");
    let json = fs::read_to_string(folder.path().join(PROFILE_JSON)).expect("the header");
    let (before, energy) = json.split_once("\"energy\": {").expect("energy");
    let (energy, after) = energy
        .split_once("\"provenance\"")
        .expect("what comes next");
    let lines: Vec<&str> = energy.lines().collect();
    let mut tried = 0;
    for place in 0..lines.len() {
        let Some((name, value)) = lines[place].split_once(": ") else {
            continue;
        };
        // A later settling, or shorter windows, would be as good: nothing follows from them.
        let is_free = name.contains("settle_ns") || name.contains("window_ns");
        let Ok(number) = value.trim_end_matches(',').parse::<f64>() else {
            continue;
        };
        if is_free {
            continue;
        }
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let comma = if value.ends_with(',') { "," } else { "" };
        lines[place] = format!("{name}: {}{comma}", number + 1.0);
        let text = format!(
            "{before}\"energy\": {{{}\"provenance\"{after}",
            lines.join("\n")
        );
        assert!(finds(folder.path(), PROFILE_JSON, &text), "{name}");
        tried += 1;
    }
    assert!(tried >= 15, "{tried}");
}

#[test]
fn windows_that_cannot_have_been_measured_are_found() {
    type Spoil = fn(&mut Vec<EnergyWindow>);
    let faults: [(&str, Spoil); 7] = [
        ("a stranger", |all| all[0].processor = "gpu".to_owned()),
        ("too short", |all| {
            all[1].duration = Nanos::from_millis(29_000)
        }),
        ("one reading", |all| all[1].readings = 1),
        ("runs while idle", |all| all[0].runs = 3),
        ("an overlap", |all| all[1].started = all[0].started),
        ("a visit more", |all| all[1].order = 99),
        ("ten kilowatts", |all| {
            all[0].energy = NanoJoules::from_nanojoules(400_000_000_000_000)
        }),
    ];
    for (name, spoil) in faults {
        let mut profile = metered();
        let energy = profile.energy.as_mut().expect("energies");
        spoil(&mut energy.windows);
        let found = errors(check(&profile));
        assert_eq!(found, [Rule::EnergyContradiction], "{name}");
    }
}

#[test]
fn format_md_names_what_profiles_with_energies_have() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("FORMAT.md");
    let page = fs::read_to_string(page).expect("FORMAT.md");
    let mut names: Vec<String> = ["energy.csv", "layer_energy.csv", "energy"]
        .map(str::to_owned)
        .into();
    let profile = metered();
    for (file, bytes) in profile.to_files().expect("plain names") {
        if file == "energy.csv" {
            let mut table = csv::Reader::from_reader(bytes.as_slice());
            names.extend(table.headers().expect("columns").iter().map(str::to_owned));
        }
    }
    let found = &profile.energy.as_ref().expect("energies").found;
    for value in [
        serde_json::to_value(&found.processors[0]).expect("JSON"),
        serde_json::to_value(&found.measurement).expect("JSON"),
        serde_json::to_value(&found.measurement.meter).expect("JSON"),
    ] {
        names.extend(value.as_object().expect("fields").keys().cloned());
    }
    for name in names {
        assert!(
            page.contains(&format!("`{name}`")),
            "FORMAT.md says nothing of `{name}`"
        );
    }
}

/// Layers 1 and 2 on the CPU, each as a run of its own, and 3 and 4 on the accelerator as one.
fn is_part(window: &&EnergyWindow) -> bool {
    let parts = [(CPU, 1, 1), (CPU, 2, 2), (NPU, 3, 4)];
    window.segment.is_none_or(|segment| {
        let part = (window.processor.as_str(), segment.first(), segment.last());
        parts.contains(&part)
    })
}

#[test]
fn what_parts_draw_together_lies_within_its_interval_as_often_as_that_says() {
    // W times ns are nJ.
    let of = |processor, first, last| {
        let (power, time) = planted(processor, Segment::new(first, last).expect("ascending"));
        power / 1e6 * time
    };
    let truth = of(CPU, 1, 1) + of(CPU, 2, 2) + of(NPU, 3, 4);
    let held = |gauge: Gauge| {
        let runs = (0..400).map(|seed| {
            let all = windows(4, gauge, seed);
            let parts: Vec<&EnergyWindow> = all.iter().filter(is_part).collect();
            let together = drawn_together(&parts).expect("idle windows");
            let together = together.expect("windows");
            let (low, high) = together.ci95.expect("three visits");
            let off = together.value.as_nanos() as f64 / truth - 1.0;
            assert!(off.abs() < 0.1, "seed {seed}: {off}");
            (low.as_nanos() as f64..=high.as_nanos() as f64).contains(&truth)
        });
        runs.filter(|held| *held).count()
    };
    // 380 are expected, give or take 4.4.
    let count = held(GOOD);
    assert!((366..=394).contains(&count), "{count} of 400");
    // A step that no scatter averages out moves all windows alike, by as much as the interval says.
    let coarse = held(Gauge {
        noise: 100.0,
        step: 70_000.0,
        ..GOOD
    });
    assert!(coarse >= 366, "{coarse} of 400");
}

#[test]
fn of_one_visit_there_is_no_interval_and_of_no_window_nothing() {
    let all = windows(4, GOOD, 1);
    let of_visit = all.iter().filter(|window| window.order <= 2);
    let parts: Vec<&EnergyWindow> = of_visit.filter(is_part).collect();
    let together = drawn_together(&parts)
        .expect("idle windows")
        .expect("windows");
    assert_eq!(together.ci95, None);
    assert_eq!(drawn_together(&[]), Ok(None));
    let busy: Vec<&EnergyWindow> = parts
        .into_iter()
        .filter(|one| one.segment.is_some())
        .collect();
    let error = drawn_together(&busy).expect_err("nothing to compare with");
    assert!(matches!(error, EnergyError::NoIdle { .. }), "{error}");
}

//! Steady profiles: written and read as they are, and every number of how the device became steady is made again by `check`.

use crate::common;

use std::fs;
use std::path::Path;

use common::spoiled::{changed, errors, finds, written};
use common::{CPU, NPU, good_profile, header, layers, measured, samples};
use layerlab_profiles::check::{Rule, check, check_directory};
use layerlab_profiles::document::{
    Measured, PROFILE_JSON, Profile, STEADY_FOLDER, SoakPhase, SoakRow, SoakState,
};
use layerlab_profiles::soak::{MINUTE, Thermal};
use layerlab_profiles::{MilliCelsius, Nanos};

/// So long before the samples each processor was kept busy.
const MINUTES: u64 = 12;

/// A processor that is kept busy before its samples were taken, one slice every six seconds, and throttles after two minutes.
fn soak(processor: &str, order: u32) -> Vec<SoakRow> {
    let row = |phase, started: u64, median: u64, celsius: Option<i64>| SoakRow {
        processor: processor.to_owned(),
        order,
        phase,
        started: Nanos::from_millis(started),
        runs: if phase == SoakPhase::Busy { 60 } else { 1 },
        median: Nanos::from_micros(median),
        state: celsius.map_or_else(SoakState::default, |celsius| SoakState {
            thermal_status: Some(0),
            temperature_millicelsius: Some(MilliCelsius::from_millicelsius(celsius * 1_000)),
            skin_temperature_millicelsius: Some(MilliCelsius::from_millicelsius(celsius * 900)),
            frequencies_khz: [("policy0".to_owned(), 1_800_000)].into(),
        }),
    };
    let rested = (0..15).map(|run| {
        row(
            SoakPhase::Rested,
            1_000 + run * 2_000,
            10_000 + run % 3,
            Some(31),
        )
    });
    let busy = (0..MINUTES * 10).map(|slice| {
        let median = match slice {
            ..20 => 10_001 + slice % 4,
            _ => 14_000 + slice % 5,
        };
        let celsius = slice.is_multiple_of(10).then_some(40 + slice as i64 / 10);
        row(SoakPhase::Busy, 40_000 + slice * 6_000, median, celsius)
    });
    rested.chain(busy).collect()
}

fn steady_measured() -> (layerlab_profiles::document::Header, Measured) {
    let mut header = header();
    for measurement in &mut header.measurements {
        measurement.gap_ns = Nanos::ZERO;
    }
    let mut samples = samples(&header);
    for sample in &mut samples {
        sample.started = sample.started + Nanos::from_nanos((MINUTES + 3) * MINUTE.as_nanos());
    }
    let mut measured = measured(samples);
    measured.soak = [soak(CPU, 0), soak(NPU, 0)].concat();
    (header, measured)
}

fn steady() -> Profile {
    let (header, measured) = steady_measured();
    Profile::build(header, layers(), measured).expect("steady")
}

#[test]
fn what_the_slices_say_is_published() {
    let profile = steady();
    assert_eq!(profile.header.thermal, Thermal::Steady);
    assert_eq!(errors(check(&profile)), []);
    assert_eq!(profile.soaking.minutes.len(), 2 * MINUTES as usize);
    let soak = profile.soaking.of_processor(NPU).expect("the npu");
    assert_eq!(soak.rested_ns, Some(Nanos::from_micros(10_001)));
    assert_eq!(soak.onset_ns, Some(Nanos::from_millis(20 * 6_000)));
    assert_eq!((soak.steady_from_minute, soak.minutes), (3, MINUTES as u32));
    assert_eq!(soak.steady_ns, Nanos::from_micros(14_002));
    assert_eq!(
        soak.first_minute_ns,
        Nanos::from_nanos(10_002_000 / 1_000 * 1_000)
    );
}

#[test]
fn a_steady_profile_is_read_as_it_was_written_alone_and_beside_a_cold_one() {
    for profile in [steady(), good_profile().with_steady(steady())] {
        let folder = written(&profile);
        assert_eq!(Profile::read(folder.path()).expect("a profile"), profile);
        let (_, findings) = check_directory(folder.path()).expect("a profile");
        assert_eq!(errors(findings), []);
    }
}

#[test]
fn a_cold_profile_has_the_bytes_that_it_had_before_there_were_steady_ones() {
    let folder = written(&good_profile());
    let json = fs::read_to_string(folder.path().join(PROFILE_JSON)).expect("the header");
    for word in ["thermal", "soak", "steady", "minutes"] {
        assert!(!json.contains(word), "{word}");
    }
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 14);
}

#[test]
fn a_steady_profile_that_was_changed_beside_a_cold_one_is_found() {
    let folder = written(&good_profile().with_steady(steady()));
    let steady = folder.path().join(STEADY_FOLDER);
    let other = {
        let (mut header, measured) = steady_measured();
        header.provenance.run = "another".to_owned();
        Profile::build(header, layers(), measured).expect("steady")
    };
    fs::remove_dir_all(&steady).expect("a folder");
    fs::create_dir(&steady).expect("room");
    other.write(&steady).expect("room");
    let error = Profile::read(folder.path())
        .expect_err("another one")
        .to_string();
    assert!(error.contains("steady/profile.json was changed"), "{error}");
    let (_, findings) = check_directory(folder.path()).expect("a profile");
    assert_eq!(errors(findings), [Rule::FileChanged]);
}

#[test]
fn no_derived_number_of_the_soak_can_be_changed_unnoticed() {
    let folder = written(&steady());
    let minutes = fs::read_to_string(folder.path().join("minutes.csv")).expect("a table");
    let columns = minutes.lines().next().expect("columns").split(',').count();
    let mut tried = 0;
    for line in [0, 3, 11, 12, 23] {
        for column in 0..columns {
            if let Some(text) = changed(&minutes, line, column) {
                tried += 1;
                assert!(
                    finds(folder.path(), "minutes.csv", &text),
                    "line {line}, column {column}"
                );
            }
        }
    }
    assert_eq!(tried, 5 * 8);
    let json = fs::read_to_string(folder.path().join(PROFILE_JSON)).expect("the header");
    let (before, soaks) = json.split_once("\"soaks\": [").expect("soaks");
    let (soaks, after) = soaks.split_once(']').expect("their end");
    let lines: Vec<&str> = soaks.lines().collect();
    let mut tried = 0;
    for place in 0..lines.len() {
        let Some((name, value)) = lines[place].split_once(": ") else {
            continue;
        };
        let Ok(number) = value.trim_end_matches(',').parse::<u64>() else {
            continue;
        };
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let comma = if value.ends_with(',') { "," } else { "" };
        lines[place] = format!("{name}: {}{comma}", number + 1);
        let text = format!("{before}\"soaks\": [{}]{after}", lines.join("\n"));
        assert!(finds(folder.path(), PROFILE_JSON, &text), "{name}");
        tried += 1;
    }
    assert_eq!(tried, 2 * 8);
}

#[test]
fn times_are_of_the_state_that_is_said_and_of_the_same_device() {
    type Spoil = fn(&mut Profile);
    let faults: [(&str, Spoil); 6] = [
        ("no mark", |one| one.header.thermal = Thermal::Cold),
        ("no soak", |one| one.soaking = Default::default()),
        ("one processor's alone", |one| {
            one.soaking.rows.retain(|row| row.processor == CPU)
        }),
        ("idle before inferences", |one| {
            one.header.measurements[0].gap_ns = Nanos::from_millis(1);
        }),
        ("samples before", |one| {
            for row in &mut one.soaking.rows {
                row.order = u32::MAX;
            }
        }),
        ("overlap", |one| {
            one.soaking.rows[20].runs = 10_000;
        }),
    ];
    for (name, spoil) in faults {
        let mut profile = steady();
        spoil(&mut profile);
        let found = errors(check(&profile));
        let is_found =
            found.contains(&Rule::ThermalContradiction) || found.contains(&Rule::SoakContradiction);
        assert!(is_found, "{name}: {found:?}");
    }
    let beside: [(&str, Spoil); 3] = [
        ("another device", |one| {
            one.header.device.name = "other".to_owned()
        }),
        ("another model", |one| {
            one.header.model.sha256 = "ab".repeat(32)
        }),
        ("cold", |one| *one = good_profile()),
    ];
    for (name, spoil) in beside {
        let mut other = steady();
        spoil(&mut other);
        let found = errors(check(&good_profile().with_steady(other)));
        assert!(
            found.contains(&Rule::ThermalContradiction),
            "{name}: {found:?}"
        );
    }
}

#[test]
fn a_processor_that_did_not_become_steady_makes_no_profile() {
    let (header, mut measured) = steady_measured();
    for (place, row) in measured.soak.iter_mut().enumerate() {
        row.median = row.median + Nanos::from_micros(100 * place as u64);
    }
    let error = Profile::build(header, layers(), measured).expect_err("not steady");
    assert!(
        error.to_string().contains("did not become steady"),
        "{error}"
    );
}

#[test]
fn format_md_names_what_steady_profiles_have() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("FORMAT.md");
    let page = fs::read_to_string(page).expect("FORMAT.md");
    let mut names: Vec<String> = ["soak.csv", "minutes.csv", "steady", "thermal", "soaks"]
        .map(str::to_owned)
        .into();
    for (file, bytes) in steady().to_files().expect("plain names") {
        if matches!(file, "soak.csv" | "minutes.csv") {
            let mut table = csv::Reader::from_reader(bytes.as_slice());
            names.extend(table.headers().expect("columns").iter().map(str::to_owned));
        }
    }
    let soak = serde_json::to_value(&steady().soaking.found[0]).expect("JSON");
    names.extend(soak.as_object().expect("fields").keys().cloned());
    for name in names {
        assert!(
            page.contains(&format!("`{name}`")),
            "FORMAT.md lacks `{name}`"
        );
    }
}

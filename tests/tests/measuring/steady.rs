//! Steady times beside cold ones: what a device takes after it has been kept busy follows from how its file says it heats up,
//! which the code under test never sees.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_agent::device::simulated::DeviceFile;
use layerlab_agent::truth::{LayerTruth, truth};
use layerlab_model::Network;
use layerlab_profiles::Nanos;
use layerlab_profiles::check::{Rule, Severity, check_directory};
use layerlab_profiles::document::{DIGEST_FILE, PROFILE_JSON, Profile, STEADY_FOLDER};
use layerlab_profiles::sha256;
use layerlab_profiles::soak::Thermal;
use layerlab_profiles::summary::Estimate;
use layerlab_tests::{file, layerlab, model, output, stderr, succeed};

/// heats.toml with some of its lines changed.
fn device(folder: &Path, name: &str, changes: &[(&str, &str)]) -> PathBuf {
    let mut text = std::fs::read_to_string(file("devices/heats.toml")).expect("the device");
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in the device file");
        text = text.replace(from, to);
    }
    let path = folder.join(format!("{name}.toml"));
    std::fs::write(&path, text).expect("room");
    path
}

/// Has a device measured cold and steady.
fn profile(gap_us: u32, device: &Path, minutes: u32, out: &Path) -> Command {
    let mut command = layerlab();
    command.args([
        "profile",
        "--design",
        "local",
        "--samples",
        "30",
        "--gap-us",
    ]);
    command.arg(gap_us.to_string());
    command.arg("--model").arg(model("yolo-small"));
    command.arg("--device").arg(device).arg("--out").arg(out);
    command.arg("--steady").arg(format!("{minutes}m"));
    command
}

/// A number of a device file, as it is written there: of the first line that begins so.
fn number(device: &Path, field: &str) -> f64 {
    let text = std::fs::read_to_string(device).expect("the device");
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{field} =")));
    let value = line.and_then(|line| line.split('=').nth(1)).expect(field);
    value.trim().parse().expect("a number")
}

/// How many times as long everything takes once the device is as hot as its power makes it.
fn planted_slowdown(device: &Path) -> f64 {
    let of = |field| number(device, field);
    let celsius = of("ambient_celsius") + of("power_watts") * of("kelvin_per_watt");
    let beyond = (celsius - of("throttle_start_celsius")).max(0.0);
    1.0 / (1.0 - of("slowdown_per_kelvin") * beyond).max(of("minimum_speed"))
}

/// When a device that is so warm when it begins takes 2 % longer.
fn planted_onset_seconds(device: &Path, begins_celsius: f64) -> f64 {
    let of = |field| number(device, field);
    let rise = of("power_watts") * of("kelvin_per_watt");
    let lost = 1.0 - 1.0 / 1.02;
    let celsius = of("throttle_start_celsius") + lost / of("slowdown_per_kelvin");
    let settled = of("ambient_celsius") + rise;
    let left = (settled - celsius) / (settled - begins_celsius);
    -left.ln() * of("kelvin_per_watt") * of("joules_per_kelvin")
}

fn planted_layers(name: &str, device: &Path) -> BTreeMap<(String, u32), LayerTruth> {
    let network = Network::open(&model(name), &BTreeMap::new()).expect("a model");
    let truth = truth(&DeviceFile::open(device).expect("a device file"), &network);
    let processors = truth.processors.into_iter();
    processors
        .flat_map(|of| {
            let layers = of.layers.into_iter();
            layers.map(move |layer| ((of.processor.clone(), layer.layer), layer))
        })
        .collect()
}

/// Of the published numbers, those whose interval holds the planted one, `slowdown` times as long, and how many there are.
fn held(
    profile: &Profile,
    planted: &BTreeMap<(String, u32), LayerTruth>,
    slowdown: f64,
) -> (usize, usize) {
    let last = profile.layers.len() as u32;
    let (mut held, mut all) = (0, 0);
    let mut count = |found: Estimate, cold: f64| {
        let (low, high) = found.ci95.expect("an interval");
        let is_held = (low.as_nanos() as f64..=high.as_nanos() as f64).contains(&(cold * slowdown));
        held += usize::from(is_held);
        all += 1;
    };
    for row in &profile.times {
        let planted = &planted[&(row.processor.clone(), row.layer)];
        let nanos = |time: Option<Nanos>| time.map_or(0.0, |time| time.as_nanos() as f64);
        let mut compute = planted.compute_ns.as_nanos() as f64;
        if row.time.compute_includes.to_processor {
            assert_eq!(row.layer, 1);
            compute += nanos(planted.to_processor_ns);
        }
        if row.time.compute_includes.from_processor {
            assert_eq!(row.layer, last);
            compute += nanos(planted.from_processor_ns);
        }
        count(row.time.compute, compute);
        for (found, planted) in [
            (row.time.to_processor, planted.to_processor_ns),
            (row.time.from_processor, planted.from_processor_ns),
        ] {
            if let Some(found) = found {
                count(found, nanos(planted));
            }
        }
    }
    (held, all)
}

/// heats.toml itself, which ends at its least speed, and one that ends where heating and throttling are in balance, is
/// faster for each second in which it idles, and idles while segments are loaded: it has to be heated up again for each block.
#[test]
fn the_planted_steady_times_are_inside_the_intervals() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut balanced = SLOW.to_vec();
    balanced.retain(|(from, _)| !from.starts_with("joules"));
    balanced.push(("power_watts = 3.0", "power_watts = 2.5"));
    // Each loading lets it cool.
    balanced.push((
        "fixed_cost_ns = 120_000",
        "fixed_cost_ns = 120_000\nload_fixed_ns = 1_000_000_000",
    ));
    let devices = [
        ("heats", 0, &[][..]),
        ("balanced", SLOW_GAP_US, &balanced[..]),
    ];
    for (name, gap_us, changes) in devices {
        let device = device(folder.path(), name, changes);
        let out = folder.path().join(name);
        succeed(&mut profile(gap_us, &device, 12, &out));
        let profile = Profile::read(&out).expect("a profile");
        let slowdown = planted_slowdown(&device);
        assert!(slowdown > 1.3, "{name}: {slowdown}");
        let planted = planted_layers("yolo-small", &device);
        assert_eq!(profile.header.thermal, Thermal::Cold);
        let steady = profile.steady.as_deref().expect("steady times");
        assert_eq!(steady.header.thermal, Thermal::Steady);
        for (profile, slowdown) in [(&profile, 1.0), (steady, slowdown)] {
            let (held, all) = held(profile, &planted, slowdown);
            assert!(all > 100);
            // Of 95 % intervals, one in twenty lies beside; eleven or more of 118 do so less than once in fifty.
            assert!(held + 11 > all, "{name} x {slowdown}: {held} of {all}");
        }
        for soak in &steady.soaking.found {
            let of_it = planted
                .iter()
                .filter(|((name, _), _)| *name == soak.processor);
            let mut whole: f64 = of_it.map(|(_, one)| one.compute_ns.as_nanos() as f64).sum();
            if let Some(first) = planted[&(soak.processor.clone(), 1)].to_processor_ns {
                let last = profile.layers.len() as u32;
                let last = planted[&(soak.processor.clone(), last)].from_processor_ns;
                whole += (first + last.expect("an accelerator")).as_nanos() as f64;
            }
            let ratio = soak.steady_ns.as_nanos() as f64 / (whole * slowdown);
            assert!((ratio - 1.0).abs() < 0.003, "{name}: {soak:?}, not {whole}");
            let rested = soak.rested_ns.expect("a cool device").as_nanos() as f64;
            assert!((rested / whole - 1.0).abs() < 0.02, "{name}: {soak:?}");
            assert!(soak.onset_ns.is_some(), "{name}: {soak:?}");
        }
        let shown = succeed(layerlab().arg("show").arg("--wide").arg(&out));
        for words in [
            "npu steady",
            "ratio",
            "throttling from 0:0",
            "steady from minute 1 on",
        ] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        let plot = std::fs::read_to_string(out.join("plot.svg")).expect("a plot");
        for words in ["npu: throttles from 0.", "steady from minute 1 on (thick)"] {
            assert!(plot.contains(words), "{words}");
        }
        let checked = succeed(layerlab().arg("check").arg(&out));
        assert!(checked.contains("a sound simulated profile"), "{checked}");
    }
}

/// With such a gap before each inference, a slow device stays cool.
const SLOW_GAP_US: u32 = 1_000_000;

/// Slow enough for few inferences, with less power and nearly a hundred times the heat capacity.
const SLOW: [(&str, &str); 10] = [
    ("power_watts = 12.0", "power_watts = 3.0"),
    ("joules_per_kelvin = 0.3", "joules_per_kelvin = 20"),
    (
        "convolution_flop_per_s = 1e10",
        "convolution_flop_per_s = 2e7",
    ),
    (
        "fully_connected_flop_per_s = 5e9",
        "fully_connected_flop_per_s = 1e7",
    ),
    ("pooling_flop_per_s = 2e9", "pooling_flop_per_s = 4e6"),
    ("other_flop_per_s = 3e9", "other_flop_per_s = 6e6"),
    (
        "convolution_flop_per_s = 2e10",
        "convolution_flop_per_s = 4e7",
    ),
    (
        "fully_connected_flop_per_s = 1e10",
        "fully_connected_flop_per_s = 2e7",
    ),
    ("pooling_flop_per_s = 4e9", "pooling_flop_per_s = 8e6"),
    ("other_flop_per_s = 6e9", "other_flop_per_s = 1.2e7"),
];

/// A phone that is fast at first and throttles, and one that takes half as long again and stays cool.
#[test]
fn two_phones_swap_ranks_between_minute_1_and_minute_30_and_the_comparison_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let sprinter = device(folder.path(), "sprinter", &SLOW);
    let mut changes = SLOW.to_vec();
    // SLOW's speeds of the CPU, and the power, once more.
    changes.extend([
        (
            "convolution_flop_per_s = 2e7",
            "convolution_flop_per_s = 1.333e7",
        ),
        (
            "fully_connected_flop_per_s = 1e7",
            "fully_connected_flop_per_s = 0.667e7",
        ),
        ("pooling_flop_per_s = 4e6", "pooling_flop_per_s = 2.667e6"),
        ("other_flop_per_s = 6e6", "other_flop_per_s = 4e6"),
        ("power_watts = 3.0", "power_watts = 0.5"),
        ("name = \"heats", "name = \"keeps"),
    ]);
    let walker = device(folder.path(), "walker", &changes);
    let published = [&sprinter, &walker].map(|device| {
        let out = device.with_extension("profile");
        let mut command = profile(SLOW_GAP_US, device, 30, &out);
        succeed(command.args(["--processors", "cpu"]));
        out
    });
    let steady = |out: &Path| Profile::read(&out.join(STEADY_FOLDER)).expect("steady times");
    let soaking = steady(&published[0]).soaking;
    let soak = &soaking.found[0];
    assert_eq!(soak.minutes, 30);
    let begins = soaking.minutes[0]
        .state
        .temperature_millicelsius
        .expect("a reading");
    let planted = planted_onset_seconds(&sprinter, begins.as_millicelsius() as f64 / 1e3);
    assert!(planted > 15.0, "{planted}");
    let onset = soak.onset_ns.expect("it throttles").as_nanos() as f64 / 1e9;
    // A slice has three inferences, which take two seconds.
    assert!(
        (onset - planted).abs() < 6.0,
        "{onset} s, planted {planted} s"
    );
    assert_eq!(steady(&published[1]).soaking.found[0].onset_ns, None);

    let compare = |one: &Path, other: &Path| {
        let mut command = layerlab();
        succeed(command.arg("compare").arg(one).arg(other))
    };
    let said = compare(&published[0], &published[1]);
    let line = said
        .lines()
        .find(|line| line.contains("swap ranks"))
        .expect(&said);
    for words in [
        "all layers on cpu",
        "minute 1:",
        "one is the faster",
        "minute 30:",
        "other is the faster",
    ] {
        assert!(line.contains(words), "{words}: {line}");
    }
    let alike = compare(&published[1], &published[1]);
    assert!(
        alike.contains("minute 30") && !alike.contains("swap"),
        "{alike}"
    );
}

#[test]
fn a_device_that_never_cools_publishes_steady_times_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut changes = SLOW.to_vec();
    changes.retain(|(from, _)| !from.starts_with("joules"));
    changes.push(("ambient_celsius = 25.0", "ambient_celsius = 50.0"));
    let sun = device(folder.path(), "sun", &changes);
    let out = folder.path().join("sun");
    let mut command = profile(SLOW_GAP_US, &sun, 12, &out);
    command.env("LAYERLAB_LOG", "warn");
    let run = output(command.args(["--processors", "cpu"]));
    assert!(run.status.success(), "{}", stderr(&run));
    assert!(
        stderr(&run).contains("its steady times alone are measured"),
        "{}",
        stderr(&run)
    );

    let profile = Profile::read(&out).expect("a profile");
    assert_eq!(profile.header.thermal, Thermal::Steady);
    assert_eq!(profile.header.mark(), Some("simulated, steady"));
    let soak = &profile.soaking.found[0];
    assert_eq!(
        (soak.rested_ns, soak.onset_ns),
        (None, None),
        "nobody saw it cool"
    );
    let shown = succeed(layerlab().arg("show").arg(&out));
    assert!(
        shown.starts_with("yolo-small on heats (simulated) (steady)"),
        "{shown}"
    );
    assert!(shown.contains("All times are steady ones"), "{shown}");

    // It is never taken for a cool device's.
    let refused = |command: &mut Command, sentence: &str| {
        let run = output(command);
        assert_eq!(run.status.code(), Some(3), "{}", stderr(&run));
        assert!(stderr(&run).contains(sentence), "{}", stderr(&run));
    };
    let mut plan = layerlab();
    plan.args(["plan", "max-accuracy", "--time", "1s"])
        .arg(&out);
    refused(&mut plan, "the profile has steady times alone");
    let cool = device(folder.path(), "cool", &SLOW);
    let cold = folder.path().join("cold");
    let mut command = layerlab();
    command.args([
        "profile",
        "--design",
        "local",
        "--samples",
        "6",
        "--processors",
        "cpu",
    ]);
    command
        .arg("--model")
        .arg(model("yolo-small"))
        .arg("--device")
        .arg(cool);
    succeed(command.arg("--out").arg(&cold));
    refused(
        layerlab().arg("compare").arg(&cold).arg(&out),
        "those of the other steady",
    );
    let mut plan = layerlab();
    plan.args([
        "plan",
        "max-accuracy",
        "--time",
        "1s",
        "--thermal",
        "steady",
    ]);
    refused(plan.arg(&cold), "the profile has no steady times");

    // Nor once somebody has taken the mark away.
    let json = std::fs::read_to_string(out.join(PROFILE_JSON)).expect("the header");
    let unmarked = json.replace("  \"thermal\": \"steady\",\n", "");
    assert_ne!(unmarked, json);
    let digest = format!("{}  {PROFILE_JSON}\n", sha256(unmarked.as_bytes()));
    std::fs::write(out.join(DIGEST_FILE), digest).expect("room");
    std::fs::write(out.join(PROFILE_JSON), unmarked).expect("room");
    let (_, findings) = check_directory(&out).expect("a profile");
    let errors = findings
        .iter()
        .filter(|one| one.severity == Severity::Error);
    assert!(
        errors
            .map(|one| one.rule)
            .any(|rule| rule == Rule::ThermalContradiction),
        "{findings:?}"
    );
}

#[test]
fn what_becomes_slower_to_the_end_has_no_steady_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut changes = SLOW.to_vec();
    changes.push(("joules_per_kelvin = 20", "joules_per_kelvin = 60"));
    let slow = device(folder.path(), "slow", &changes);
    let out = folder.path().join("slow");
    let mut command = profile(SLOW_GAP_US, &slow, 20, &out);
    let run = output(command.args(["--processors", "cpu"]));
    assert_eq!(run.status.code(), Some(4), "{}", stderr(&run));
    let said = stderr(&run);
    for words in [
        "the cold times are published in",
        "was kept busy for 20 minutes",
        "--steady",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let profile = Profile::read(&out).expect("the cold times");
    assert_eq!(
        (profile.header.thermal, profile.steady),
        (Thermal::Cold, None)
    );
}

#[test]
fn a_time_in_which_nothing_becomes_steady_is_refused() {
    for unfit in ["5m", "90s", "12m30s", "25h", "soon"] {
        let mut command = layerlab();
        command.args([
            "profile", "--model", "m", "--device", "d", "--steady", unfit,
        ]);
        let run = output(&mut command);
        assert_eq!(run.status.code(), Some(2), "{unfit}");
        assert!(
            stderr(&run).contains("whole minutes, from 12m to 1440m"),
            "{}",
            stderr(&run)
        );
    }
}

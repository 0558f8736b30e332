//! A network of twice the memory of a phone's NPU, the whole way: what fits is measured, what does not is said, plans keep
//! to it, and what they predict is what the phone then takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use layerlab_agent::device::simulated::DeviceFile;
use layerlab_agent::truth::{Truth, truth};
use layerlab_model::Network;
use layerlab_profiles::document::{Method, Profile};
use layerlab_profiles::loading::LoadTimes;
use layerlab_profiles::{Bytes, Nanos, Placement, Segment};
use layerlab_tests::{device, file, layerlab, model, output, stderr, succeed};

/// Halves of nanoseconds are rounded away; a segment's time is a sum of a few of them for each layer.
const TOLERANCE_NS: i64 = 30;

/// About half of what the NPUs here need of vocnet-mini: its weights as 16-bit floats are 399.7 KiB, and the largest tensor
/// 73.5 KiB.
const MEMORY: u64 = 242_000;

/// A simulated phone like `name` whose NPU has so much memory, and more lines if need be, described by a file in `folder`.
fn small(folder: &Path, name: &str, more: &str) -> PathBuf {
    let text = std::fs::read_to_string(device(name)).expect("a device");
    let mut lines: Vec<&str> = text.lines().collect();
    lines.retain(|line| !line.starts_with("memory_bytes"));
    let text = lines.join("\n") + "\n";
    let npu = "name = \"npu\"\n";
    assert!(text.contains(npu));
    let limited = format!("{npu}memory_bytes = {MEMORY}\n{more}");
    let file = folder.join("small.toml");
    std::fs::write(&file, text.replace(npu, &limited)).expect("room");
    file
}

fn planted(device: &Path) -> Truth {
    let network = Network::open(&model("vocnet-mini"), &BTreeMap::new()).expect("a model");
    truth(&DeviceFile::open(device).expect("a device file"), &network)
}

/// What the NPU needs of its memory for each segment: weights and the largest tensor, as 16-bit floats.
fn needed(segment: Segment) -> u64 {
    let network = Network::open(&model("vocnet-mini"), &BTreeMap::new()).expect("a model");
    let layers = &network.layers()[segment.first() as usize - 1..segment.last() as usize];
    let weights: Bytes = layers.iter().map(|layer| layer.parameter_bytes).sum();
    let tensors = layers
        .iter()
        .flat_map(|layer| [layer.input_bytes, layer.output_bytes]);
    let largest = tensors.max().expect("a layer");
    weights.as_bytes().div_ceil(2) + largest.as_bytes().div_ceil(2)
}

fn all_segments() -> impl Iterator<Item = Segment> {
    (1..=11).flat_map(|first| (first..=11).filter_map(move |last| Segment::new(first, last).ok()))
}

fn measure(device: &Path, design: &str, samples: &str, out: &Path) -> std::process::Command {
    let mut command = layerlab();
    command.args([
        "profile",
        "--design",
        design,
        "--samples",
        samples,
        "--gap-us",
        "0",
    ]);
    command.arg("--model").arg(model("vocnet-mini"));
    command.arg("--device").arg(device).arg("--out").arg(out);
    command
}

#[test]
fn what_fits_has_its_planted_times_by_every_design_that_can_work() {
    let longest = all_segments().filter(|&one| needed(one) <= MEMORY);
    let largest = longest.reduce(|one, next| {
        if next.layers() > one.layers() {
            next
        } else {
            one
        }
    });
    assert!(
        needed(Segment::whole(11)) > 19 * MEMORY / 10,
        "twice the memory"
    );
    for (design, more) in [
        ("local", ""),
        ("local", "tells_memory = false\n"),
        ("grouped", ""),
        ("adaptive", ""),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let device = small(folder.path(), "symmetric-exact", more);
        let out = folder.path().join("profile");
        let mut command = measure(&device, design, "6", &out);
        if design == "adaptive" {
            command.args(["--budget", "5s"]);
        }
        succeed(&mut command);
        let profile = Profile::read(&out).expect("a published profile");
        let what = format!("{design} {more}");

        // Said is of each segment that does not fit the shortest of its parts that does not.
        let too_large: Vec<Segment> = profile.unsupported.iter().map(|row| row.segment).collect();
        let is_refused = |one: Segment| too_large.iter().any(|large| large.is_within(one));
        for segment in all_segments() {
            assert_eq!(
                is_refused(segment),
                needed(segment) > MEMORY,
                "{what}: {segment}"
            );
        }
        for row in &profile.unsupported {
            assert_eq!(row.processor, "npu", "{what}");
            let bytes = row.needed.map(Bytes::as_bytes);
            assert_eq!(bytes, Some(needed(row.segment)), "{what}: {row:?}");
        }
        let npu = profile
            .header
            .processors
            .iter()
            .find(|one| one.name == "npu");
        let told = npu.expect("an NPU").memory_bytes.map(Bytes::as_bytes);
        assert_eq!(told, more.is_empty().then_some(MEMORY), "{what}");
        let measurement = profile
            .header
            .measurements
            .iter()
            .find(|one| one.processor == "npu");
        let measurement = measurement.expect("measured");
        assert_eq!(measurement.sentinel, largest, "{what}");
        assert!(
            measurement.method.is_least_squares(),
            "{what}: {}",
            Method::Graph
        );
        let of_npu = profile
            .samples
            .iter()
            .filter(|sample| sample.processor == "npu");
        let mut measured = of_npu.map(|sample| sample.segment);
        assert!(measured.all(|one| needed(one) <= MEMORY), "{what}");

        // What is derived is what was planted, also of segments that do not fit: a placement may part them elsewhere.
        let truth = planted(&device);
        let fit = profile
            .fit("npu")
            .expect("least squares")
            .expect("connected");
        for segment in all_segments() {
            let found = fit.segment(segment).value;
            let planted = truth.segment("npu", segment).expect("planted").signed();
            let difference = (found - planted).as_nanos().abs();
            assert!(
                difference <= TOLERANCE_NS,
                "{what}, {segment}: {found:?} {planted:?}"
            );
        }
        succeed(layerlab().arg("check").arg(&out));
        let shown = succeed(layerlab().arg("show").arg(&out));
        let largest = largest.expect("something fits");
        let line = format!("of npu does not hold the whole model: layers {largest} are");
        let untold = format!("the memory {line}");
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&line) || words.contains(&untold), "{shown}");
        assert!(!shown.contains("all layers on npu"), "{shown}");
    }
}

#[test]
fn a_design_that_needs_the_whole_model_is_refused_with_those_that_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = small(folder.path(), "symmetric-exact", "");
    let ended = output(&mut measure(
        &device,
        "prefix-suffix",
        "6",
        &folder.path().join("no"),
    ));
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let said = stderr(&ended);
    assert!(
        said.contains("the memory of `npu` does not hold layers 1..=11 as one segment"),
        "{said}"
    );
    assert!(said.contains("choose local, adaptive or grouped"), "{said}");
}

#[test]
fn intervals_hold_planted_times_about_as_often_where_memory_is_short() {
    let (mut held, mut all) = (0, 0);
    for (design, seed) in [
        ("local", 1),
        ("local", 2),
        ("local", 3),
        ("adaptive", 1),
        ("adaptive", 2),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let device = small(folder.path(), "noisy", "");
        let out = folder.path().join("profile");
        let mut command = measure(&device, design, "15", &out);
        command.args(["--budget", "20s", "--seed", &seed.to_string()]);
        succeed(&mut command);
        let profile = Profile::read(&out).expect("a published profile");
        let truth = planted(&device);
        let fit = profile
            .fit("npu")
            .expect("least squares")
            .expect("connected");
        for segment in all_segments() {
            let planted = truth.segment("npu", segment).expect("planted").signed();
            let (low, high) = fit.segment(segment).ci95.expect("an interval");
            held += u32::from((low..=high).contains(&planted));
            all += 1;
        }
    }
    let share = f64::from(held) / f64::from(all);
    assert!(
        share >= 0.85,
        "{held} of {all} intervals hold what was planted"
    );
}

/// The plan of a command that prints one as JSON.
fn planned(command: &mut std::process::Command) -> serde_json::Value {
    let json = succeed(command.arg("--json"));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    json["outcomes"][0]["plan"].clone()
}

#[test]
fn plans_keep_to_the_memory_and_take_what_they_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let loading = "load_fixed_ns = 400_000\nload_bytes_per_s = 4e8\n";
    let device = small(folder.path(), "symmetric-exact", loading);
    let set = folder.path().join("scenes.set");
    let scenes = file("models/scenes");
    let mut command = layerlab();
    command.args(["set", "--metric", "multi-label"]);
    command.arg("--coco").arg(scenes.join("annotations.json"));
    command.arg("--images").arg(scenes.join("images"));
    command.args(["--size", "112x112", "--limit", "30"]);
    succeed(command.arg("--out").arg(&set));
    let out = folder.path().join("profile");
    let mut command = measure(&device, "local", "6", &out);
    command.args(["--placements", "40", "--answers", "20"]);
    succeed(command.arg("--set").arg(&set));
    succeed(layerlab().arg("check").arg(&out));
    let profile = Profile::read(&out).expect("a published profile");

    // What loading was planted to take.
    let loads = profile.loads.iter().filter(|load| load.processor == "npu");
    let times: BTreeMap<Segment, Nanos> = loads.map(|one| (one.segment, one.duration)).collect();
    let times = LoadTimes::of(11, &times).expect("enough");
    for segment in all_segments() {
        let network = Network::open(&model("vocnet-mini"), &BTreeMap::new()).expect("a model");
        let layers = &network.layers()[segment.first() as usize - 1..segment.last() as usize];
        let weights: Bytes = layers.iter().map(|layer| layer.parameter_bytes).sum();
        let expected = 400_000.0 + weights.as_bytes() as f64 / 2.0 / 4e8 * 1e9;
        let found = times.segment(segment).as_nanos() as f64;
        assert!(
            (found - expected).abs() < 40.0,
            "{segment}: {found} {expected}"
        );
    }

    let plan = |arguments: &[&str]| {
        let mut command = layerlab();
        command.args(["plan", "min-time"]).arg(&out);
        command.args(["--accuracy", "0", "--no-cache", "--confidence", "none"]);
        command.args(arguments);
        command
    };
    let truth = planted(&device);
    let mut fastest = Vec::new();
    for (mode, algorithm) in [
        ("resident", "mlmp"),
        ("resident", "fastest"),
        ("reload", "mlmp"),
        ("reload", "fastest"),
    ] {
        let options = ["--memory", mode, "--algorithm", algorithm];
        let found = planned(&mut plan(&options));
        let text = found["combination"].as_str().expect("a placement");
        let placement: Placement = text.parse().expect("digits");
        let runs: Vec<Segment> = placement.npu_runs().collect();
        assert!(!runs.is_empty(), "{mode}: the NPU is used");
        let needs = runs.iter().map(|&run| needed(run));
        let (sum, largest) = (needs.clone().sum::<u64>(), needs.max().expect("runs"));
        let need = if mode == "resident" { sum } else { largest };
        assert!(need <= MEMORY, "{mode}: {text} needs {need}");
        let said = found["memory"][0]["needed_bytes"].as_u64().expect("a need");
        assert!((need..=MEMORY).contains(&said), "{mode}: {said} for {need}");
        let loading: i64 = runs.iter().map(|&run| times.segment(run).as_nanos()).sum();
        let loading = if mode == "resident" { 0 } else { loading };
        assert_eq!(found["loading_ns"], loading, "{mode}");
        let running = truth
            .placement(&["cpu", "npu"], &placement)
            .expect("planted");
        let time = found["time_ns"].as_i64().expect("a time");
        let expected = running.as_nanos() as i64 + loading;
        assert!(
            (time - expected).abs() <= 4 * TOLERANCE_NS,
            "{mode}: {time} {expected}"
        );
        fastest.push((mode, time));

        // The device, which refuses what does not fit, takes as long.
        let mut verify = plan(&options);
        verify
            .arg("--verify")
            .arg(&device)
            .arg("--model")
            .arg(model("vocnet-mini"));
        let verified = succeed(&mut verify);
        let line = verified.lines().find(|line| line.starts_with("time  "));
        let line = line.unwrap_or_else(|| panic!("no times in {verified}"));
        let said = verified
            .lines()
            .rfind(|line| line.trim_start().starts_with("time "));
        let fields: Vec<&str> = said.unwrap_or(line).split("  ").map(str::trim).collect();
        let fields: Vec<&str> = fields
            .into_iter()
            .filter(|field| !field.is_empty())
            .collect();
        assert_eq!(
            fields[1],
            fields.get(3).copied().unwrap_or_default(),
            "{verified}"
        );
        assert!(verified.contains("of 236.3 KiB on the NPU"), "{verified}");
    }
    assert_eq!(fastest[0].1, fastest[1].1);
    assert_eq!(fastest[2].1, fastest[3].1);

    let ended = output(plan(&["--algorithm", "all-npu"]).args(["--memory", "resident"]));
    assert_eq!(ended.status.code(), Some(8), "{ended:?}");
    assert!(
        stderr(&ended).contains("of the memory of the NPU, which has 236.3 KiB"),
        "{ended:?}"
    );

    // A limit that only what does not fit would keep.
    let whole = truth
        .placement(&["cpu", "npu"], &Placement::all_on(1, 11))
        .expect("planted");
    let within = format!("{}ns", whole.as_nanos() + 1_000);
    let mut short = layerlab();
    short
        .args(["plan", "max-accuracy"])
        .arg(&out)
        .args(["--time", &within]);
    let ended = output(short.args(["--no-cache", "--confidence", "none"]));
    assert_eq!(ended.status.code(), Some(8), "{ended:?}");
    let said = stderr(&ended);
    assert!(
        said.contains("no placement that fits is fast enough"),
        "{said}"
    );
    assert!(said.contains("--memory reload"), "{said}");

    let swept = succeed(
        layerlab()
            .args(["plan", "sweep", "--steps", "3", "--no-cache"])
            .arg(&out),
    );
    let head = swept.lines().next().expect("a head");
    assert!(head.contains(",loading_ns,memory_needed_bytes,"), "{head}");
    let exported = succeed(
        layerlab()
            .args(["export", "--format", "msr-fiddle"])
            .arg(&out),
    );
    let exported: serde_json::Value = serde_json::from_str(&exported).expect("JSON");
    assert_eq!(exported["maxSizePerFPGA"], MEMORY as f64);
}

#[test]
fn a_memory_that_holds_no_layer_leaves_the_cpu_and_says_what_each_layer_needs() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(device("symmetric-exact")).expect("a device");
    let file = folder.path().join("tiny.toml");
    std::fs::write(&file, format!("{text}\nmemory_bytes = 1000\n")).expect("room");
    let out = folder.path().join("profile");
    let shown = succeed(&mut measure(&file, "local", "6", &out));
    let profile = Profile::read(&out).expect("a published profile");
    let on_cpu = profile.times.iter().filter(|row| row.processor == "cpu");
    assert_eq!(on_cpu.count(), 11);
    assert!(profile.times.iter().all(|row| row.processor == "cpu"));
    assert_eq!(profile.unsupported.len(), 11);
    for row in &profile.unsupported {
        assert_eq!(row.segment.layers(), 1, "{row:?}");
        let needed = row.needed.map(Bytes::as_bytes);
        assert_eq!(needed, Some(self::needed(row.segment)), "{row:?}");
        let said = format!("npu cannot run layer {} (", row.segment.first());
        assert!(shown.contains(&said), "{shown}");
    }
}

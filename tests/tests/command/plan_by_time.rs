//! `layerlab plan` by time or energy alone: networks whose accuracy nobody can measure are planned, and it is said that nothing is
//! known of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use layerlab_profiles::Placement;
use layerlab_profiles::document::{ProcessorKind, Profile};
use layerlab_profiles::time_model::{ProcessorTimes, TimeModel};
use layerlab_tests::{layerlab, model, output, root, succeed};
use serde_json::Value;

use super::assert_fails;

const DECODER: &str = "gpt2-decode";

const UNKNOWN: &str =
    "accuracy  not measured: nothing is known of what this plan costs in accuracy";

/// Slow enough that half a minute has no more than some ten thousand inferences. It is not always the accelerator that is the
/// better choice.
const PHONE: &str = r#"
name = "reader (simulated)"
clock = "exact"
[gauge]
idle_watts = 0.8
step_watts = 0.005
period_ms = 1000
delay_ms = 700
offset_watts = 0.0
noise_watts = 0.01
[[processor]]
name = "cpu"
kind = "cpu"
numerics = "f32"
convolution_flop_per_s = 1e6
fully_connected_flop_per_s = 1e6
pooling_flop_per_s = 1e6
other_flop_per_s = 1e6
noise_proportional_sigma = 0.01
power_watts = 1.0
[[processor]]
name = "npu"
kind = "accelerator"
numerics = "f16"
convolution_flop_per_s = 1e7
fully_connected_flop_per_s = 1e7
pooling_flop_per_s = 1e7
other_flop_per_s = 1e7
fixed_cost_ns = 4_000_000
input_bytes_per_s = 1e6
output_bytes_per_s = 1e6
noise_proportional_sigma = 0.01
power_watts = 4.0
"#;

/// A simulated phone, and the decoder's profile on it.
struct Reader {
    folder: tempfile::TempDir,
}

impl Reader {
    fn new() -> Reader {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("phone.toml"), PHONE).expect("room");
        Reader { folder }
    }

    fn phone(&self) -> PathBuf {
        self.folder.path().join("phone.toml")
    }

    /// The profile of a model, which is made with these options.
    fn profile(&self, name: &str, more: &[&str]) -> PathBuf {
        let out = self.folder.path().join(name);
        let mut command = layerlab();
        command.args(["profile", "--design", "local", "--samples", "10", "--model"]);
        command.arg(model(name)).arg("--device").arg(self.phone());
        succeed(command.arg("--out").arg(&out).args(more));
        out
    }
}

fn plan(goal: &str, profile: &Path, more: &[&str]) -> Command {
    let mut command = layerlab();
    command.args(["plan", goal, "--no-cache"]);
    command.arg(profile).args(more);
    command
}

fn json(goal: &str, profile: &Path, more: &[&str]) -> Value {
    let said = succeed(plan(goal, profile, &["--json"]).args(more));
    serde_json::from_str(&said).expect("JSON")
}

/// The costs of all placements of a published profile, and of each its combination.
fn every(profile: &Profile) -> Vec<(i64, String)> {
    let processors = profile.header.processors.iter();
    let times = processors.map(|one| {
        let times = profile.layer_times(&one.name);
        ProcessorTimes::new(one.kind, &times)
    });
    let model = TimeModel::of(times.collect()).expect("all times");
    let layers = profile.layers.len();
    let placement = |bits: u32| {
        Placement::new(
            (0..layers)
                .map(|l| bits >> l & 1 == 1)
                .collect::<Vec<bool>>(),
        )
    };
    (0..1 << layers)
        .map(|bits| {
            let placement = placement(bits);
            let time = model.predict(&placement).expect("a time").total();
            (time.as_nanos(), placement.to_string())
        })
        .collect()
}

#[test]
fn a_decoder_is_planned_by_time_and_energy_alone_and_the_plan_is_run() {
    let reader = Reader::new();
    let out = reader.profile(DECODER, &["--energy", "30s"]);
    let profile = Profile::read(&out).expect("a profile");
    let kinds: Vec<ProcessorKind> = profile
        .header
        .processors
        .iter()
        .map(|one| one.kind)
        .collect();
    assert_eq!(kinds, [ProcessorKind::Cpu, ProcessorKind::Accelerator]);
    assert_eq!(profile.header.model.takes_an_image(), Some(false));

    // The fastest of all.
    let every = every(&profile);
    let (least, combination) = every.iter().min().expect("placements");
    let told = json("min-time", &out, &[]);
    let said = &told["outcomes"][0]["plan"];
    assert_eq!(said["time_ns"], *least, "{combination}");
    assert_eq!(said["combination"], combination.as_str());
    assert!(
        combination.contains('1') && combination.contains('0'),
        "{combination}"
    );
    for field in [
        "accuracy",
        "accuracy_interval",
        "predicted_loss",
        "keeps_limit",
    ] {
        assert!(said[field].is_null(), "{field}: {said}");
    }
    assert!(told["outcomes"][0]["limit_accuracy"].is_null());
    let said = succeed(&mut plan("min-time", &out, &["--algorithm", "fastest"]));
    let digest = told["source"]["profile_digest"].as_str().expect("a digest");
    for part in [
        combination.as_str(),
        UNKNOWN,
        "time  ",
        " moving",
        digest,
        "simulated device",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }

    // What draws least of all, and within a time that it does not keep.
    let frugal = json("min-energy", &out, &[]);
    let frugal = &frugal["plan"];
    let energy = |plan: &Value| plan["energy_nj"].as_i64().expect("nJ");
    let time = |plan: &Value| plan["time_ns"].as_i64().expect("ns");
    assert!(frugal["accuracy"].is_null() && frugal["is_optimum"] == true);
    assert!(time(frugal) > *least, "{frugal}");
    let within = format!("{}ns", (time(frugal) + least) / 2);
    let limited = json("min-energy", &out, &["--time", &within]);
    assert_eq!(limited["plan"]["keeps_limit"], true, "{limited}");
    assert!(energy(&limited["plan"]) > energy(frugal), "{limited}");
    let run = output(&mut plan("min-energy", &out, &["--time", "1ns"]));
    assert_fails(&run, 8, &["no placement is fast enough"]);

    // Run as planned.
    let phone = reader.phone();
    let phone = phone.to_str().expect("a name");
    let model = model(DECODER);
    let model = model.to_str().expect("a name");
    for goal in ["min-time", "min-energy"] {
        let said = succeed(&mut plan(
            goal,
            &out,
            &["--verify", phone, "--model", model],
        ));
        assert!(said.contains(UNKNOWN), "{said}");
        let table = said.split("measured").nth(1);
        let table = table
            .and_then(|_| said.split_once("predicted"))
            .expect("a table")
            .1;
        let row = table
            .lines()
            .find(|line| line.trim_start().starts_with("time"));
        assert!(
            row.is_some_and(|row| row.matches(" to ").count() == 2),
            "{said}"
        );
        assert!(!table.contains("accuracy"), "{said}");
    }
}

/// The cells of the table of what was measured beside what was predicted, by their row.
fn beside(said: &str, name: &str) -> Vec<String> {
    let row = said
        .lines()
        .rev()
        .find(|line| line.trim_start().starts_with(name));
    let cells = row.expect("a row").split("  ").map(str::trim);
    cells
        .filter(|cell| !cell.is_empty())
        .map(str::to_owned)
        .collect()
}

fn nanojoules(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').expect("a number and its unit");
    let thousands = ["nJ", "µJ", "mJ", "J"].iter().position(|one| *one == unit);
    let scale = 1e3_f64.powi(thousands.expect("a unit") as i32);
    number.parse::<f64>().expect("a number") * scale
}

#[test]
fn what_a_plan_draws_is_measured_beside_what_is_predicted() {
    let reader = Reader::new();
    let out = reader.profile(DECODER, &["--energy", "30s"]);
    let (phone, model) = (reader.phone(), model(DECODER));
    let verify = ["--verify", phone.to_str().expect("a name"), "--model"];
    let verify = [&verify[..], &[model.to_str().expect("a name")]].concat();
    let metered = [&verify[..], &["--energy", "30s"]].concat();
    for goal in ["min-time", "min-energy"] {
        let said = succeed(&mut plan(goal, &out, &metered));
        let cells = beside(&said, "energy");
        let [_, predicted, within, measured, interval] = &cells[..] else {
            panic!("{said}")
        };
        assert!(within.contains(" to "), "{said}");
        let (low, high) = interval.split_once(" to ").expect("an interval");
        let [predicted, measured, low, high] = [predicted, measured, low, high].map(nanojoules);
        assert!(low <= measured && measured <= high && low < high, "{said}");
        assert!((measured / predicted - 1.0).abs() < 0.03, "{said}");
        if goal == "min-time" {
            // Watts times nanoseconds; moving is the accelerator's.
            let told = json(goal, &out, &[]);
            let nanos = |name: &str| told["outcomes"][0]["plan"][name].as_f64().expect("ns");
            let planted = nanos("cpu_ns") + 4.0 * (nanos("npu_ns") + nanos("transfer_ns"));
            assert!((measured / planted - 1.0).abs() < 0.03, "{planted}: {said}");
        }
        assert_eq!(beside(&said, "time").len(), 5, "{said}");
    }
    // Without --energy the time alone is measured.
    let said = succeed(&mut plan("min-energy", &out, &verify));
    assert_ne!(beside(&said, "energy").len(), 5, "{said}");

    let run = output(&mut plan("min-time", &out, &["--energy", "30s"]));
    assert_eq!(run.status.code(), Some(2));
    let sweep = output(&mut plan("sweep", &out, &metered));
    assert_fails(&sweep, 2, &["leave it out of a sweep"]);
    // A phone without a gauge, and a profile without energies.
    let begin = PHONE.find("[gauge]").expect("a gauge");
    let end = PHONE.find("[[processor]]").expect("processors");
    std::fs::write(reader.phone(), PHONE.replace(&PHONE[begin..end], "")).expect("room");
    let run = output(&mut plan("min-energy", &out, &metered));
    assert_eq!(run.status.code(), Some(4));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.contains("no power meter"), "{said}");
    let bare = reader.profile("alexnet", &[]);
    refused(
        "min-time",
        &bare,
        &metered,
        &["does not say what inferences draw"],
    );
}

fn refused(goal: &str, profile: &Path, more: &[&str], words: &[&str]) {
    let run: Output = output(&mut plan(goal, profile, more));
    assert_fails(&run, 3, words);
}

#[test]
fn an_accuracy_that_cannot_be_measured_cannot_be_required() {
    let reader = Reader::new();
    let out = reader.profile(DECODER, &[]);
    let cannot = [
        "no measured combinations",
        "the accuracy of this model cannot be measured: it takes ",
        "inputs, and evaluation sets hold images",
        "`layerlab plan min-time` without --accuracy",
    ];
    refused("max-accuracy", &out, &["--time", "1s"], &cannot);
    refused("min-time", &out, &["--accuracy", "0.5"], &cannot);
    refused("min-energy", &out, &["--accuracy", "0.5"], &cannot);
    refused(
        "min-energy",
        &out,
        &[],
        &["does not say what inferences draw"],
    );
    refused("sweep", &out, &[], &cannot);
    for option in [
        &["--algorithm", "mlmp"][..],
        &["--k", "5"],
        &["--rows", "rows.json"],
    ] {
        let words = [option[0], "is about accuracy", "leave it out"];
        refused("min-time", &out, option, &words);
    }
    let phone = reader.phone();
    let (phone, model) = (phone.to_str().expect("a name"), model(DECODER));
    let verify = [
        "--verify",
        phone,
        "--model",
        model.to_str().expect("a name"),
    ];
    let set = [&verify[..], &["--set", "images.set"]].concat();
    let run = output(&mut plan("min-time", &out, &set));
    assert_eq!(run.status.code(), Some(3));
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.contains("--set is about accuracy"), "{said}");
    let refine = [&set[..], &["--refine", "3"]].concat();
    refused("min-time", &out, &refine, &["--refine is about accuracy"]);
    refused(
        "min-time",
        &out,
        &["--thermal", "steady"],
        &["no steady times"],
    );
}

#[test]
fn a_network_that_takes_an_image_is_told_how_to_measure_its_accuracy() {
    let reader = Reader::new();
    let out = reader.profile("alexnet", &[]);
    let words = [
        "no measured combinations",
        "measure them with `layerlab profile --set`",
        "without --accuracy",
    ];
    refused("max-accuracy", &out, &["--time", "1s"], &words);
    let said = succeed(&mut plan("min-time", &out, &[]));
    assert!(said.contains(UNKNOWN), "{said}");
}

#[test]
fn where_accuracy_was_measured_the_fastest_of_all_says_what_is_known_of_it() {
    let published = root().join("profiles/published/oneplus7/vocnet-mini");
    let fastest = ["--accuracy", "0", "--algorithm", "fastest"];
    let (told, same) = (
        json("min-time", &published, &[]),
        json("min-time", &published, &fastest),
    );
    assert_eq!(told, same);
    assert!(told["outcomes"][0]["plan"]["accuracy"].is_f64(), "{told}");
    let said = succeed(&mut plan("min-time", &published, &[]));
    assert!(
        !said.contains("not measured") && said.contains("with all layers on cpu"),
        "{said}"
    );
}

//! A phone with a CPU, a GPU and an NPU, by the command line from its times to a verified plan.

use std::collections::BTreeMap;
use std::path::PathBuf;

use layerlab_agent::device::simulated::DeviceFile;
use layerlab_agent::truth::truth;
use layerlab_model::Network;
use layerlab_planners::profile::time_table_of;
use layerlab_profiles::accuracy::Part;
use layerlab_profiles::document::Profile;
use layerlab_tests::{device, file, layerlab, model, output, stderr, succeed};

const INPUT: i32 = 3;
const THREE: [&str; 3] = ["cpu", "gpu", "npu"];
const TOGETHER: &str = "cpu,gpu,npu";
const MODEL: &str = "vocnet-mini";

/// A folder with an evaluation set, the times of a model on `trio` and, beside them, its accuracy.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        let bench = Bench {
            folder: tempfile::tempdir().expect("a folder"),
        };
        bench.make_set("set", 30);

        let mut profile = layerlab();
        profile.arg("profile").arg("--model").arg(model(MODEL));
        profile.args(["--device", "trio", "--design", "local"]);
        profile.args(["--samples", "20", "--gap-us", "0", "--out"]);
        succeed(profile.arg(bench.path("times")));

        let mut evaluate = layerlab();
        evaluate.arg("evaluate").arg("--model").arg(model(MODEL));
        evaluate.args(["--device", "trio", "--processors", TOGETHER]);
        evaluate.args(["--placements", "300", "--answers", "4"]);
        evaluate.arg("--set").arg(bench.path("set"));
        evaluate.arg("--profile").arg(bench.path("times"));
        succeed(evaluate.arg("--out").arg(bench.published()));
        bench
    }

    /// An evaluation set of so many scenes.
    fn make_set(&self, name: &str, limit: usize) {
        let scenes = file("models/scenes");
        let mut set = layerlab();
        set.args(["set", "--metric", "multi-label", "--size", "112x112"]);
        set.arg("--coco").arg(scenes.join("annotations.json"));
        set.arg("--images").arg(scenes.join("images"));
        set.args(["--limit", &limit.to_string(), "--out"]);
        succeed(set.arg(self.path(name)));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn published(&self) -> PathBuf {
        self.path("profile")
    }

    /// What `layerlab` with these arguments and the profile says.
    #[track_caller]
    fn says(&self, arguments: &[&str]) -> String {
        succeed(layerlab().args(arguments).arg(self.published()))
    }

    /// The same of arguments that it must refuse as input.
    #[track_caller]
    fn refuses(&self, arguments: &[&str]) -> String {
        let output = output(layerlab().args(arguments).arg(self.published()));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(INPUT), "{said}");
        said
    }

    /// The plan in the JSON that `layerlab plan` prints.
    fn plan(&self, arguments: &[&str]) -> serde_json::Value {
        let arguments = [&["plan"], arguments, &["--json"]].concat();
        let document: serde_json::Value =
            serde_json::from_str(&self.says(&arguments)).expect("JSON");
        document["outcomes"][0]["plan"].clone()
    }
}

#[test]
fn a_phone_with_three_processors_goes_the_whole_way() {
    let bench = Bench::new();
    let profile = Profile::read(&bench.published()).expect("a profile");
    accuracy_is_of_placements_on_all_three(&profile);
    times_are_the_planted_ones(&profile);
    profiles_are_checked_shown_compared_and_exported(&bench, profile.layers.len());
    the_papers_algorithms_name_the_others(&bench);
    plans_use_all_three_and_are_verified(&bench);
}

/// The phone's first accelerator is the GPU, of which this profile has no times.
#[test]
fn accuracy_is_measured_on_the_processors_that_the_profile_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let scenes = file("models/scenes");
    let mut set = layerlab();
    set.args(["set", "--metric", "multi-label", "--size", "112x112"]);
    set.arg("--coco").arg(scenes.join("annotations.json"));
    set.arg("--images").arg(scenes.join("images"));
    succeed(set.args(["--limit", "4", "--out"]).arg(path("set")));
    let mut profile = layerlab();
    profile.arg("profile").arg("--model").arg(model(MODEL));
    profile.args(["--device", "trio", "--processors", "cpu,npu"]);
    profile.args(["--design", "local", "--samples", "6", "--gap-us", "0"]);
    succeed(profile.arg("--out").arg(path("times")));
    let mut evaluate = layerlab();
    evaluate.arg("evaluate").arg("--model").arg(model(MODEL));
    evaluate.args(["--device", "trio", "--placements", "1", "--answers", "1"]);
    evaluate.arg("--set").arg(path("set"));
    evaluate.arg("--profile").arg(path("times"));
    succeed(evaluate.arg("--out").arg(path("profile")));
    let profile = Profile::read(&path("profile")).expect("a profile");
    let [evaluation] = &profile.evaluations[..] else {
        panic!("one evaluation: {:?}", profile.evaluations);
    };
    assert_eq!(evaluation.processors(&profile.header), ["cpu", "npu"]);
}

fn accuracy_is_of_placements_on_all_three(profile: &Profile) {
    let [evaluation] = &profile.evaluations[..] else {
        panic!("one evaluation: {:?}", profile.evaluations);
    };
    assert_eq!(evaluation.processors(&profile.header), THREE);
    let of = |part| {
        let rows = profile.combinations.iter();
        rows.filter(|row| row.part == part).count()
    };
    let layers = profile.layers.len();
    assert_eq!((of(Part::Train), of(Part::Test)), (250, 50));
    // All layers on each processor, and each layer alone on each accelerator; some of them were also drawn.
    let at_most_one_apart = |digits: &[u8]| {
        let apart = digits.iter().filter(|&&digit| digit != 0).count();
        apart <= 1 || digits.iter().all(|&digit| digit == digits[0])
    };
    let references = profile.combinations.iter();
    let references = references.filter(|row| at_most_one_apart(row.combination.processors()));
    assert_eq!(references.count(), 3 + 2 * layers);
    let uses_all = |digits: &[u8]| (0..3).all(|processor| digits.contains(&processor));
    let mut rows = profile.combinations.iter();
    assert!(rows.any(|row| uses_all(row.combination.processors())));
}

/// T(L) of each placement that was evaluated, despite noise and heat.
fn times_are_the_planted_ones(profile: &Profile) {
    let times = time_table_of(profile, &THREE).expect("all three");
    let network = Network::open(&model(MODEL), &BTreeMap::new()).expect("a model");
    let trio = DeviceFile::open(&device("trio")).expect("a device file");
    let truth = truth(&trio, &network);
    let error = |placement| {
        let planted = truth.placement(&THREE, placement).expect("all three");
        let placement = layerlab_planners::placement::PackedPlacement::of(placement).expect("fits");
        let predicted = times.time(&placement).total().as_nanos() as f64;
        (predicted / planted.as_nanos() as f64 - 1.0).abs()
    };
    let rows = profile.combinations.iter();
    let mut errors: Vec<f64> = rows.map(|row| error(&row.combination)).collect();
    errors.sort_by(f64::total_cmp);
    let (median, most) = (errors[errors.len() / 2], errors[errors.len() - 1]);
    assert!(median < 0.01 && most < 0.05, "median {median}, most {most}");
}

fn profiles_are_checked_shown_compared_and_exported(bench: &Bench, layers: usize) {
    let checked = bench.says(&["check"]);
    assert!(
        checked.contains("a sound simulated profile of vocnet-mini"),
        "{checked}"
    );
    let shown = bench.says(&["show"]);
    for name in THREE {
        assert!(
            shown.contains(&format!("all layers on {name}: ")),
            "{shown}"
        );
    }
    let svg = bench.path("plot.svg");
    bench.says(&["show", "--plot", svg.to_str().expect("UTF-8")]);
    let svg = std::fs::read_to_string(svg).expect("a picture");
    for name in &THREE[1..] {
        let title = format!("each layer alone on {name}, all others on cpu");
        assert!(svg.contains(&title), "{title}");
    }
    let published = bench.published();
    let folder = published.to_str().expect("UTF-8");
    let compared = bench.says(&["compare", folder]);
    assert!(compared.contains("\n0 of "), "{compared}");

    let csv = bench.says(&["export", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 1 + 3 * layers);
    bench.says(&[
        "export",
        "--format",
        "msr-fiddle",
        "--processors",
        "cpu,npu",
    ]);
    let refused = bench.refuses(&["export", "--format", "msr-fiddle", "--processors", TOGETHER]);
    assert!(
        refused.contains("there are 3 processors; name two"),
        "{refused}"
    );
}

fn the_papers_algorithms_name_the_others(bench: &Bench) {
    let max_accuracy = ["plan", "max-accuracy", "--time", "1s"];
    // Nothing is named: the profile's accuracy is that of all three.
    let refused = bench.refuses(&max_accuracy);
    assert!(
        refused.contains(
            "mlmp plans for a CPU and one accelerator, and there are 3 processors; name two, or use all-cpu, \
             fastest or exhaustive"
        ),
        "{refused}"
    );
    let refused = bench.refuses(&[&max_accuracy[..], &["--processors", "cpu,npu"]].concat());
    assert!(
        refused.contains("no measured combinations of cpu, npu together"),
        "{refused}"
    );
}

fn plans_use_all_three_and_are_verified(bench: &Bench) {
    let anything = ["min-time", "--accuracy", "0", "--algorithm"];
    let by = |algorithm| bench.plan(&[&anything[..], &[algorithm]].concat());
    let (fastest, exhaustive) = (by("fastest"), by("exhaustive"));
    let names: Vec<&str> = fastest["processors"]
        .as_array()
        .expect("three processors")
        .iter()
        .filter_map(|processor| processor["name"].as_str())
        .collect();
    assert_eq!(names, THREE);
    assert!(fastest["time_ns"].as_u64().is_some(), "{fastest}");
    assert_eq!(fastest["time_ns"], exhaustive["time_ns"]);

    let (model, set) = (model(MODEL), bench.path("set"));
    let mut verify = [
        "plan",
        "min-time",
        "--accuracy",
        "0",
        "--processors",
        TOGETHER,
        "--algorithm",
        "fastest",
        "--verify",
        "trio",
        "--model",
        model.to_str().expect("UTF-8"),
        "--set",
        set.to_str().expect("UTF-8"),
    ];
    let planned = bench.says(&verify);
    assert!(planned.contains("█ gpu, ▓ npu, · cpu"), "{planned}");
    let row = |what: &str| -> Vec<String> {
        let line = planned.lines().rfind(|line| line.trim().starts_with(what));
        let line = line.unwrap_or_else(|| panic!("no {what} in {planned}"));
        let cells = line.split("  ").map(str::trim);
        cells
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (predicted, measured) = (millis(&row("time")[1]), millis(&row("time")[3]));
    assert!(
        (predicted / measured - 1.0).abs() < 0.05,
        "{predicted} {measured}"
    );
    assert_eq!(row("accuracy").len(), 5, "{planned}");

    // Other images than those that predictions were learnt on have another accuracy.
    bench.make_set("other", 29);
    let other = bench.path("other");
    verify[13] = other.to_str().expect("UTF-8");
    let refused = bench.refuses(&verify);
    assert!(
        refused.contains(
            "--set is another evaluation set than the one that the profile's accuracies are of"
        ),
        "{refused}"
    );
}

/// A time that is printed in ms or µs.
fn millis(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').expect("a unit");
    let number: f64 = number.parse().expect("a number");
    match unit {
        "ms" => number,
        "µs" => number / 1e3,
        _ => panic!("{text}"),
    }
}

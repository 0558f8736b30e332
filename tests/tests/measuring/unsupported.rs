//! A phone whose NPU lacks an operator, the whole way: what it can run is measured as on any other, what it cannot run
//! is said, and no placement has it there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_agent::device::simulated::DeviceFile;
use layerlab_agent::truth::truth;
use layerlab_model::Network;
use layerlab_profiles::accuracy::Part;
use layerlab_profiles::document::Profile;
use layerlab_profiles::{Nanos, Segment, SignedNanos};
use layerlab_tests::{device, file, layerlab, model, output, stderr, stdout, succeed};

/// Halves of nanoseconds are rounded away; a derived time is a sum of a few of them.
const TOLERANCE_NS: i64 = 2;

/// A simulated phone like `name` whose NPU does not have `operator`, described by a file in `folder`.
fn lacking(folder: &Path, name: &str, operator: &str) -> PathBuf {
    let text = std::fs::read_to_string(device(name)).expect("a device");
    let npu = "name = \"npu\"\n";
    assert!(text.contains(npu));
    let lacks = format!("{npu}unsupported_operators = [\"{operator}\"]\n");
    let file = folder.join("lacking.toml");
    std::fs::write(&file, text.replace(npu, &lacks)).expect("room");
    file
}

fn network(name: &str) -> Network {
    Network::open(&model(name), &BTreeMap::new()).expect("a model")
}

/// The layers of a network that have an operator.
fn layers_with(network: &Network, operator: &str) -> Vec<u32> {
    let has = |layer: &u32| {
        let mut operators = network.operators(*layer).iter();
        operators.any(|one| one.op_type == operator)
    };
    (1..=network.layer_count()).filter(has).collect()
}

/// The planted parts of one layer's time.
struct Planted {
    enter: Nanos,
    compute: Nanos,
    leave: Nanos,
}

fn planted(network: &Network, device: &Path) -> Vec<Planted> {
    let truth = truth(&DeviceFile::open(device).expect("a device file"), network);
    let npu = truth.processors.iter().find(|one| one.processor == "npu");
    let layers = npu.expect("an NPU").layers.iter();
    layers
        .map(|layer| Planted {
            enter: layer.to_processor_ns.expect("t_d"),
            compute: layer.compute_ns,
            leave: layer.from_processor_ns.expect("t_r"),
        })
        .collect()
}

#[track_caller]
fn assert_near(found: SignedNanos, planted: Nanos, what: &str) {
    let difference = (found - planted.signed()).as_nanos().abs();
    assert!(
        difference <= TOLERANCE_NS,
        "{what}: {found:?} instead of {planted:?}"
    );
}

#[test]
fn layers_that_the_npu_can_run_have_their_planted_times_by_every_fixed_design() {
    let network = network("alexnet");
    let lacked = layers_with(&network, "MaxPool");
    assert!(
        lacked.len() > 1 && lacked[0] > 1,
        "stretches between them: {lacked:?}"
    );
    for design in ["prefix-suffix", "local", "grouped"] {
        let folder = tempfile::tempdir().expect("a folder");
        let device = lacking(folder.path(), "symmetric-exact", "MaxPool");
        let out = folder.path().join("profile");
        let mut command = layerlab();
        command.args([
            "profile",
            "--design",
            design,
            "--samples",
            "6",
            "--gap-us",
            "0",
        ]);
        command
            .arg("--model")
            .arg(model("alexnet"))
            .arg("--device")
            .arg(&device);
        succeed(command.arg("--out").arg(&out));
        let profile = Profile::read(&out).expect("a published profile");

        let said: Vec<(&str, Segment)> = profile
            .unsupported
            .iter()
            .map(|row| (row.processor.as_str(), row.segment))
            .collect();
        let expected: Vec<_> = lacked
            .iter()
            .map(|&l| ("npu", Segment::single(l)))
            .collect();
        assert_eq!(said, expected, "{design}");
        let supported = profile.supported("npu");
        for row in &profile.segments {
            let stretch = supported.stretch_of(row.segment);
            assert!(
                row.processor == "cpu" || stretch.is_some(),
                "{design}: {row:?}"
            );
        }
        let planted = planted(&network, &device);
        let times = profile.layer_times("npu");
        for (layer, time) in (1..).zip(&times) {
            let what = format!("{design}, layer {layer}");
            let Some(stretch) = supported.stretch_of(Segment::single(layer)) else {
                assert!(time.is_none() && lacked.contains(&layer), "{what}");
                continue;
            };
            let time = time.unwrap_or_else(|| panic!("{what} has no time"));
            let (first, last) = (layer == stretch.first(), layer == stretch.last());
            let planted = &planted[layer as usize - 1];
            let merged = [(first, planted.enter), (last, planted.leave)].into_iter();
            let merged = merged.filter(|(is_merged, _)| *is_merged);
            let compute = merged.fold(planted.compute, |sum, (_, transfer)| sum + transfer);
            assert_near(time.compute.value, compute, &what);
            assert_eq!(time.to_processor.is_none(), first, "{what}");
            assert_eq!(time.from_processor.is_none(), last, "{what}");
            for (found, planted) in [
                (time.to_processor, planted.enter),
                (time.from_processor, planted.leave),
            ] {
                if let Some(found) = found {
                    assert_near(found.value, planted, &what);
                }
            }
        }
        assert_eq!(profile.layer_times("cpu").iter().flatten().count(), 11);
        succeed(layerlab().arg("check").arg(&out));
    }
}

/// A bench with a phone whose NPU lacks MaxPool, the first scenes, and a trained model.
struct Bench {
    folder: tempfile::TempDir,
    device: PathBuf,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a folder");
        let scenes = file("models/scenes");
        let mut command = layerlab();
        command.args(["set", "--metric", "multi-label"]);
        command.arg("--coco").arg(scenes.join("annotations.json"));
        command.arg("--images").arg(scenes.join("images"));
        command.args(["--size", "112x112", "--limit", "30"]);
        succeed(command.arg("--out").arg(folder.path().join("scenes.set")));
        Bench {
            device: lacking(folder.path(), "oneplus7", "MaxPool"),
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `layerlab` with these arguments about the model on the device.
    fn on(&self, device: &Path, arguments: &[&str]) -> Command {
        let mut command = layerlab();
        command
            .args(arguments)
            .arg("--model")
            .arg(model("vocnet-mini"));
        command.arg("--device").arg(device);
        command
    }
}

#[test]
fn a_phone_whose_npu_lacks_an_operator_goes_the_whole_way() {
    let bench = Bench::new();
    let network = network("vocnet-mini");
    let lacked = layers_with(&network, "MaxPool");
    assert!(!lacked.is_empty());
    let out = bench.path("lacking");
    let measure = ["--design", "local", "--samples", "6", "--gap-us", "0"];
    let placements = ["--placements", "40", "--answers", "30"];
    let mut command = bench.on(&bench.device, &["profile"]);
    command.args(measure).args(placements);
    command.arg("--set").arg(bench.path("scenes.set"));
    succeed(command.arg("--out").arg(&out));
    let profile = Profile::read(&out).expect("a published profile");
    let is_possible = |placement: &layerlab_profiles::Placement| {
        let on_npu = |layer: &&u32| placement.processors()[**layer as usize - 1] != 0;
        !lacked.iter().any(|layer| on_npu(&layer))
    };
    let rows = || profile.combinations.iter();
    assert!(rows().all(|row| is_possible(&row.combination)));
    assert!(rows().filter(|row| row.part == Part::Train).count() > 20);
    let most = rows().map(|row| {
        row.combination
            .processors()
            .iter()
            .filter(|&&p| p != 0)
            .count()
    });
    let possible = network.layer_count() as usize - lacked.len();
    assert_eq!(
        most.max(),
        Some(possible),
        "as much on the NPU as it can run"
    );

    // What is read of it.
    succeed(layerlab().arg("check").arg(&out));
    let shown = succeed(layerlab().arg("show").arg(&out));
    for &layer in &lacked {
        let name = &network.layers()[layer as usize - 1].name;
        let start =
            format!("npu cannot run layer {layer} ({name}): it has no MaxPool, which node `");
        assert!(shown.contains(&start), "{shown}");
    }
    let json = succeed(layerlab().args(["show", "--json"]).arg(&out));
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        json["unsupported"].as_array().map(Vec::len),
        Some(lacked.len())
    );
    assert_eq!(json["unsupported"][0]["first_layer"], lacked[0]);

    // Plans keep to it.
    let plan = |arguments: &[&str]| {
        let mut command = layerlab();
        command.args(["plan", "max-accuracy"]).arg(&out);
        command.args(["--time", "10s"]).args(arguments);
        command
    };
    let ended = output(&mut plan(&["--algorithm", "all-npu"]));
    assert_eq!(ended.status.code(), Some(8), "{ended:?}");
    let refused = stderr(&ended);
    assert!(refused.contains("cannot run layers"), "{refused}");
    assert!(refused.contains("it has no MaxPool"), "{refused}");
    for algorithm in ["mlmp", "heuristic", "fastest"] {
        let json = succeed(&mut plan(&["--algorithm", algorithm, "--json"]));
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let text = json["outcomes"][0]["plan"]["combination"].as_str();
        let placement = text.expect("a plan").parse().expect("digits");
        assert!(is_possible(&placement), "{algorithm}: {placement}");
    }
    succeed(layerlab().args(["plan", "sweep", "--steps", "3"]).arg(&out));
    let mut verify = plan(&["--algorithm", "fastest", "--verify"]);
    verify
        .arg(&bench.device)
        .arg("--model")
        .arg(model("vocnet-mini"));
    let verified = succeed(&mut verify);
    assert!(verified.contains("predicted"), "{verified}");
    let exported = succeed(
        layerlab()
            .args(["export", "--format", "msr-fiddle"])
            .arg(&out),
    );
    let exported: serde_json::Value = serde_json::from_str(&exported).expect("JSON");
    let nodes = exported["nodes"].as_array().expect("nodes");
    for layer in 1..=network.layer_count() {
        let runs = u64::from(!lacked.contains(&layer));
        assert_eq!(
            nodes[layer as usize]["supportedOnFpga"], runs,
            "layer {layer}"
        );
    }

    // What was evaluated by itself does not have it there either, and what is asked for is refused.
    let mut alone = bench.on(&bench.device, &["evaluate", "--json"]);
    alone.args(["--placements", "10", "--answers", "2"]);
    let alone = succeed(alone.arg("--set").arg(bench.path("scenes.set")));
    let alone: serde_json::Value = serde_json::from_str(&alone).expect("JSON");
    assert!(!alone.to_string().is_empty());
    let digits: String = (1..=network.layer_count())
        .map(|layer| if layer == lacked[0] { '1' } else { '0' })
        .collect();
    let mut there = bench.on(&bench.device, &["evaluate", "--combination", &digits]);
    there.args(["--answers", "2"]);
    let refused = output(there.arg("--set").arg(bench.path("scenes.set")));
    let said = stderr(&refused);
    assert!(!refused.status.success(), "{}", stdout(&refused));
    let start = format!(
        "npu cannot run layers {0}..={0}: it has no MaxPool",
        lacked[0]
    );
    assert!(said.contains(&start), "{said}");

    // Beside a phone that lacks nothing.
    let whole = bench.path("whole");
    let mut command = bench.on(&device("oneplus7"), &["profile"]);
    succeed(command.args(measure).arg("--out").arg(&whole));
    let compared = succeed(layerlab().arg("compare").arg(&whole).arg(&out));
    let line = format!("layer {} (", lacked[0]);
    assert!(compared.contains(&line), "{compared}");
    assert!(
        compared.contains("runs on npu in one and not in other"),
        "{compared}"
    );
}

#[test]
fn the_adaptive_design_gives_each_layer_of_each_stretch_a_time_with_an_interval() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = lacking(folder.path(), "noisy", "LRN");
    let network = network("alexnet");
    let lacked = layers_with(&network, "LRN");
    let out = folder.path().join("profile");
    let mut command = layerlab();
    command.args(["profile", "--design", "adaptive", "--budget", "30s"]);
    command.args(["--target-ci", "10"]);
    command
        .arg("--model")
        .arg(model("alexnet"))
        .arg("--device")
        .arg(&device);
    succeed(command.arg("--out").arg(&out));
    let profile = Profile::read(&out).expect("a published profile");
    let supported = profile.supported("npu");
    let times = profile.layer_times("npu");
    for (layer, time) in (1..).zip(&times) {
        assert_eq!(time.is_none(), lacked.contains(&layer), "layer {layer}");
        let has_interval = time.is_none_or(|time| time.compute.ci95.is_some());
        assert!(has_interval, "layer {layer}");
    }
    assert!(supported.stretches().len() > 1);
    succeed(layerlab().arg("check").arg(&out));
}

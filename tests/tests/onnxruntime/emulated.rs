//! An emulated processor is marked in everything that is made of it, and so is proved to have run what it ran.

use std::path::{Path, PathBuf};

use layerlab_campaign::{AccuracySettings, CampaignAccuracy, Placements, SetFile};
use layerlab_farm::host_runtimes::HostRuntimes;
use layerlab_profiles::Segment;
use layerlab_profiles::document::{ProcessorKind, Profile, ProvedPlacement};
use layerlab_tests::{file, layerlab, succeed};

use super::command_line::on_hexagon;
use super::{campaigns, folders};

const CPU: &str = "cpu:ort-all";
const HEXAGON: &str = "qnn-htp-f16";
const PROVIDER: &str = "QNNExecutionProvider";

/// A set of a few scenes.
fn scenes(folder: &Path) -> PathBuf {
    let set = folder.join("scenes.set");
    let mut command = layerlab();
    command.args([
        "set",
        "--metric",
        "multi-label",
        "--size",
        "112x112",
        "--limit",
        "12",
    ]);
    command
        .arg("--coco")
        .arg(file("models/scenes/annotations.json"));
    command.arg("--images").arg(file("models/scenes/images"));
    succeed(command.arg("--out").arg(&set));
    set
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes: make npu-test"]
async fn an_emulated_hexagon_is_marked_and_proved_from_its_times_to_a_plan() {
    let Some(folders) = folders() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let set = SetFile::open(&scenes(folder.path())).expect("a set");
    let accuracy = CampaignAccuracy {
        set: &set,
        settings: AccuracySettings {
            placements: Placements::Random(20),
            answers: Some(3),
            ..AccuracySettings::default()
        },
    };
    let runtimes = campaigns::hexagon(&folders);
    let processors = [CPU, HEXAGON];
    campaigns::profile(folder.path(), runtimes, &processors, Some(accuracy), |_| {}).await;

    let published = folder.path().join("profile");
    let profile = Profile::read(&published).expect("a profile");
    assert!(profile.header.emulated && !profile.header.simulated);
    let emulated = |name: &str| profile.header.is_emulated(name);
    assert!(emulated(HEXAGON) && !emulated(CPU));
    let layers = profile.header.model.layers;
    let mut placements = profile.placements.iter();
    let whole =
        |row: &&ProvedPlacement| row.processor == HEXAGON && row.segment == Segment::whole(layers);
    assert!(placements.any(|row| whole(&row)), "all layers as one unit");
    let of_hexagon = profile
        .placements
        .iter()
        .filter(|row| row.processor == HEXAGON);
    for row in of_hexagon {
        assert_eq!(row.provider, PROVIDER, "{row:?}");
        assert_eq!(row.backend.as_deref(), Some("libQnnHtp.so"), "{row:?}");
        assert!(row.fallback_refused && row.nodes > 0, "{row:?}");
    }

    let said = |arguments: &[&str]| {
        let mut command = layerlab();
        command.args(arguments).arg(&published);
        succeed(&mut command)
    };
    assert!(said(&["check"]).contains("a sound emulated profile of vocnet-mini"));
    assert!(said(&["show"]).contains("(emulated)"));
    assert!(said(&["show"]).contains(", emulated; design prefix-suffix"));
    let plan = ["plan", "max-accuracy", "--time", "100s"];
    assert!(said(&plan).contains("Planned from an emulated processor: its times are no phone's."));
    let plot = std::fs::read_to_string(published.join("plot.svg")).expect("a picture");
    assert!(plot.contains("EMULATED, no phone"));
    let exported = said(&["export", "--format", "csv"]);
    let mut rows = csv::Reader::from_reader(exported.as_bytes());
    for row in rows.records() {
        let row = row.expect("a row");
        assert_eq!(row[3] == *"true", row[4] == *HEXAGON, "{row:?}");
    }
}

#[test]
fn a_layer_that_the_hexagon_refuses_is_named_and_the_others_run() {
    let Some(folders) = folders() else {
        return;
    };
    let mut command = on_hexagon(&folders);
    command.args(["model", "support", "--device", "host", "--json"]);
    command.arg(file("models/variants/gemm-matmul.onnx"));
    let support: serde_json::Value = serde_json::from_str(&succeed(&mut command)).expect("JSON");
    assert_eq!(support["emulated"], true);
    let layers = support["layers"].as_array().expect("layers");
    for layer in layers {
        let on = layer["on"].as_array().expect("answers");
        for answer in on {
            let runs = answer["runs"].as_bool().expect("yes or no");
            let reason = answer["reason"].as_str().unwrap_or_default();
            let expected = match answer["processor"].as_str().expect("a name") {
                HEXAGON => layer["name"] != "F2",
                // It needs a twin, and has none.
                "qnn-htp-i8" => false,
                _ => true,
            };
            assert_eq!(runs, expected, "{layer}");
            assert_eq!(runs, reason.is_empty(), "{layer}");
            if answer["processor"] == "qnn-htp-i8" {
                assert!(reason.contains("--quantised"), "{reason}");
            }
        }
    }
    let f2 = layers.iter().find(|layer| layer["name"] == "F2");
    assert!(
        f2.expect("a layer").to_string().contains("Gemm"),
        "the operator is named"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn onnx_runtime_s_cpu_can_be_measured_as_an_accelerator() {
    let Some(folders) = folders() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let runtimes = HostRuntimes {
        as_accelerator: Some(CPU.to_owned()),
        ..campaigns::onnxruntime(&folders)
    };
    campaigns::profile(folder.path(), runtimes, &[CPU], None, |_| {}).await;
    let profile = Profile::read(&folder.path().join("profile")).expect("a profile");
    assert!(!profile.header.emulated);
    assert_eq!(
        profile.header.processors[0].kind,
        ProcessorKind::Accelerator
    );
    assert!(!profile.placements.is_empty());
    for row in &profile.placements {
        // There is nothing to fall back to.
        let expected = ("CPUExecutionProvider", false);
        assert_eq!((row.provider.as_str(), row.fallback_refused), expected);
    }
}

//! A phone that answers in several ways: all layers on one processor, or some on each.

use std::collections::HashMap;
use std::path::Path;

use layerlab_tests::{output, stderr, stdout, succeed};
use serde_json::Value;

use super::super::assert_fails;
use super::refusals::assert_usage;
use super::{Place, rows, video};

/// Six layers on the simulated phone's CPU, five on its NPU.
const BOTH: &str = "1-6:cpu,7-11:npu";

fn infer_times(folder: &Path) -> HashMap<String, u64> {
    let rows = rows(folder, "answers.csv").into_iter();
    let time = |row: HashMap<String, String>| {
        let nanos = row["infer_ns"].parse().expect("nanoseconds");
        (row["image"].clone(), nanos)
    };
    rows.map(time).collect()
}

#[test]
fn a_placement_is_measured_published_and_chosen_between() {
    let place = Place::new(20);
    let frames = ["--frames", "8"];
    let (phone, server) = place.phone_and_server(&frames);
    let placed = [&frames[..], &["--placement", BOTH]].concat();
    succeed(&mut place.measure("mate10pro", "both", &placed));
    succeed(&mut place.measure("mate10pro", "cpu", &["--processor", "cpu", "--frames", "8"]));
    let (both, cpu) = (place.out("both"), place.out("cpu"));
    let said = succeed(video("check").arg(&both));
    assert!(said.contains(BOTH), "{said}");

    let json = std::fs::read_to_string(both.join("video.json")).expect("it is there");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["processor"]["name"], "npu");
    assert_eq!(json["placement"][0]["segment"], serde_json::json!([1, 6]));
    // The longest layers run on the CPU here: slower than on the NPU, faster than on the CPU alone.
    let [npu_times, both_times, cpu_times] = [&phone, &both, &cpu].map(|it| infer_times(it));
    for (image, time) in &both_times {
        assert!(
            npu_times[image] < *time && *time < cpu_times[image],
            "{image}"
        );
    }

    let replay = |policies: &str, options: &[&str]| -> Vec<Value> {
        let mut command = video("replay");
        command
            .arg("--phone")
            .arg(&phone)
            .arg("--server")
            .arg(&server);
        command.args(["--policy", policies, "--bandwidth", "0,5mbit", "--json"]);
        serde_json::from_str(&succeed(command.args(options))).expect("JSON")
    };
    let [both, cpu] = [&both, &cpu].map(|folder| folder.to_str().expect("UTF-8"));
    let csv = place.out("frames.csv");
    let csv = csv.to_str().expect("UTF-8");
    let placements = ["--placement", both, "--placement", cpu, "--csv", csv];
    let chosen = replay("cbo-placements", &placements);
    // Without a server the phone alone answers: with the long layers on its CPU, which is more accurate and in time.
    let alone = &chosen[0];
    assert_eq!(alone["missed_share"], 0.0, "{alone}");
    let by_npu = &replay("cbo-local", &[])[0];
    assert!(
        alone["accuracy"].as_f64() > by_npu["accuracy"].as_f64(),
        "{alone} {by_npu}"
    );
    let models = rows(place.folder.path(), "frames.csv");
    let alone = models.iter().filter(|row| row["bandwidth_bps"] == "0");
    for row in alone {
        assert_eq!(row["model"], format!("vocnet-mini on {BOTH}"), "{row:?}");
    }

    // A threshold for each class needs no more than both sides' answers.
    let by_class = &replay("cbo-by-class", &[])[1];
    assert!(by_class["accuracy"].as_f64() > Some(0.0), "{by_class}");
}

#[test]
fn a_placement_of_other_layers_or_processors_is_refused() {
    let place = Place::new(4);
    for (placement, code, words) in [
        ("1-4:cpu", 3, "layers 1 to 11"),
        ("1-4:cpu,6-11:npu", 3, "layers 1 to 11"),
        ("1-12:npu", 3, "layers 1 to 11"),
        ("1-6:cpu,7-11:tpu", 3, "no processor `tpu`"),
    ] {
        let refused = output(&mut place.measure("mate10pro", "out", &["--placement", placement]));
        assert_fails(&refused, code, &[words]);
        assert_eq!(stdout(&refused), "");
        assert!(!place.out("out").exists());
    }
    let form = "such as 1-4:cpu,5-11:npu";
    for (options, word) in [
        (&["--placement", "1-11"][..], form),
        (&["--placement", "4-1:cpu"], form),
        (&["--placement", "1-11:"], form),
        (
            &["--placement", "1-11:npu", "--processor", "npu"],
            "cannot be used with",
        ),
    ] {
        assert_usage(&mut place.measure("mate10pro", "out", options), word);
    }

    let (phone, server) = place.phone_and_server(&[]);
    let mut replay = video("replay");
    replay
        .arg("--phone")
        .arg(&phone)
        .arg("--server")
        .arg(&server);
    let refused = output(replay.args(["--policy", "cbo-placements"]));
    assert_fails(&refused, 2, &["give --placement"]);
    // Of other images.
    let elsewhere = Place::new(6);
    succeed(&mut elsewhere.measure("mate10pro", "out", &["--placement", "1-6:cpu,7-11:npu"]));
    let refused = output(replay.arg("--placement").arg(elsewhere.out("out")));
    assert_eq!(refused.status.code(), Some(3));
    assert!(stderr(&refused).contains("different images"));
    let mut replay = video("replay");
    replay
        .arg("--phone")
        .arg(&phone)
        .arg("--server")
        .arg(&server);
    let other = output(
        replay
            .args(["--policy", "cbo-placements"])
            .arg("--placement")
            .arg(&server),
    );
    assert_eq!(other.status.code(), Some(3));
    assert!(
        stderr(&other).contains("measure both on one phone"),
        "{}",
        stderr(&other)
    );
}

//! Calibrated and replayed: what is said of it follows from what was measured.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use layerlab_tests::succeed;
use serde_json::Value;

use super::{Place, rows, video};

fn calibrate(place: &Place, phone: &Path) -> (PathBuf, String) {
    let out = place.out("calibration");
    let said = succeed(video("calibrate").arg(phone).arg("--out").arg(&out));
    (out, said)
}

fn replay(phone: &Path, server: &Path, options: &[&str]) -> Vec<Value> {
    let mut command = video("replay");
    command
        .arg("--phone")
        .arg(phone)
        .arg("--server")
        .arg(server);
    let said = succeed(command.args(options).arg("--json"));
    serde_json::from_str(&said).expect("rows")
}

fn accuracy(row: &Value) -> f64 {
    row["accuracy"].as_f64().expect("an accuracy")
}

#[test]
fn from_a_phone_to_a_calibration_and_a_replay() {
    let place = Place::new(80);
    let (phone, server) = place.phone_and_server(&["--frames", "40"]);
    let (calibration, said) = calibrate(&place, &phone);
    for words in [
        "40 answers to learn from, 40 to judge by",
        "platt top-1",
        "isotonic one-vs-rest",
        "Chosen by the least ECE on held-out answers",
        "so that one-vs-rest has one model for them together: ",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    let document = fs::read_to_string(calibration.join("calibration.json")).expect("a file");
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let trials = document["trials"].as_array().expect("trials");
    let error = |trial: &Value| trial["expected_error"].as_f64().expect("ECE");
    let chosen = &trials[document["chosen"].as_u64().expect("a place") as usize];
    assert!(trials.iter().all(|trial| error(chosen) <= error(trial)));
    assert_eq!(document["fitted_on"]["answers"], 40);
    assert_eq!(document["fitted_on"]["simulated"], true);
    // The bins make the ECE that is said.
    let bins = rows(&calibration, "reliability.csv");
    for trial in trials {
        let own = bins
            .iter()
            .filter(|row| row["calibration"] == trial["name"]);
        let weighted = own.filter_map(|row| {
            let number = |name: &str| row[name].parse::<f64>().ok();
            Some(number("answers")? * (number("mean_confidence")? - number("accuracy")?).abs())
        });
        let ece = weighted.sum::<f64>() / 40.0;
        assert!((ece - error(trial)).abs() < 1e-9, "{ece} {trial}");
    }
    let svg = fs::read_to_string(calibration.join("reliability.svg")).expect("a picture");
    assert!(svg.contains("SIMULATED") && svg.contains("platt top-1: ECE 0."));

    // On the phone alone, what is right is counted in the tables. Every frame of the test half was measured in all forms.
    let frames = ["--frames", "40", "--policy", "cbo-local"];
    let local = accuracy(&replay(&phone, &server, &frames)[0]);
    let answers = rows(&phone, "answers.csv");
    let test = answers.iter().filter(|row| row["split"] == "test");
    let is_right = |row: &HashMap<String, String>| {
        let mut labels = row["labels"].split(';');
        labels.any(|label| label == row["predicted"])
    };
    let right = test.clone().filter(|row| is_right(row)).count();
    assert!(
        (local - right as f64 / 40.0).abs() < 1e-9,
        "{local} {right}"
    );

    // Sent over a fast link, what is right is what the server's table says of its best resolution.
    let fast = [
        "--frames",
        "40",
        "--policy",
        "server",
        "--bandwidth",
        "900mbit",
    ];
    let fast = [
        &fast[..],
        &["--round-trip", "1ms", "--fps", "2", "--deadline", "10s"],
    ]
    .concat();
    let sent = accuracy(&replay(&phone, &server, &fast)[0]);
    let table = rows(&server, "resolution_accuracy.csv");
    let png = table.iter().filter(|row| row["format"] == "png");
    let scores = png.map(|row| row["score"].parse::<f64>().expect("a share"));
    let best = scores.fold(0.0, f64::max);
    assert!((sent - best).abs() < 1e-9, "{sent} {best}");

    let (csv, svg) = (place.out("frames.csv"), place.out("replay.svg"));
    let policies = "cbo,cbo-uncalibrated,server,cbo-local,cbo-optimal,max-accuracy,offload,local,deep-decision,fastva-optimal";
    let options = [
        "--calibration",
        calibration.to_str().expect("UTF-8"),
        "--policy",
        policies,
        "--bandwidth",
        "0,1mbit,5mbit,50mbit",
        "--frames",
        "40",
        "--csv",
        csv.to_str().expect("UTF-8"),
        "--plot",
        svg.to_str().expect("UTF-8"),
    ];
    let replayed = replay(&phone, &server, &options);
    assert_eq!(replayed.len(), 40);
    for row in &replayed {
        let shares = ["accuracy", "offloaded_share", "missed_share"].map(|name| row[name].as_f64());
        assert!(
            shares
                .iter()
                .flatten()
                .all(|share| (0.0..=1.0).contains(share)),
            "{row}"
        );
        if row["bandwidth_bps"] == 0 {
            assert_ne!(row["offloaded_share"].as_f64(), Some(1.0), "{row}");
            assert_eq!(row["bytes_sent"].as_u64().unwrap_or(0), 0, "{row}");
        }
    }
    let said = fs::read_to_string(&svg).expect("a picture");
    assert!(said.contains("SIMULATED") && said.contains("bandwidth"));
    // One row for each frame of each replay that answers all, and each answer within its time.
    let mut each = csv::Reader::from_path(&csv).expect("a table");
    let each: Vec<HashMap<String, String>> =
        each.deserialize().map(|row| row.expect("a row")).collect();
    let answered = replayed
        .iter()
        .filter(|row| !row["accuracy"].is_null())
        .count();
    assert_eq!(each.len(), 40 * answered);
    for row in &each {
        assert_eq!(row["origin"], "simulated");
        match row["delay_ns"].parse::<u64>() {
            Ok(delay) => assert!(delay <= 200_000_000, "{row:?}"),
            Err(_) => assert_eq!(row["by"], "nothing"),
        }
    }
}

/// The papers' worlds need no phone, and say so.
#[test]
fn the_worlds_of_the_papers_are_replayed_and_said_to_be_simulated() {
    let said = succeed(video("replay").args([
        "--paper",
        "cbo",
        "--policy",
        "cbo,cbo-local,server,compress",
        "--bandwidth",
        "1mbit,36mbit",
        "--frames",
        "120",
    ]));
    assert!(
        said.contains("SIMULATED frames: no phone, no video"),
        "{said}"
    );
    let json = succeed(video("replay").args([
        "--paper", "fastva", "--policy", "local", "--fps", "30,50,60", "--frames", "3000", "--json",
    ]));
    let rows: Vec<Value> = serde_json::from_str(&json).expect("rows");
    assert!((accuracy(&rows[0]) - 0.461).abs() <= 0.002, "{}", rows[0]);
    assert!((accuracy(&rows[1]) - 0.419).abs() <= 0.002, "{}", rows[1]);
    // Below 17 ms a frame: a value, not an error.
    assert!(rows[2]["accuracy"].is_null(), "{}", rows[2]);
    assert!(
        rows[2]["infeasible_from_frame"].as_u64() > Some(0),
        "{}",
        rows[2]
    );
}

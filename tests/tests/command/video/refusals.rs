//! What cannot be measured, calibrated or replayed is refused in one sentence, with the exit code that README promises, and
//! leaves nothing behind.

use std::fs;
use std::process::Command;

use layerlab_tests::{layerlab, model, output, stderr, succeed};

use super::super::assert_fails;
use super::super::links;
use super::{Place, scenes, video};

const USAGE: i32 = 2;
const INPUT: i32 = 3;
const CHECK: i32 = 6;
const NO_PLAN: i32 = 8;

/// Refused by the command line's parser: its sentence is followed by how the command is used.
#[track_caller]
pub(super) fn assert_usage(command: &mut Command, word: &str) {
    let output = output(command);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(USAGE), "{said}");
    assert!(
        said.contains(word) && !said.contains("panicked"),
        "`{word}` is missing in: {said}"
    );
}

#[test]
fn what_is_no_measurement_is_not_begun() {
    let place = Place::new(4);
    let fails = |device: &str, options: &[&str], code, words: &[&str]| {
        let mut command = place.measure(device, "out", options);
        assert_fails(&output(&mut command), code, words);
        assert!(!place.out("out").exists());
    };
    fails(
        "mate10pro",
        &["--processor", "tpu"],
        INPUT,
        &["`tpu`", "npu"],
    );
    fails("no-such-device", &[], INPUT, &["no-such-device"]);
    assert_usage(
        &mut place.measure("host", "out", &["--answers", "1"]),
        "--answers",
    );
    fails(
        "host",
        &["--answers", "5"],
        INPUT,
        &["has 4 images", "5 cannot be answered"],
    );

    // A detector's answers are no classes, and another network's classes are others.
    let mut other = video("measure");
    other
        .arg("--model")
        .arg(model("yolo-small"))
        .arg("--set")
        .arg(&place.set);
    other
        .args(["--device", "host"])
        .arg("--out")
        .arg(place.out("out"));
    assert_fails(&output(&mut other), INPUT, &["1470 scores", "20 classes"]);
    let detection = tempfile::tempdir().expect("a folder");
    let boxes = ["--metric", "detection", "--grid", "7"];
    let boxes = scenes(detection.path(), 4, &boxes);
    let mut command = video("measure");
    command
        .arg("--model")
        .arg(model("vocnet-mini"))
        .arg("--set")
        .arg(boxes);
    command
        .args(["--device", "host"])
        .arg("--out")
        .arg(place.out("out"));
    assert_fails(&output(&mut command), INPUT, &["asks for none", "--metric"]);
    let one = tempfile::tempdir().expect("a folder");
    let mut command = video("measure");
    command.arg("--model").arg(model("vocnet-mini"));
    command
        .arg("--set")
        .arg(scenes(one.path(), 1, &["--metric", "multi-label"]));
    command
        .args(["--device", "host"])
        .arg("--out")
        .arg(place.out("out"));
    assert_fails(&output(&mut command), INPUT, &["one image", "larger set"]);
}

#[test]
fn what_makes_no_world_is_not_replayed() {
    let place = Place::new(12);
    let (phone, server) = place.phone_and_server(&["--frames", "4"]);
    let replay = |options: &[&str]| {
        let mut command = video("replay");
        command.args(["--policy", "cbo"]).args(options);
        command
    };
    let measured = |options: &[&str]| {
        let mut command = replay(options);
        command
            .arg("--phone")
            .arg(&phone)
            .arg("--server")
            .arg(&server);
        command
    };
    // What is said before about a calibration that was not given is no part of the refusal.
    let fails = |command: &mut Command, code, words: &[&str]| {
        let mut output = output(command);
        let said = stderr(&output);
        let refusal = said
            .lines()
            .filter(|line| !line.contains("without --calibration"));
        output.stderr = refusal.collect::<Vec<_>>().join("\n").into_bytes();
        assert_fails(&output, code, words);
    };
    assert_usage(&mut replay(&[]), "--paper");
    assert_usage(measured(&[]).args(["--paper", "cbo"]), "--paper");
    for (option, value, word) in [
        ("--bandwidth", "5 potatoes", "5mbit"),
        ("--fps", "0", "0.01 to 1000"),
        ("--fps", "NaN", "0.01 to 1000"),
        ("--alpha", "NaN", "not negative"),
        ("--encoding", "webp", "jpeg-75"),
        ("--deadline", "soon", "--deadline"),
        ("--frames", "0", "--frames"),
        ("--policy", "best", "choose of cbo"),
    ] {
        assert_usage(&mut measured(&[option, value]), word);
    }
    let paper = |options: &[&str]| replay(&[&["--paper", "cbo"], options].concat());
    fails(
        &mut paper(&["--policy", "max-utility"]),
        USAGE,
        &["--alpha 50"],
    );
    fails(
        &mut paper(&["--plot", "out.svg"]),
        USAGE,
        &["several values of one"],
    );
    fails(
        &mut replay(&["--paper", "fastva", "--policy", "compress"]),
        USAGE,
        &["--paper cbo"],
    );
    fails(
        &mut measured(&["--policy", "compress"]),
        USAGE,
        &["--compressed"],
    );
    // No answer in time is not a plan.
    fails(
        &mut paper(&["--deadline", "1ms"]),
        NO_PLAN,
        &["1ms", "longer --deadline"],
    );
    fails(
        &mut measured(&["--deadline", "1us"]),
        NO_PLAN,
        &["longer --deadline"],
    );
    fails(&mut paper(&["--deadline", "0s"]), INPUT, &["time"]);
    fails(
        &mut paper(&["--fps", "1000", "--deadline", "1h"]),
        INPUT,
        &["frames"],
    );
    fails(
        &mut measured(&["--encoding", "jpeg-50"]),
        INPUT,
        &["jpeg-50", "another encoding"],
    );
    let mut seen_elsewhere = place.measure("host", "elsewhere", &["--frames", "4", "--seed", "2"]);
    succeed(&mut seen_elsewhere);
    let mut command = replay(&[]);
    command
        .arg("--phone")
        .arg(&phone)
        .arg("--server")
        .arg(place.out("elsewhere"));
    fails(&mut command, INPUT, &["different images", "same --seed"]);

    // A calibration is that of one model on one processor, and of one half of its images.
    let calibration = place.out("calibration");
    succeed(
        video("calibrate")
            .arg(place.out("elsewhere"))
            .arg("--out")
            .arg(&calibration),
    );
    let mut command = measured(&[]);
    fails(
        command.arg("--calibration").arg(&calibration),
        INPUT,
        &["another processor"],
    );
    succeed(&mut place.measure("mate10pro", "fewer", &["--frames", "4", "--answers", "10"]));
    let fewer = place.out("fewer-calibration");
    succeed(
        video("calibrate")
            .arg(place.out("fewer"))
            .arg("--out")
            .arg(&fewer),
    );
    let mut command = measured(&[]);
    fails(
        command.arg("--calibration").arg(&fewer),
        INPUT,
        &["may have been learnt from"],
    );
    for (text, word) in [
        ("{", "is no JSON"),
        (
            r#"{"format":"layerlab-video"}"#,
            "no calibration of layerlab's",
        ),
        (
            r#"{"format":"layerlab-calibration","version":9}"#,
            "update layerlab",
        ),
        (
            r#"{"format":"layerlab-calibration","version":1}"#,
            "docs/video.md",
        ),
    ] {
        fs::write(fewer.join("calibration.json"), text).expect("room");
        let mut command = measured(&[]);
        fails(command.arg("--calibration").arg(&fewer), INPUT, &[word]);
    }
}

/// A curve that falls, or leaves 0 to 1, is no calibration, whoever wrote it.
#[test]
fn a_calibration_that_says_impossible_things_is_refused() {
    let place = Place::new(60);
    let (phone, server) = place.phone_and_server(&["--frames", "2"]);
    let calibration = place.out("calibration");
    succeed(
        video("calibrate")
            .arg(&phone)
            .arg("--out")
            .arg(&calibration),
    );
    let file = calibration.join("calibration.json");
    let text = fs::read_to_string(&file).expect("a file");
    let sound: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let mut replay = video("replay");
    replay.args(["--policy", "cbo", "--frames", "4"]);
    replay
        .arg("--phone")
        .arg(&phone)
        .arg("--server")
        .arg(&server);
    replay.arg("--calibration").arg(&calibration);
    succeed(&mut replay);
    let trials = sound["trials"].as_array().expect("trials");
    let of = |name: &str| {
        trials
            .iter()
            .position(|trial| trial["name"] == name)
            .expect("tried")
    };
    let (platt, isotonic) = (of("platt top-1"), of("isotonic top-1"));
    type Change<'a> = &'a dyn Fn(&mut serde_json::Value);
    let changes: [(Change, &str); 5] = [
        (&|it| it["chosen"] = 99.into(), "does not have"),
        (
            &|it| it["trials"][platt]["calibrator"]["top1"]["map"]["platt"]["scale"] = 0.into(),
            "scale above 0",
        ),
        (
            &|it| {
                let knots =
                    &mut it["trials"][isotonic]["calibrator"]["top1"]["map"]["isotonic"]["knots"];
                knots[0][1] = 2.into();
            },
            "from 0 to 1",
        ),
        (
            &|it| it["trials"][0]["calibrator"] = "guess".into(),
            "guess",
        ),
        (&|it| it["more"] = 1.into(), "more"),
    ];
    for (change, word) in changes {
        let mut changed = sound.clone();
        change(&mut changed);
        assert_ne!(changed, sound, "{word}");
        fs::write(&file, changed.to_string()).expect("room");
        assert_fails(&output(&mut replay), INPUT, &[word]);
    }
}

#[test]
fn a_recorded_link_is_replayed_unless_it_has_gaps() {
    let place = links::Place::new();
    let server = place.server();
    let link = place.0.path().join("link");
    let mut measure = layerlab();
    measure.args([
        "link",
        "measure",
        &server.address().to_string(),
        "--name",
        "lab",
    ]);
    measure
        .arg("--token-file")
        .arg(place.token())
        .arg("--out")
        .arg(&link);
    measure.args([
        "--kind",
        "ethernet",
        "--shape",
        "40mbit,2ms",
        "--repeats",
        "2",
        "--echoes",
        "6",
    ]);
    succeed(measure.args(["--trace", "500ms"]));
    let replay = |policy: &str| {
        let mut command = video("replay");
        command.args(["--paper", "cbo", "--frames", "60", "--policy", policy]);
        command.arg("--trace").arg(&link);
        command
    };
    let said = succeed(&mut replay("cbo,server,max-accuracy"));
    assert!(said.contains("SIMULATED"), "{said}");
    assert_fails(
        &output(&mut replay("cbo-optimal")),
        INPUT,
        &["constant bandwidth", "recorded"],
    );
    let mut both = replay("cbo");
    assert_usage(both.args(["--bandwidth", "5mbit"]), "--bandwidth");

    // Without one of its intervals, and with a hash that fits.
    let json = link.join("link.json");
    let header: serde_json::Value =
        serde_json::from_slice(&fs::read(&json).expect("a file")).expect("JSON");
    let traces = link.join("link_traces.csv");
    let text = fs::read_to_string(&traces).expect("a table");
    let keep = |kept: &dyn Fn(&str) -> bool| {
        let lines = text.lines().filter(|line| kept(line));
        let text = lines.map(|line| format!("{line}\n")).collect::<String>();
        let mut header = header.clone();
        header["files"]["link_traces"] = layerlab_profiles::sha256(text.as_bytes()).into();
        fs::write(&traces, text).expect("room");
        fs::write(&json, header.to_string()).expect("room");
    };
    keep(&|line| !line.contains("upload,100000000,"));
    assert_fails(
        &output(&mut replay("cbo")),
        CHECK,
        &["intervals of the upload", "do not follow"],
    );
    keep(&|line| !line.contains("upload"));
    assert_fails(
        &output(&mut replay("cbo")),
        INPUT,
        &["no trace of the upload", "--trace"],
    );
    fs::write(&traces, "").expect("room");
    let emptied = output(&mut replay("cbo"));
    assert_fails(&emptied, INPUT, &["link_traces.csv"]);
}

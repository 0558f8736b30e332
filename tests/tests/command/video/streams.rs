//! Streamed: a simulated phone and a real edge server answer the frames that were measured, over a shaped link.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use layerlab_edge::Token;
use layerlab_tests::{model, output, stderr, succeed};
use serde_json::Value;

use super::super::assert_fails;
use super::super::links::{answering, listener};
use super::super::plan_edge_verified::Serving;
use super::{Place, rows, video};

const MODEL: &str = "vocnet-mini";

/// Longer than anything here takes, also on a busy machine, so that what is late is late for a reason: nearly as long as plans are made
/// for at 20 frames a second.
const DEADLINE: &str = "6s";
const DEADLINE_NS: u64 = 6_000_000_000;

/// How long a connection may take to end.
const DEADLINE_OF_TESTS: Duration = Duration::from_secs(60);

type Row = HashMap<String, String>;

/// A phone and a server that have measured the same frames.
struct Beside {
    place: Place,
    phone: PathBuf,
    server: PathBuf,
    calibration: PathBuf,
    token: PathBuf,
}

impl Beside {
    fn new() -> Beside {
        let place = Place::new(40);
        let (phone, server) = place.phone_and_server(&["--frames", "20"]);
        let calibration = place.out("calibration");
        succeed(
            video("calibrate")
                .arg(&phone)
                .arg("--out")
                .arg(&calibration),
        );
        let token = place.out("token");
        Token::read_or_make(&token).expect("room");
        Beside {
            place,
            phone,
            server,
            calibration,
            token,
        }
    }

    fn csv(&self) -> PathBuf {
        self.place.out("stream.csv")
    }

    /// Streams beside the server at this address, with these options in the place of the same ones.
    fn stream(&self, connect: &str, policy: &str, options: &[&str]) -> Command {
        let mut command = video("stream");
        let (model, csv) = (model(MODEL), self.csv());
        let usual: [(&str, &OsStr); 11] = [
            ("--policy", policy.as_ref()),
            ("--connect", connect.as_ref()),
            ("--device", "mate10pro".as_ref()),
            ("--deadline", DEADLINE.as_ref()),
            ("--fps", "20".as_ref()),
            ("--model", model.as_os_str()),
            ("--set", self.place.set.as_os_str()),
            ("--phone", self.phone.as_os_str()),
            ("--server", self.server.as_os_str()),
            ("--token-file", self.token.as_os_str()),
            ("--csv", csv.as_os_str()),
        ];
        for (option, value) in usual {
            if !options.contains(&option) {
                command.arg(option).arg(value);
            }
        }
        command.args(options);
        command
    }

    /// What came of a stream over a shaped link, and of each of its frames.
    fn streamed(&self, connect: &str, policy: &str, options: &[&str]) -> (Value, Vec<Row>) {
        let mut command = self.stream(connect, policy, options);
        let said = succeed(command.args(["--shape", "20mbit,20ms", "--json"]));
        let each = rows(self.place.folder.path(), "stream.csv");
        (serde_json::from_str(&said).expect("JSON"), each)
    }

    /// The frames of a side as PNG, by image and from the smallest form on.
    fn measured(&self, side: &Path) -> HashMap<String, Vec<Row>> {
        let mut of_image: HashMap<String, Vec<Row>> = HashMap::new();
        for row in rows(side, "frames.csv") {
            if row["format"] == "png" {
                of_image.entry(row["image"].clone()).or_default().push(row);
            }
        }
        for forms in of_image.values_mut() {
            forms.sort_by_key(|row| number(row, "width"));
        }
        of_image
    }
}

fn number(row: &Row, column: &str) -> Option<u64> {
    row[column].parse().ok()
}

/// What is said of all frames is what is said of each.
fn assert_adds_up(said: &Value, each: &[Row], deadline: u64) {
    let count = each.len() as f64;
    let share =
        |which: &dyn Fn(&Row) -> bool| each.iter().filter(|row| which(row)).count() as f64 / count;
    let live = &said["live"];
    let both = each.iter().filter(|row| {
        number(row, "phone_delay_ns").is_some() && number(row, "server_delay_ns").is_some()
    });
    let compared = said["agreement"]["compared"].as_u64();
    assert_eq!(compared, Some(both.count() as u64));
    assert_eq!(said["agreement"]["alarm_after"], Value::Null, "{said}");
    for (name, found) in [
        ("accuracy", share(&|row| row["right"] == "true")),
        ("offloaded_share", share(&|row| row["by"] == "server")),
        ("missed_share", share(&|row| row["by"] == "nothing")),
    ] {
        let said = live[name].as_f64().expect(name);
        assert!((said - found).abs() < 1e-9, "{name}: {said} {found}");
    }
    let bytes: u64 = each
        .iter()
        .filter_map(|row| number(row, "sent_bytes"))
        .sum();
    assert_eq!(said["all_bytes_sent"].as_u64(), Some(bytes));
    for row in each {
        let in_time = |column: &str| number(row, column).filter(|delay| *delay <= deadline);
        let (server, phone) = (in_time("server_delay_ns"), in_time("phone_delay_ns"));
        let by = match (server, phone) {
            (Some(_), _) => "server",
            (None, Some(_)) => "phone",
            (None, None) => "nothing",
        };
        assert_eq!(
            (row["by"].as_str(), number(row, "delay_ns")),
            (by, server.or(phone)),
            "{row:?}"
        );
        assert_eq!(row["origin"], "simulated");
    }
}

#[test]
fn frames_are_answered_as_they_were_measured_and_counted() {
    let beside = Beside::new();
    let server = Serving::new(&beside.token, &model(MODEL));
    let (sent_by_phone, served) = (
        beside.measured(&beside.phone),
        beside.measured(&beside.server),
    );
    let answers: HashMap<String, Row> = rows(&beside.phone, "answers.csv")
        .into_iter()
        .map(|row| (row["image"].clone(), row))
        .collect();
    let mut seen_by = Vec::new();
    for policy in ["cbo-uncalibrated", "cbo-by-class", "max-accuracy", "server"] {
        let calibration = beside.calibration.to_str().expect("UTF-8");
        let mut options = vec!["--frames", "24"];
        if policy == "cbo-by-class" {
            options.extend(["--calibration", calibration]);
        }
        let (said, each) = beside.streamed(&server.address, policy, &options);
        assert_eq!((said["frames"].as_u64(), each.len()), (Some(24), 24));
        assert_adds_up(&said, &each, DEADLINE_NS);
        assert_eq!(said["server_lost"], Value::Null);
        assert_eq!(
            (
                said["phone_simulated"].as_bool(),
                said["link_shaped"].as_bool()
            ),
            (Some(true), Some(true))
        );
        // Nothing of it depends on how long anything took.
        assert_eq!(said["live"]["missed_share"], 0.0, "{said}");
        assert!(said["replayed"]["accuracy"].as_f64() > Some(0.0), "{said}");
        let mut overheads = Vec::new();
        for (place, row) in each.iter().enumerate() {
            assert_eq!(number(row, "frame"), Some(place as u64));
            // After twenty frames, the first comes again.
            assert_eq!(row["image"], each[place % 20]["image"]);
            let measured = &answers[&row["image"]];
            assert_eq!(measured["split"], "test");
            let form = number(row, "sent_resolution").map(|form| form as usize);
            if let Some(form) = form {
                let bytes = number(&sent_by_phone[&row["image"]][form], "bytes");
                overheads.push(number(row, "sent_bytes").expect("sent") - bytes.expect("measured"));
            }
            let right = match (row["by"].as_str(), form) {
                ("server", Some(form)) => served[&row["image"]][form]["hit"] == "true",
                _ => measured["labels"]
                    .split(';')
                    .any(|label| label == measured["predicted"]),
            };
            assert_eq!(row["right"] == "true", right, "{row:?}");
            seen_by.push(row["by"].clone());
        }
        overheads.dedup();
        assert!(
            overheads.len() <= 1,
            "the same is said of all pictures: {overheads:?}"
        );
        if policy == "server" {
            assert!(overheads[0] > 0 && each.iter().all(|row| row["by"] == "server"));
        }
    }
    for by in ["phone", "server"] {
        assert!(seen_by.iter().any(|one| one == by), "{by} answered nothing");
    }

    // More frames than the phone can answer: those that are late are missed, and counted.
    let options = ["--frames", "60", "--fps", "500", "--deadline", "60ms"];
    let (said, each) = beside.streamed(&server.address, "cbo-local", &options);
    assert_adds_up(&said, &each, 60_000_000);
    assert!(said["live"]["missed_share"].as_f64() > Some(0.0), "{said}");
}

#[test]
fn a_server_that_dies_is_reported_and_the_phone_goes_on() {
    let beside = Beside::new();
    let server = Serving::new(&beside.token, &model(MODEL));
    let calibration = beside.calibration.to_str().expect("UTF-8");
    let options = ["--frames", "30", "--calibration", calibration];
    let address = server.address.parse().expect("an address");
    for policy in ["cbo", "server"] {
        let (all, brought) = answering(address, u64::MAX);
        let (said, _) = beside.streamed(&all.to_string(), policy, &options);
        assert_eq!(said["server_lost"], Value::Null);
        let brought = brought.recv_timeout(DEADLINE_OF_TESTS);
        // Answers have one size. Three come before the stream.
        let half = brought.expect("it has ended") / 2;
        let dying = answering(address, half).0.to_string();
        let (said, each) = beside.streamed(&dying, policy, &options);
        let lost = said["server_lost"].as_str();
        let lost = lost.unwrap_or_else(|| panic!("{policy} did not lose it: {said} {each:?}"));
        assert!(
            lost.contains("was lost") && lost.contains("see whether the server still runs"),
            "{lost}"
        );
        assert_eq!(each.len(), 30);
        assert_adds_up(&said, &each, DEADLINE_NS);
        let last = each.iter().rposition(|row| row["by"] == "server");
        let last = last.unwrap_or_else(|| panic!("{policy}: none was served: {said} {each:?}"));
        for row in &each[last + 1..] {
            let by = if policy == "cbo" { "phone" } else { "nothing" };
            assert_eq!(row["by"], by, "{row:?}");
        }
        assert!(last < 29, "it died before the end");
    }
}

#[test]
fn what_cannot_be_streamed_is_one_sentence_and_nothing_is_written() {
    let beside = Beside::new();
    let server = Serving::new(&beside.token, &model(MODEL));
    let shape = ["--shape", "20mbit,20ms"];
    let fails = |connect: &str, policy: &str, options: &[&str], code: i32, words: &[&str]| {
        let refused = output(&mut beside.stream(connect, policy, options));
        assert_fails(&refused, code, words);
        assert!(!beside.csv().exists());
    };
    let gone = listener().local_addr().expect("bound").to_string();
    let words = [gone.as_str(), "start `layerlab edge-server` there"];
    fails(&gone, "server", &shape, 4, &words);
    let other = Serving::new(&beside.token, &model("alexnet"));
    fails(
        &other.address,
        "server",
        &shape,
        4,
        &["this server has no model", "start it with --model"],
    );
    let words = [
        "cbo decides by calibrated confidences",
        "--calibration",
        "cbo-uncalibrated",
    ];
    fails(&server.address, "cbo", &shape, 2, &words);
    let missing = beside.place.out("none");
    let missing = missing.to_str().expect("UTF-8");
    let calibrated = [&shape[..], &["--calibration", missing]].concat();
    fails(
        &server.address,
        "cbo",
        &calibrated,
        3,
        &["none/calibration.json"],
    );
    let words = ["max-utility", "give --alpha"];
    fails(&server.address, "max-utility", &shape, 2, &words);
    // At 64 kbit/s no frame leaves before the next one comes.
    let slow = ["--shape", "64kbit,1ms", "--fps", "30", "--deadline", "3s"];
    fails(
        &server.address,
        "server",
        &slow,
        8,
        &["no frame within 3s", "faster link"],
    );
    let with_link = ["--link", missing];
    fails(
        &server.address,
        "server",
        &with_link,
        3,
        &["none/link.json"],
    );

    let unwritable = [&shape[..], &["--csv", "/no/such/folder/stream.csv"]].concat();
    let words = ["/no/such/folder/stream.csv", "its folder is not there"];
    fails(&server.address, "server", &unwritable, 5, &words);

    for (option, value, word) in [
        ("--fps", "0", "0.01 to 1000"),
        ("--policy", "cbo-optimal", "knows all frames beforehand"),
        ("--policy", "luck", "no policy"),
        ("--frames", "0", "--frames"),
    ] {
        let mut command = video("stream");
        let said = stderr(&output(command.args([option, value])));
        assert!(said.contains(word) && !said.contains("panicked"), "{said}");
    }

    // Another model, another set and another device than was measured.
    let elsewhere = Place::new(4);
    let alexnet = model("alexnet");
    for (option, value, words) in [
        ("--model", alexnet.as_path(), "--model is another model"),
        ("--set", &elsewhere.set, "--set is another set"),
        (
            "--device",
            Path::new("pixel6"),
            "the profile is of the device",
        ),
    ] {
        let other = [&shape[..], &[option, value.to_str().expect("UTF-8")]].concat();
        fails(&server.address, "server", &other, 3, &[words]);
    }
}

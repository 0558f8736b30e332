//! Does a live stream come out as its replay says? `stream-live REPORT [FRAMES]` has a virtual phone, reached by adb, that plays a simulated
//! one, and a real edge server on this machine answer 12 streams: two policies, three links that are slowed down, two frame rates.
//! Both sides are measured first, and the confidence calibrated, as users would. Writes a page, and fails if accuracy is off by more
//! than 0.02, or misses by more than 3 points. It measures time: nothing else should run beside it. Takes some minutes.

#![expect(clippy::print_stderr, reason = "how far it has come is what it says")]

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use layerlab_edge::Token;
use layerlab_tests::farm::Farm;
use layerlab_tests::proof::table::markdown;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::{model, root, succeed};
use serde_json::Value;

const MODEL: &str = "vocnet-mini";
/// What the virtual phone plays.
const PHONE: &str = "mate10pro";
const POLICIES: [&str; 3] = ["cbo", "max-accuracy", "server"];
const SHAPES: [&str; 3] = ["800kbit,50ms", "1500kbit,75ms", "3mbit,20ms"];
const RATES: [&str; 2] = ["10", "30"];
const DEADLINE: &str = "200ms";
/// The promise: accuracy, and points of misses.
const ACCURACY_WITHIN: f64 = 0.02;
const MISSES_WITHIN_POINTS: f64 = 3.0;

/// A virtual phone that an adb server reaches.
struct Lab {
    farm: Farm,
    phone: VirtualPhone,
}

impl Lab {
    fn new() -> Option<Lab> {
        let farm = Farm::new()?;
        let phone = farm.phone("P1");
        Some(Lab { farm, phone })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.farm.path(name)
    }

    fn layerlab(&self) -> Command {
        let mut command = self.farm.layerlab();
        command.env("LAYERLAB_ADB_CONNECT", &self.phone.address);
        command
    }
}

/// The server, which ends with this value.
struct Serving(Child, String);

impl Serving {
    fn start(lab: &Lab, token: &Path) -> Serving {
        let mut command = lab.layerlab();
        command.args(["edge-server", "--listen", "127.0.0.1:0", "--token-file"]);
        command.arg(token).arg("--model").arg(model(MODEL));
        let mut process = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("UTF-8");
        let address = line.strip_prefix("Listening on ");
        let address = address.and_then(|it| it.split(' ').next());
        Serving(process, address.expect("an address").to_owned())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Everything that is measured before the first stream.
fn prepare(lab: &Lab) {
    let scenes = root().join("tests/models/scenes");
    let mut set = lab.layerlab();
    set.args([
        "set",
        "--size",
        "112x112",
        "--limit",
        "400",
        "--metric",
        "multi-label",
    ]);
    set.arg("--coco").arg(scenes.join("annotations.json"));
    set.arg("--images").arg(scenes.join("images"));
    succeed(set.arg("--out").arg(lab.path("scenes.set")));
    for (device, name) in [
        (
            &[lab.phone.address.as_str(), "--simulate", PHONE][..],
            "phone",
        ),
        (&["host"], "server"),
    ] {
        eprintln!("measuring the {name}");
        let mut measure = video(lab, "measure");
        measure.arg("--model").arg(model(MODEL));
        measure.arg("--set").arg(lab.path("scenes.set"));
        measure
            .arg("--device")
            .args(device)
            .args(["--frames", "200"]);
        succeed(measure.arg("--out").arg(lab.path(name)));
    }
    let mut calibrate = video(lab, "calibrate");
    calibrate.arg(lab.path("phone"));
    succeed(calibrate.arg("--out").arg(lab.path("calibration")));
}

fn video(lab: &Lab, command: &str) -> Command {
    let mut layerlab = lab.layerlab();
    layerlab.args(["video", command]);
    layerlab
}

/// A stream and its replay.
struct Ran {
    name: [String; 3],
    told: Value,
}

impl Ran {
    fn of(lab: &Lab, server: &str, [policy, shape, rate]: [&str; 3], frames: &str) -> Ran {
        let mut stream = video(lab, "stream");
        stream.args([
            "--policy", policy, "--shape", shape, "--fps", rate, "--frames", frames,
        ]);
        stream.args(["--simulate", PHONE, "--connect", server, "--json"]);
        stream.args(["--device", &lab.phone.address]);
        stream.args(["--deadline", DEADLINE]);
        stream.arg("--model").arg(model(MODEL));
        for name in ["phone", "server", "calibration"] {
            stream.arg(format!("--{name}")).arg(lab.path(name));
        }
        stream.arg("--set").arg(lab.path("scenes.set"));
        stream.arg("--token-file").arg(lab.path("token"));
        let told = serde_json::from_str(&succeed(&mut stream)).expect("JSON");
        Ran {
            name: [policy, shape, rate].map(str::to_owned),
            told,
        }
    }

    fn number(&self, of: &str, what: &str) -> f64 {
        self.told[of][what].as_f64().expect(what)
    }

    fn off(&self) -> (f64, f64) {
        let points = 100.0 * self.number("difference", "missed_share").abs();
        (self.number("difference", "accuracy").abs(), points)
    }

    fn is_kept(&self) -> bool {
        let (accuracy, points) = self.off();
        accuracy <= ACCURACY_WITHIN && points <= MISSES_WITHIN_POINTS
    }

    fn row(&self) -> Vec<String> {
        let percent = |of: &str, what: &str| format!("{:.1}", 100.0 * self.number(of, what));
        let micros = |what: &str| format!("{:.0}", self.told[what].as_f64().expect(what) / 1e3);
        let mut row = self.name.to_vec();
        row.extend([
            format!("{:.4}", self.number("live", "accuracy")),
            format!("{:.4}", self.number("replayed", "accuracy")),
            percent("live", "missed_share"),
            percent("replayed", "missed_share"),
            percent("live", "offloaded_share"),
            percent("replayed", "offloaded_share"),
            micros("decided_median_ns"),
            micros("decided_p99_ns"),
            self.told["frames_slower_than_simulated"].to_string(),
            if self.is_kept() { "yes" } else { "no" }.to_owned(),
        ]);
        row
    }
}

fn page(ran: &[Ran], frames: &str) -> String {
    let kept = ran.iter().filter(|one| one.is_kept()).count();
    let worst = ran.iter().map(Ran::off);
    let (accuracy, points) = worst.fold((0.0, 0.0), |(a, p): (f64, f64), (b, q)| {
        (a.max(b), p.max(q))
    });
    let mut page = String::from("# Streams, live and replayed\n\n");
    // Writing to a text does not fail.
    let _ = write!(
        page,
        "`cargo tool stream-live tests/reports/stream_live.md` made this page. A virtual phone, reached by adb, played {PHONE} (its inferences \
         take the time that is simulated; encoding is real), and a real edge server on the same machine answered what was sent over \
         links that layerlab's shaper slowed down. {frames} frames each, to be answered within {DEADLINE}, by {MODEL} on both sides. Both sides were measured \
         and the confidence calibrated before, by the commands that users have. No real phone and no radio had part in it.\n\n\
         - Accuracy within {ACCURACY_WITHIN} and misses within {MISSES_WITHIN_POINTS} points of the replay: {kept} of {}.\n\
         - The largest differences are {accuracy:.4} and {points:.1} points.\n\n",
        ran.len()
    );
    let heads = [
        "policy",
        "link",
        "fps",
        "accuracy, live",
        "replayed",
        "missed, live, %",
        "replayed, %",
        "sent, live, %",
        "replayed, %",
        "decisions, median, µs",
        "99 %, µs",
        "slower than simulated",
        "kept",
    ];
    let rows: Vec<Vec<String>> = ran.iter().map(Ran::row).collect();
    page + &markdown(&heads, &rows)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(report) = arguments.next() else {
        eprintln!("name the file of the report");
        return ExitCode::FAILURE;
    };
    let frames = arguments.next().unwrap_or_else(|| "300".to_owned());
    let Some(lab) = Lab::new() else {
        eprintln!("virtual phones cannot be had here");
        return ExitCode::FAILURE;
    };
    prepare(&lab);
    let token = lab.path("token");
    Token::read_or_make(&token).expect("room");
    let server = Serving::start(&lab, &token);
    let mut ran = Vec::new();
    for policy in POLICIES {
        for shape in SHAPES {
            for rate in RATES {
                eprintln!("{policy} over {shape} at {rate} fps");
                ran.push(Ran::of(&lab, &server.1, [policy, shape, rate], &frames));
            }
        }
    }
    fs::write(report, page(&ran, &frames)).expect("the report is written");
    match ran.iter().all(Ran::is_kept) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

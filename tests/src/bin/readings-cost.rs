//! What it costs to read a device's state at the ends of blocks (docs/method.md §5): how long a reading takes, how often there is
//! one, which share of a run that is, and whether the inferences after one differ from others. On this machine, on a virtual
//! phone of which the agent asks a stand-in for Android's services, and on a simulated one. `readings-cost > tests/reports/readings.md`
//! takes some minutes and prints the report.

#![expect(clippy::print_stdout, reason = "its report is what it is for")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use layerlab_profiles::document::Profile;
use layerlab_tests::farm::Farm;
use layerlab_tests::proof::table::markdown;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::{agent_program, layerlab, model, succeed};
use serde_json::Value;

/// The network that is run between readings: some milliseconds on a computer's cores.
const MODEL: &str = "vocnet-mini";

/// Readings enough for the kernel's hundredths of a second to tell what one computes.
const READINGS: &str = "1000";
const PAIRS: &str = "500";
const INFERENCES: &str = "3";

/// On a virtual phone a reading starts programs, so that each takes longer.
const READINGS_OF_PHONE: &str = "200";

/// Without the tools of virtual phones half of the report is missing.
const UNAVAILABLE: u8 = 69;

/// Where readings were made, and what they cost there.
struct Place {
    name: &'static str,
    /// What `layerlab-agent readings` printed.
    readings: Value,
    /// A run there.
    run: Run,
}

/// How many readings a run had, and how long it took by its device's clock.
struct Run {
    what: &'static str,
    readings: usize,
    nanos: u64,
}

fn main() -> ExitCode {
    let Some(farm) = Farm::new() else {
        return ExitCode::from(UNAVAILABLE);
    };
    let folder = farm.path("runs");
    let phone = farm.phone("P1");
    let host = Place {
        name: "this machine",
        readings: readings_of_host(),
        run: run_of(
            &mut layerlab(),
            "vocnet-mini on its cores",
            "host",
            &folder.join("host"),
        ),
    };
    let mut connected = farm.layerlab();
    connected.env("LAYERLAB_ADB_CONNECT", &phone.address);
    let virtual_phone = Place {
        name: "a virtual phone",
        run: run_of(
            connected.args(["--not-fit"]),
            "vocnet-mini on its cores",
            &phone.address,
            &folder.join("phone"),
        ),
        readings: readings_of_phone(&farm, &phone),
    };
    let simulated = run_of(
        &mut layerlab(),
        "vocnet-mini on both processors of a simulated oneplus7, by its own clock",
        "oneplus7",
        &folder.join("oneplus7"),
    );
    print(&[host, virtual_phone], &simulated);
    ExitCode::SUCCESS
}

fn readings_of_host() -> Value {
    let mut agent = Command::new(agent_program());
    let agent = agent.args(["readings", "--times", READINGS, "--model"]);
    json(
        agent
            .arg(model(MODEL))
            .args(["--pairs", PAIRS, "--inferences", INFERENCES]),
    )
}

fn readings_of_phone(farm: &Farm, phone: &VirtualPhone) -> Value {
    let there = |from: &Path, name: &str| {
        let target = phone.storage().join(name);
        fs::copy(from, &target).expect("room");
        fs::set_permissions(&target, fs::Permissions::from_mode(0o755)).expect("its own");
    };
    there(&farm.agent(), "agent");
    there(&model(MODEL), "model.onnx");
    let command = format!(
        "cd /data/local/tmp && ./agent readings --times {READINGS_OF_PHONE} --model model.onnx --pairs {PAIRS} \
         --inferences {INFERENCES}"
    );
    json(farm.adb().args(["-s", &phone.address, "shell", &command]))
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&succeed(command)).expect("JSON")
}

/// Profiles a network with the usual choices.
fn run_of(command: &mut Command, what: &'static str, device: &str, out: &Path) -> Run {
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut profile = Command::new(command.get_program());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            profile.env(name, value);
        }
    }
    profile
        .arg("profile")
        .args(arguments)
        .args(["--budget", "60s", "--device", device]);
    succeed(
        profile
            .arg("--model")
            .arg(model(MODEL))
            .arg("--out")
            .arg(out),
    );
    let profile = Profile::read(out).expect("what was published can be read");
    let begins = profile.samples.iter().map(|sample| sample.started).min();
    let ends = profile
        .samples
        .iter()
        .map(|sample| sample.started + sample.duration)
        .max();
    let (begin, end) = begins.zip(ends).expect("samples");
    Run {
        what,
        readings: 2 * profile.blocks.len(),
        nanos: (end - begin).as_nanos(),
    }
}

fn print(places: &[Place], simulated: &Run) {
    println!(
        "# What reading a device's state costs\n\n\
         Made by `cargo tool readings-cost > tests/reports/readings.md` on a machine that others used, too. Times are of that\n\
         machine; on another one, only the ratios are to be expected. The agent reads at both ends of a block, never while an\n\
         inference is timed ([method.md, §5](../../docs/method.md)).\n\n\
         ## A reading\n"
    );
    let rows = places.iter().map(|place| {
        let field = |name: &str| milliseconds(place.readings[name].as_u64());
        vec![
            place.name.to_owned(),
            place.readings["read_times"].to_string(),
            field("median_ns"),
            field("p95_ns"),
            field("longest_ns"),
            field("processor_time_ns"),
        ]
    });
    let heads = [
        "where",
        "readings",
        "median",
        "95 % within",
        "longest",
        "processor time",
    ];
    println!("{}", markdown(&heads, &rows.collect::<Vec<_>>()));
    println!(
        "Processor time is that of the agent and of the programs that it asks, to a hundredth of a second over all readings. On the\n\
         virtual phone these programs are shell scripts in the place of Android's `dumpsys`; a phone's own takes another time, and\n\
         its services compute as well, which nobody sees here. A simulated device's clock stands still meanwhile: there a\n\
         reading costs nothing.\n\n\
         ## Its share of a run\n"
    );
    let share = |run: &Run, place: &Place| {
        let reading = place.readings["median_ns"].as_u64().unwrap_or_default();
        format!(
            "{:.3} %",
            100.0 * (run.readings as u64 * reading) as f64 / run.nanos as f64
        )
    };
    let row = |run: &Run, place: &Place, with: String| {
        vec![
            run.what.to_owned(),
            run.readings.to_string(),
            format!("{:.1} s", run.nanos as f64 / 1e9),
            with,
            share(run, place),
        ]
    };
    let mut rows: Vec<_> = places
        .iter()
        .map(|place| {
            row(
                &place.run,
                place,
                format!(
                    "{}: {}",
                    place.name,
                    milliseconds(place.readings["median_ns"].as_u64())
                ),
            )
        })
        .collect();
    for place in places {
        let with = format!("if one took as long as on {}", place.name);
        rows.push(row(simulated, place, with));
    }
    let heads = [
        "run",
        "readings",
        "from first to last sample",
        "a reading",
        "share",
    ];
    println!("{}", markdown(&heads, &rows));
    println!(
        "## The inferences after a reading\n\n\
         {PAIRS} pairs of turns of {INFERENCES} inferences of {MODEL} on all cores, a millisecond of rest before each: one turn begins with\n\
         a reading, the other does not, and each pair has the other order than the one before. The ratio is the median of the\n\
         pairs' ratios, with a reading over without, and its 95 % interval is by ranks.\n"
    );
    let mut rows = Vec::new();
    for place in places {
        for after in place.readings["after_readings"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let ratio = |value: &Value| {
                value
                    .as_f64()
                    .map_or("?".to_owned(), |ratio| format!("{ratio:.4}"))
            };
            rows.push(vec![
                place.name.to_owned(),
                after["place"].to_string(),
                milliseconds(after["without_reading_ns"].as_u64()),
                milliseconds(after["with_reading_ns"].as_u64()),
                ratio(&after["ratio"]),
                format!(
                    "{} to {}",
                    ratio(&after["ratio_ci95"][0]),
                    ratio(&after["ratio_ci95"][1])
                ),
            ]);
        }
    }
    let heads = [
        "where",
        "inference",
        "without",
        "with",
        "ratio",
        "95 % interval",
    ];
    println!("{}", markdown(&heads, &rows));
    println!(
        "## What is not seen here\n\n\
         - **A phone's heat.** No phone was at hand, and virtual phones have none. What a reading computes bounds what it can\n  \
           heat: the share above, of one core.\n\
         - **A phone's services.** How long they take to answer, and what they compute for it.\n\
         - **An accelerator's clock**, which may fall while the CPU reads: here only cores were timed.\n\n\
         On a phone, with an agent of `make agent` and nothing else running:\n\n    \
             adb push ~/.local/share/layerlab/agents/arm64-v8a/layerlab-agent tests/models/{MODEL}.onnx /data/local/tmp/\n    \
             adb shell /data/local/tmp/layerlab-agent readings --times {READINGS_OF_PHONE} --model /data/local/tmp/{MODEL}.onnx --pairs {PAIRS}\n\n\
         prints the same numbers for it. Its temperatures before and after are in `conditions` and in `blocks.csv` of a profile."
    );
}

fn milliseconds(nanos: Option<u64>) -> String {
    nanos.map_or("?".to_owned(), |nanos| {
        format!("{:.3} ms", nanos as f64 / 1e6)
    })
}

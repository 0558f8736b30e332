//! `layerlab plan edge`: a phone's profile, a server's and the link between them become a plan, or a sentence.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_profiles::document::{Host, Program};
use layerlab_profiles::link::{
    Exchange, LINK_FORMAT, LINK_VERSION, LinkDocument, LinkHeader, LinkKind, LinkMethod,
    LinkProvenance, LinkSample, MeasuredFrom, ServerTimes,
};
use layerlab_profiles::{Bytes, Nanos};
use layerlab_tests::{layerlab, output, root, stderr, succeed};

use super::assert_fails;
use super::metered;

fn published(name: &str) -> PathBuf {
    root().join("profiles/published").join(name)
}

/// A link of so much and 100 µs each way, published: what is measured of one on a busy machine would be another each time.
pub(super) fn link(folder: &Path, megabits: u64) -> PathBuf {
    link_with(folder, megabits, |_| {})
}

/// The same, of which more is said.
pub(super) fn link_with(
    folder: &Path,
    megabits: u64,
    change: impl FnOnce(&mut LinkHeader),
) -> PathBuf {
    let sizes = [16 << 10, 1 << 20].map(Bytes::from_bytes);
    let mut planned = vec![(Exchange::Echo, Bytes::from_bytes(64)); 6];
    for exchange in [Exchange::Upload, Exchange::Download] {
        planned.extend(sizes.iter().flat_map(|&size| [(exchange, size); 3]));
    }
    let mut now = Nanos::ZERO;
    let sample = |(index, (exchange, bytes)): (u32, (Exchange, Bytes))| {
        // A thousandth more or less, so that there is something to estimate.
        let sending = bytes.as_bytes() * 8_000 / megabits;
        let duration =
            Nanos::from_nanos(100_000 + sending + sending / 1_000 * u64::from(index % 3));
        let started = now;
        now = now + duration;
        LinkSample {
            exchange,
            index,
            connection: 0,
            bytes,
            started,
            duration,
            server: ServerTimes::default(),
        }
    };
    let samples = (0..).zip(planned).map(sample).collect();
    let mut header = LinkHeader {
        format: LINK_FORMAT.to_owned(),
        version: LINK_VERSION,
        name: "lab".to_owned(),
        kind: LinkKind::Wifi,
        carrier: LinkKind::Wifi,
        shape: None,
        server: "192.168.1.2:7377".to_owned(),
        method: LinkMethod {
            transfer_bytes: sizes.to_vec(),
            repeats: 3,
            echoes: 6,
            echo_bytes: Bytes::from_bytes(64),
            connections: 1,
            gap_ns: Nanos::ZERO,
            seed: 0,
            requests: None,
        },
        connections: 1,
        provenance: LinkProvenance {
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            finished_at: "2026-01-01T00:01:00Z".to_owned(),
            measured_from: MeasuredFrom::Host,
            program: Program {
                name: "layerlab".to_owned(),
                version: "0.1.0".to_owned(),
            },
            server_program: "layerlab 0.1.0".to_owned(),
            host: Host {
                system: "Linux".to_owned(),
                cpu: "one".to_owned(),
                logical_cores: 2,
                memory_bytes: Bytes::from_bytes(1 << 30),
            },
            phone: None,
        },
    };
    change(&mut header);
    let out = folder.join("link");
    fs::create_dir(&out).expect("room");
    let link = LinkDocument::new(header, samples, Vec::new()).expect("a link");
    link.write(&out).expect("room");
    out
}

/// A phone whose CPU is slow beside a server whose NPU is fast.
fn plan(link: &Path, options: &[&str]) -> Command {
    let mut command = layerlab();
    command.args(["plan", "edge", "--profile"]);
    command
        .arg(published("mate10pro/yolo-mini"))
        .arg("--remote")
        .arg(published("oneplus7/yolo-mini"));
    command.arg("--link").arg(link);
    if !options.contains(&"--remote-processors") {
        command.args(["--remote-processors", "npu"]);
    }
    command.args(options);
    command
}

#[test]
fn a_phone_beside_a_server_is_planned_for_over_a_measured_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = link(folder.path(), 400);
    let said = succeed(&mut plan(&link, &[]));
    for words in [
        "(simulated) beside",
        "over lab (wifi), simulated",
        "joint: ",
        " to ",
        "Compared with: phone-only ",
        "In brackets the 95 % interval",
        "nothing was run",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    let json = |options: &[&str]| -> serde_json::Value {
        let said = succeed(&mut plan(&link, &[&["--json"], options].concat()));
        serde_json::from_str(&said).expect("JSON")
    };
    let joint = json(&[]);
    assert_eq!(joint["simulated"], true);
    let [low, high] = [0, 1].map(|end| joint["latency_ci95_ns"][end].as_u64());
    let latency = joint["latency_ns"].as_u64();
    assert!(low < latency && latency < high, "{joint}");
    let latency = |plan: &serde_json::Value| plan["latency_ns"].as_u64().expect("a time");
    for baseline in ["phone-only", "server-only", "neurosurgeon"] {
        let alone = latency(&json(&["--algorithm", baseline]));
        assert_eq!(joint["baselines_latency_ns"][baseline], alone);
        assert!(latency(&joint) <= alone, "{baseline}");
    }
    // The CPU of the phone alone takes 9.1 ms.
    assert!(joint["server_ns"].as_u64() > Some(0), "{joint}");
    assert!(latency(&joint) < 9_000_000, "{joint}");
    let server = json(&["--algorithm", "server-only"]);
    assert_eq!(server["groups"].as_array().map(Vec::len), Some(1));
    assert_eq!(server["groups"][0]["side"], "server");
    assert_eq!(server["groups"][0]["processor"], "npu");
    assert_eq!(server["transfers"][0]["direction"], "upload");
    assert_eq!(server["transfers"][0]["bytes"], 150_528);
    assert_eq!(server["transfers"][1]["direction"], "download");
    let parts = ["phone_ns", "upload_ns", "server_ns", "download_ns"];
    let parts = parts.map(|part| server[part].as_u64().expect("a time"));
    assert_eq!(parts.iter().sum::<u64>(), latency(&server));
    // A server that may not compute has nothing to do.
    let phone = json(&["--server-time", "0s"]);
    assert_eq!(phone["server_ns"], 0);
    assert_eq!(phone["transfers"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_the_phone_draws_is_planned_with_where_it_was_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = link(folder.path(), 20);
    let phone = folder.path().join("phone");
    // 3 W on the CPU.
    metered::publish(&phone, [3_000, 500]);
    let plan_over = |link: &Path, options: &[&str]| {
        let mut command = layerlab();
        command.args(["plan", "edge", "--profile"]).arg(&phone);
        command
            .arg("--remote")
            .arg(published("mate10pro/vocnet-mini"));
        command.args(["--remote-processors", "npu"]);
        command.arg("--link").arg(link).args(options);
        command
    };
    let plan = |options: &[&str]| plan_over(&link, options);
    let json = |options: &[&str]| -> serde_json::Value {
        let said = succeed(&mut plan(
            &[&["--json", "--radio", "wifi"], options].concat(),
        ));
        serde_json::from_str(&said).expect("JSON")
    };
    let nanojoules = |plan: &serde_json::Value, part: &str| plan[part].as_u64().expect("nJ");
    let frugal = json(&["--minimise", "phone-energy"]);
    let fast = json(&[]);
    assert_eq!(frugal["radio"], "wifi");
    let energies = [&frugal, &fast].map(|plan| nanojoules(plan, "energy_nj"));
    assert!(energies[0] <= energies[1], "{energies:?}");
    for baseline in ["phone-only", "server-only", "neurosurgeon"] {
        let options = ["--minimise", "phone-energy", "--algorithm", baseline];
        let alone = nanojoules(&json(&options), "energy_nj");
        assert_eq!(frugal["baselines_energy_nj"][baseline], alone);
        assert!(energies[0] <= alone, "{baseline}");
    }
    // On the phone alone nothing is sent, and its CPU draws 3 W as long as it works, within what visits differ by.
    let alone = json(&["--algorithm", "phone-only"]);
    assert_eq!(nanojoules(&alone, "radio_nj"), 0);
    let watts = nanojoules(&alone, "energy_nj") as f64 / nanojoules(&alone, "latency_ns") as f64;
    assert!((2.9..3.1).contains(&watts), "{watts} W");
    // On the server alone its radio draws all: 20 Mbit/s each way at the powers of Table 3, while it does not wait.
    let server = json(&["--algorithm", "server-only"]);
    assert_eq!(nanojoules(&server, "computing_nj"), 0);
    let watts = [0.28317 * 20.0 + 0.13286, 0.13701 * 20.0 + 0.13286];
    let seconds = ["upload_ns", "download_ns"].map(|part| nanojoules(&server, part) as f64 / 1e9);
    let joules = watts[0] * seconds[0] + watts[1] * seconds[1];
    let drawn = nanojoules(&server, "radio_nj") as f64 / 1e9;
    assert!(
        (drawn / joules - 1.0).abs() < 0.05,
        "{drawn} J and {joules} J"
    );
    // Over a fast link the server is sooner, and its radio draws more: a limit between the two is kept, if not by the fastest plan.
    let other = tempfile::tempdir().expect("a folder");
    let wide = self::link(other.path(), 400);
    let json = |options: &[&str]| -> serde_json::Value {
        let options = [&["--json", "--radio", "wifi"], options].concat();
        serde_json::from_str(&succeed(&mut plan_over(&wide, &options))).expect("JSON")
    };
    let (frugal, fast) = (json(&["--minimise", "phone-energy"]), json(&[]));
    let energies = [&frugal, &fast].map(|plan| nanojoules(plan, "energy_nj"));
    assert!(energies[0] < energies[1], "{energies:?}");
    let limit = u64::midpoint(energies[0], energies[1]).div_ceil(1_000);
    let limited = json(&["--energy", &format!("{limit}uJ")]);
    assert!(nanojoules(&limited, "energy_nj") <= limit * 1_000);
    assert!(nanojoules(&limited, "latency_ns") > nanojoules(&fast, "latency_ns"));

    let said = succeed(&mut plan(&["--radio", "4g"]));
    for words in [
        "The phone draws ",
        "its 4g radio",
        "accuracy is not planned",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    let refused = |options: &[&str]| output(&mut plan(options));
    assert_fails(
        &refused(&["--radio", "3g", "--energy", "1uJ"]),
        8,
        &["energy is at least"],
    );
    assert_fails(
        &refused(&["--minimise", "phone-energy"]),
        2,
        &["--radio (3g, 4g or wifi)"],
    );
    assert_fails(&refused(&["--energy", "1mJ"]), 2, &["--radio"]);
    let unit = refused(&["--energy", "5"]);
    assert_eq!(unit.status.code(), Some(2));
    assert!(stderr(&unit).contains("J, mJ or uJ"), "{}", stderr(&unit));
    // A phone of which nobody measured what it draws.
    let unknown = output(&mut self::plan(&link, &["--radio", "wifi"]));
    assert_fails(
        &unknown,
        3,
        &["does not say what inferences draw", "--energy 30s"],
    );
}

#[test]
fn what_cannot_be_planned_is_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = link(folder.path(), 1);
    let refused = |options: &[&str]| output(&mut plan(&link, options));
    assert_fails(
        &refused(&["--latency", "1us"]),
        8,
        &["joint has no plan", "at least"],
    );
    assert_fails(
        &refused(&["--latency", "0s"]),
        3,
        &["the limit of latency is 0"],
    );
    assert_fails(
        &refused(&["--algorithm", "larac"]),
        3,
        &["exactly one limit"],
    );
    let words = [
        "the server's profile has no processor \"tpu\"",
        "it has cpu",
    ];
    assert_fails(&refused(&["--remote-processors", "tpu"]), 3, &words);
    let mut other = layerlab();
    other
        .args(["plan", "edge", "--profile"])
        .arg(published("mate10pro/vocnet-mini"));
    other.arg("--remote").arg(published("oneplus7/yolo-mini"));
    let words = ["profile the phone's model on the server"];
    assert_fails(&output(other.arg("--link").arg(&link)), 3, &words);
    assert_fails(&output(&mut plan(folder.path(), &[])), 3, &["link.json"]);
    // A link that is slow is left alone.
    let alone = succeed(&mut plan(&link, &[]));
    assert!(alone.contains("upload 0 ns, server 0 ns"), "{alone}");
    let links = link.join("links.csv");
    let text = fs::read_to_string(&links).expect("a table");
    fs::write(&links, text.replace("upload,", "upload,1")).expect("room");
    assert_fails(&refused(&[]), 6, &["contradicts itself"]);
}

#[test]
fn a_sweep_over_bandwidths_leaves_the_phone_as_the_link_becomes_faster() {
    let folder = tempfile::tempdir().expect("a folder");
    let plot = folder.path().join("regions.svg");
    let sweep = |options: &[&str]| {
        let mut command = layerlab();
        command.args(["plan", "edge", "sweep", "--profile"]);
        command
            .arg(published("mate10pro/yolo-mini"))
            .arg("--remote");
        command.arg(published("oneplus7/yolo-mini"));
        command.args(["--remote-processors", "npu", "--steps", "9"]);
        command.args(options);
        command
    };
    let drawn = [
        "--round-trip",
        "2ms",
        "--plot",
        plot.to_str().expect("UTF-8"),
    ];
    let said = succeed(&mut sweep(&drawn));
    let mut table = csv::Reader::from_reader(said.as_bytes());
    let rows: Vec<std::collections::BTreeMap<String, String>> =
        table.deserialize().collect::<Result<_, _>>().expect("rows");
    let number = |row: usize, column: &str| -> u64 {
        rows[row][column]
            .parse()
            .unwrap_or_else(|_| panic!("{column} of {row}"))
    };
    assert_eq!(rows.len(), 9);
    assert_eq!(number(0, "bandwidth_bps"), 100_000);
    assert_eq!(number(8, "bandwidth_bps"), 1_000_000_000);
    assert_eq!(rows[0]["region"], "phone");
    assert_ne!(rows[8]["region"], "phone");
    assert!(rows[8]["layers"].contains(" server npu"), "{said}");
    for (row, told) in rows.iter().enumerate() {
        assert_eq!(told["simulated"], "true");
        assert_eq!(number(row, "round_trip_ns"), 2_000_000);
        let parts = ["phone_ns", "upload_ns", "server_ns", "download_ns"];
        let parts: u64 = parts.into_iter().map(|part| number(row, part)).sum();
        assert_eq!(parts, number(row, "latency_ns"), "{row}");
        for baseline in ["phone_only", "server_only", "neurosurgeon"] {
            let alone = number(row, &format!("{baseline}_latency_ns"));
            assert!(number(row, "latency_ns") <= alone, "{baseline} in {row}");
        }
        if row > 0 {
            assert!(number(row, "latency_ns") <= number(row - 1, "latency_ns"));
        }
    }
    // 150,528 bytes up and 5,880 down, with one round trip: what the bandwidth changes is the bytes alone.
    let bits = 8.0 * (150_528.0 + 5_880.0);
    let sending = |row: usize| bits * 1e9 / number(row, "bandwidth_bps") as f64;
    let slower = number(0, "server_only_latency_ns") - number(8, "server_only_latency_ns");
    assert!((slower as f64 - (sending(0) - sending(8))).abs() < 3.0);
    let picture = fs::read_to_string(&plot).expect("a picture");
    for words in ["SIMULATED", "all layers on the phone", "1 Gbit/s"] {
        assert!(
            picture.contains(words),
            "`{words}` is missing in the picture"
        );
    }

    let refused = |options: &[&str]| output(&mut sweep(options));
    assert_fails(
        &refused(&["--from", "2mbit", "--to", "1mbit"]),
        2,
        &["--from is not below --to"],
    );
    let nowhere = folder.path().join("nowhere/regions.svg");
    let nowhere = nowhere.to_str().expect("UTF-8");
    assert_fails(
        &refused(&["--plot", nowhere]),
        5,
        &["cannot write", "nowhere"],
    );
    let unit = refused(&["--from", "5"]);
    assert_eq!(unit.status.code(), Some(2));
    assert!(
        stderr(&unit).contains("kbit, mbit or gbit"),
        "{}",
        stderr(&unit)
    );
    let mut alone = layerlab();
    let alone = output(alone.args(["plan", "edge"]));
    assert_eq!(alone.status.code(), Some(2));
    assert!(stderr(&alone).contains("--profile"), "{}", stderr(&alone));
}

//! `layerlab plan edge --verify`: a plan is run on a simulated phone and a real edge server, over a shaped link, or is refused
//! in a sentence.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use layerlab_profiles::Nanos;
use layerlab_profiles::document::{Phone, ProcessorKind, Profile, Program};
use layerlab_profiles::link::{LinkHeader, LinkKind, LinkPhone, LinkShape, PhoneAttached};
use layerlab_tests::{FEW, layerlab, model, output, profile, stderr, succeed};
use serde_json::Value;

use super::assert_fails;
use super::links::{Place, dying, edge_server, listener};
use super::plan_edge::link_with;

/// Computes convolutions in microseconds, and takes minutes for what is fully connected.
const PHONE: &str = r#"
name = "lopsided (simulated)"
clock = "exact"

[[processor]]
name = "cpu"
kind = "cpu"
numerics = "f32"
convolution_flop_per_s = 1e12
fully_connected_flop_per_s = 1e2
pooling_flop_per_s = 1e10
other_flop_per_s = 1e10
noise_proportional_sigma = 0.01
"#;

const MODEL: &str = "alexnet";

/// The first layer of alexnet that is fully connected.
const FIRST_FULLY_CONNECTED: u64 = 9;

/// A phone and a server with profiles, and a shaped link between them.
struct Beside {
    place: Place,
    link: PathBuf,
}

impl Beside {
    fn new() -> Beside {
        let place = Place::new();
        let folder = place.0.path();
        fs::write(folder.join("phone.toml"), PHONE).expect("room");
        let phone = folder.join("phone.toml");
        for (device, name) in [(phone.as_os_str(), "phone"), (OsStr::new("host"), "server")] {
            let out = folder.join(name);
            succeed(profile(&mut layerlab(), FEW, model(MODEL), device, &out));
        }
        let link = link_with(folder, 400, |header| shaped(header, 400));
        Beside { place, link }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.0.path().join(name)
    }

    fn plan(&self, options: &[&str]) -> Command {
        let mut command = layerlab();
        command.args(["plan", "edge", "--profile"]);
        command.arg(self.path("phone"));
        command.arg("--remote").arg(self.path("server"));
        command.arg("--link").arg(&self.link);
        command.args(options);
        command
    }

    /// Has the plan run with the server at this address.
    fn verify(&self, server: impl ToString, options: &[&str]) -> Command {
        let mut command = self.plan(options);
        command.args(["--verify", "--server", &server.to_string()]);
        command.args(["--inferences", "6", "--token-file"]);
        command.arg(self.place.token());
        command.arg("--device").arg(self.path("phone.toml"));
        command.arg("--model").arg(model(MODEL));
        command
    }
}

/// A link that is slowed down to so many Mbit/s and 2 ms.
pub(super) fn shaped(header: &mut LinkHeader, megabits: u64) {
    header.kind = LinkKind::Shaped;
    header.shape = Some(LinkShape {
        bandwidth_bps: megabits * 1_000_000,
        round_trip_ns: Nanos::from_millis(2),
    });
}

/// `layerlab edge-server` with the model. It ends with this value.
pub(super) struct Serving {
    process: Child,
    pub(super) address: String,
}

impl Serving {
    pub(super) fn new(token: &Path, model: &Path) -> Serving {
        let options = [OsStr::new("--model"), model.as_os_str()];
        let (process, address) = edge_server(token, &options);
        Serving { process, address }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_plan_is_run_by_the_phone_the_server_or_both_with_the_result_of_the_whole_network() {
    let beside = Beside::new();
    let server = Serving::new(&beside.place.token(), &model(MODEL));
    let run = |algorithm: &str| -> serde_json::Value {
        let options = ["--json", "--algorithm", algorithm];
        let said = succeed(&mut beside.verify(&server.address, &options));
        serde_json::from_str(&said).expect("JSON")
    };
    let nanos = |of: &serde_json::Value, part: &str| of[part]["median_ns"].as_u64().expect(part);
    for (algorithm, sides) in [
        ("phone-only", &["phone"][..]),
        ("server-only", &["server"]),
        ("joint", &["phone", "server"]),
    ] {
        let plan = run(algorithm);
        let groups = plan["groups"].as_array().expect("groups");
        let mut planned: Vec<&str> = groups.iter().filter_map(|it| it["side"].as_str()).collect();
        planned.dedup();
        assert_eq!(planned, sides, "{algorithm}: {plan}");
        if algorithm == "joint" {
            // What the phone is slow at, and nothing that it is quick at.
            let server = groups.iter().find(|it| it["side"] == "server");
            assert_eq!(server.expect("one")["first_layer"], FIRST_FULLY_CONNECTED);
        }
        assert_eq!(plan["simulated"], true);
        let verified = &plan["verified"];
        assert_eq!(verified["phone_simulated"], true);
        assert_eq!(verified["device"], "lopsided (simulated)");
        assert_eq!(verified["inferences"], 6);
        let agreement = &verified["agreement"];
        assert_eq!(agreement["equal"], true, "{verified}");
        assert_eq!(agreement["processor"], "cpu");
        assert_eq!(agreement["elements"], 20);
        assert_eq!(verified["not_compared"], serde_json::Value::Null);
        let crosses = sides.contains(&"server");
        for part in ["upload", "download", "server"] {
            assert_eq!(nanos(verified, part) > 0, crosses, "{part}: {verified}");
        }
        assert_eq!(nanos(verified, "phone") > 0, sides.contains(&"phone"));
        for part in ["latency", "phone", "upload", "server", "download"] {
            let [low, high] = [0, 1].map(|end| verified[part]["ci95_ns"][end].as_u64());
            let median = Some(nanos(verified, part));
            assert!(low <= median && median <= high, "{part}: {verified}");
        }
        match crosses {
            // No answer is sooner than the shaper's round trip.
            true => assert!(nanos(verified, "download") >= 2_000_000, "{verified}"),
            false => assert_eq!(nanos(verified, "latency"), nanos(verified, "phone")),
        }
    }
    let said = succeed(&mut beside.verify(&server.address, &[]));
    for words in [
        "over lab (shaped), simulated",
        "joint: ",
        "Run 6 times on lopsided (simulated) with the server at 127.0.0.1:",
        "The result equals the whole network's on cpu of the phone alone",
        "The phone's time is simulated, the link's and the server's are real",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
    assert!(!said.contains("nothing was run"), "{said}");
    let rows: Vec<Vec<&str>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let heads = ["part", "predicted", "95", "%", "interval", "measured"];
    assert!(rows.iter().any(|row| row.starts_with(&heads)), "{said}");
    for part in [
        &["all"][..],
        &["phone"],
        &["link"],
        &["server"],
        &["its", "queue"],
    ] {
        assert!(
            rows.iter().any(|row| row.starts_with(part)),
            "{part:?}: {said}"
        );
    }
}

#[test]
fn a_plan_that_cannot_be_run_is_one_sentence() {
    let beside = Beside::new();
    let server = Serving::new(&beside.place.token(), &model(MODEL));
    let verify = |server: &str, options: &[&str]| output(&mut beside.verify(server, options));
    let there = ["--algorithm", "server-only"];

    let gone = listener().local_addr().expect("bound").to_string();
    let words = [gone.as_str(), "start `layerlab edge-server` there"];
    assert_fails(&verify(&gone, &there), 4, &words);
    let stranger = Place::new();
    let elsewhere = stranger.server();
    let words = ["refused: the token", "copy the server's token file"];
    let address = elsewhere.address().to_string();
    assert_fails(&verify(&address, &there), 4, &words);
    let without = beside.place.server();
    let words = ["refused: ", "--model"];
    let address = without.address().to_string();
    assert_fails(&verify(&address, &there), 4, &words);
    let other = Serving::new(&beside.place.token(), &model("inception"));
    let words = ["this server has no model", "start it with --model"];
    assert_fails(&verify(&other.address, &there), 4, &words);
    // The input alone has 158,700 bytes, and crosses nine times.
    let dying = dying(server.address.parse().expect("an address"), 1 << 20);
    let words = [
        "was lost while having layers run",
        "see whether the server still runs",
    ];
    assert_fails(&verify(&dying.to_string(), &there), 4, &words);

    // The server is as good as before.
    succeed(&mut beside.verify(&server.address, &there));
}

#[test]
fn what_does_not_belong_to_the_plan_is_not_run() {
    let beside = Beside::new();
    // Nobody listens there: all of it is refused before anybody is called.
    let server = "127.0.0.1:9";
    let mut other_model = beside.plan(&["--verify", "--server", server]);
    other_model.arg("--device").arg(beside.path("phone.toml"));
    other_model.arg("--token-file").arg(beside.place.token());
    other_model.arg("--model").arg(model("inception"));
    let words = ["--model is another model than the profiles'"];
    assert_fails(&output(&mut other_model), 3, &words);

    let mut other_device = beside.plan(&["--verify", "--server", server]);
    other_device.args(["--device", "pixel6", "--model"]);
    other_device.arg(model(MODEL));
    other_device.arg("--token-file").arg(beside.place.token());
    let words = ["the profile is of the device lopsided (simulated)"];
    assert_fails(&output(&mut other_device), 3, &words);

    let words = ["--tunnel is for phones"];
    let tunnelled = output(&mut beside.verify(server, &["--tunnel"]));
    assert_fails(&tunnelled, 2, &words);

    let alone = output(&mut beside.plan(&["--verify"]));
    assert_eq!(alone.status.code(), Some(2));
    assert!(stderr(&alone).contains("--device"), "{}", stderr(&alone));

    // Times of an emulator are no phone's.
    let mut emulated = Profile::read(&beside.path("server")).expect("a profile");
    emulated.header.emulated = true;
    fs::create_dir(beside.path("emulated")).expect("room");
    emulated.write(&beside.path("emulated")).expect("room");
    fs::create_dir(beside.path("real")).expect("room");
    let real = link_with(&beside.path("real"), 400, |_| {});
    let mut both = layerlab();
    both.args(["plan", "edge", "--link"]).arg(&real);
    for option in ["--profile", "--remote"] {
        both.arg(option).arg(beside.path("emulated"));
    }
    let said = succeed(&mut both);
    assert!(said.contains("over lab (wifi), emulated\n"), "{said}");
    both.arg("--json");
    let json: serde_json::Value = serde_json::from_str(&succeed(&mut both)).expect("JSON");
    assert_eq!(
        (&json["simulated"], &json["emulated"]),
        (&false.into(), &true.into())
    );

    // A phone's link is no other phone's.
    let mut phone = Profile::read(&beside.path("phone")).expect("a profile");
    let named = |serial: &str| Phone {
        serial: serial.to_owned(),
        ..Phone::default()
    };
    phone.header.provenance.phone = Some(named("R1"));
    fs::create_dir(beside.path("named")).expect("room");
    phone.write(&beside.path("named")).expect("room");
    fs::create_dir(beside.path("others")).expect("room");
    let link = link_with(&beside.path("others"), 400, |header| {
        header.provenance.phone = Some(LinkPhone {
            described: named("R2"),
            agent: Program {
                name: "layerlab-agent".to_owned(),
                version: "0.1.0".to_owned(),
            },
            attached: PhoneAttached::Cable,
            tunnelled: false,
        });
        header.provenance.measured_from = layerlab_profiles::link::MeasuredFrom::Phone;
    });
    let mut others = layerlab();
    others.args(["plan", "edge", "--profile"]);
    others.arg(beside.path("named")).arg("--link").arg(link);
    others.arg("--remote").arg(beside.path("server"));
    let words = [
        "the link lab was measured from the phone R2",
        "of the phone R1",
        "measure the link from that one",
    ];
    assert_fails(&output(&mut others), 3, &words);
}

#[test]
fn a_servers_groups_of_layers_are_measured_by_themselves() {
    let place = Place::new();
    let folder = place.0.path();
    // Of few layers: all groups are measured.
    let model = model("variants/opset7");
    let (phone, out) = (folder.join("phone"), folder.join("server"));
    fs::write(folder.join("phone.toml"), PHONE).expect("room");
    let device = folder.join("phone.toml");
    succeed(profile(&mut layerlab(), FEW, &model, &device, &phone));
    let mut command = layerlab();
    command.args([
        "profile",
        "--design",
        "grouped",
        "--as-accelerator",
        "cpu:all",
    ]);
    command.args(["--samples", "6", "--visits", "3"]);
    command.args(["--device", "host", "--model"]);
    command.arg(&model).arg("--out").arg(&out);
    // This machine is measured, and others may work on it: where they kept all samples waiting, the profile is refused.
    let is_refused = |measured: &Output| stderr(measured).contains("[block-contradiction]");
    let mut measured = output(&mut command);
    for _ in 0..3 {
        if is_refused(&measured) {
            assert_eq!(measured.status.code(), Some(6));
            measured = output(&mut command);
        }
    }
    assert!(measured.status.success(), "{}", stderr(&measured));
    let profiled = Profile::read(&out).expect("a profile");
    let [processor] = &profiled.header.processors[..] else {
        panic!("{:?}", profiled.header.processors);
    };
    assert_eq!(processor.kind, ProcessorKind::Accelerator);
    let layers = profiled.layers.len();
    assert_eq!(profiled.segments.len(), layers * (layers + 1) / 2);
    // The fastest way to run the layers before each in groups that were measured; on a busy machine two may take less than one.
    let mut fastest = vec![u64::MAX; layers + 1];
    fastest[0] = 0;
    for last in 1..=layers {
        for row in profiled
            .segments
            .iter()
            .filter(|row| row.segment.last() as usize == last)
        {
            let before = fastest[row.segment.first() as usize - 1];
            fastest[last] = fastest[last].min(before + row.summary.median.as_nanos());
        }
    }

    // It runs on the server's only processor, though that is no CPU there, and takes what it took.
    let mut command = layerlab();
    command.args(["plan", "edge", "--json", "--algorithm", "server-only"]);
    command.arg("--profile").arg(&phone);
    command.arg("--remote").arg(&out).arg("--link");
    let link = link_with(folder, 400, |header| shaped(header, 400));
    let told = succeed(command.arg(link));
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["server_ns"], fastest[layers]);
    assert_eq!(told["groups"].as_array().map(Vec::len), Some(1));

    let mut command = layerlab();
    let out = folder.join("none");
    let command = profile(&mut command, FEW, &model, "host", &out);
    let command = command.args(["--as-accelerator", "gpu"]);
    let words = [
        "--as-accelerator takes a CPU, not `gpu`",
        "choose one of cpu:all",
    ];
    assert_fails(&output(command), 3, &words);
}

//! `layerlab plan edge --tensors --verify`: a plan whose tensors cross packed is run by this machine, which plays no device, and a
//! real edge server over a shaped link, on the pictures whose tensors were measured.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_tests::scenes::scenes;
use layerlab_tests::{FEW, layerlab, model, output, profile, stderr, succeed};
use serde_json::Value;

use super::assert_fails;
use super::links::Place;
use super::plan_edge::link_with;
use super::plan_edge_verified::{Serving, shaped};

const MODEL: &str = "vocnet-mini";

/// This machine beside itself, its tensors, and a link that is slow enough for packing.
struct Beside {
    place: Place,
    link: PathBuf,
    set: PathBuf,
}

impl Beside {
    fn new() -> Beside {
        let place = Place::new();
        let folder = place.0.path();
        let set = scenes(folder, 6, &["--metric", "multi-label"]);
        let machine = folder.join("machine");
        succeed(profile(
            &mut layerlab(),
            FEW,
            model(MODEL),
            OsStr::new("host"),
            &machine,
        ));
        let mut tensors = layerlab();
        tensors.args(["tensors", "measure", "--device", "host", "--model"]);
        tensors.arg(model(MODEL)).arg("--set").arg(&set);
        tensors.args(["--codecs", "u8-png,f32-zstd", "--out"]);
        succeed(tensors.arg(folder.join("tensors")));
        let link = link_with(folder, 8, |header| shaped(header, 8));
        Beside { place, link, set }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.0.path().join(name)
    }

    /// Has everything run on the server at this address, of which the input crosses packed by one of `codecs`.
    fn verify(&self, server: &str, codecs: &str, set: Option<&Path>) -> Command {
        let mut command = layerlab();
        command.args(["plan", "edge", "--algorithm", "server-only"]);
        for (option, name) in [
            ("--profile", "machine"),
            ("--remote", "machine"),
            ("--tensors", "tensors"),
            ("--remote-tensors", "tensors"),
        ] {
            command.arg(option).arg(self.path(name));
        }
        command.arg("--link").arg(&self.link);
        command.args(["--codecs", codecs]);
        command.args(["--verify", "--device", "host", "--server", server]);
        command.args(["--inferences", "6", "--token-file"]);
        command.arg(self.place.token());
        command.arg("--model").arg(model(MODEL));
        if let Some(set) = set {
            command.arg("--set").arg(set);
        }
        command
    }
}

#[test]
fn a_plan_with_packed_tensors_is_run_on_the_pictures_that_were_measured() {
    let beside = Beside::new();
    let server = Serving::new(&beside.place.token(), &model(MODEL));
    let run = |codecs: &str| -> Value {
        let mut command = beside.verify(&server.address, codecs, Some(&beside.set));
        serde_json::from_str(&succeed(command.arg("--json"))).expect("JSON")
    };
    let kept = run("f32-zstd");
    assert_eq!(kept["transfers"][0]["codec"], "f32-zstd", "{kept}");
    let verified = &kept["verified"];
    assert_eq!(verified["agreement"]["equal"], true, "{verified}");
    assert_eq!(verified["rounded_by"], Value::Null);
    // No layer runs there: it packs.
    let packing = verified["phone"]["median_ns"].as_u64();
    assert!(packing > Some(0), "{verified}");

    let rounded = run("u8-png");
    let verified = &rounded["verified"];
    assert_eq!(verified["rounded_by"], "u8-png");
    // The pixels of the input have no more than 8 bits.
    assert_eq!(verified["agreement"]["equal"], true, "{verified}");
    let mut command = beside.verify(&server.address, "u8-png", Some(&beside.set));
    let said = succeed(&mut command);
    assert!(
        said.contains("where u8-png rounded what crossed to 8 bits"),
        "{said}"
    );
}

#[test]
fn without_the_pictures_that_were_measured_nothing_is_run() {
    let beside = Beside::new();
    // Nobody listens there: all of it is refused before anybody is called.
    let server = "127.0.0.1:9";
    let without = output(&mut beside.verify(server, "f32-zstd", None));
    let words = ["depends on the pictures", "name the --set scenes"];
    assert_fails(&without, 2, &words);
    std::fs::create_dir(beside.path("other")).expect("room");
    let other = scenes(&beside.path("other"), 5, &["--metric", "multi-label"]);
    let other = output(&mut beside.verify(server, "f32-zstd", Some(&other)));
    assert_fails(&other, 3, &["--set is another evaluation set"]);
    // Without tensors that may be packed there is nothing that pictures would change.
    let mut plain = layerlab();
    plain.args(["plan", "edge", "--verify", "--device", "host"]);
    plain.args(["--server", server, "--model", "none", "--set"]);
    plain.arg(&beside.set);
    let plain = output(&mut plain);
    assert_eq!(plain.status.code(), Some(2));
    assert!(stderr(&plain).contains("--tensors"), "{}", stderr(&plain));
}

//! `layerlab plan edge --accuracy`: a phone's layers are on those of its processors that keep what is required, or a sentence
//! says what is reachable.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_profiles::Placement;
use layerlab_profiles::document::Profile;
use layerlab_tests::{layerlab, output, root, stderr, succeed};

use super::plan_edge::link;
use super::{assert_fails, metered};

fn published(name: &str) -> PathBuf {
    root().join("profiles/published").join(name)
}

/// A phone of which accuracies were measured beside a server that computes in 32-bit floats.
fn plan(model: &str, link: &Path, options: &[&str]) -> Command {
    let mut command = layerlab();
    command.args(["plan", "edge", "--profile"]);
    command
        .arg(published("mate10pro").join(model))
        .arg("--remote")
        .arg(published("oneplus7").join(model));
    command.arg("--link").arg(link).args(options);
    command
}

fn json(command: &mut Command) -> serde_json::Value {
    serde_json::from_str(&succeed(command.arg("--json"))).expect("JSON")
}

/// The digits of what a plan's groups run on.
fn digits(plan: &serde_json::Value) -> Placement {
    let groups = plan["groups"].as_array().expect("groups");
    let digits = groups.iter().flat_map(|group| {
        let layer = |end: &str| group[end].as_u64().expect("a layer");
        let digit = match (group["side"].as_str(), group["processor"].as_str()) {
            (Some("phone"), Some("npu")) => 1_u8,
            (_, Some("cpu")) => 0,
            other => panic!("{other:?}"),
        };
        (layer("first_layer")..=layer("last_layer")).map(move |_| digit)
    });
    Placement::new(digits.collect())
}

#[test]
fn a_plan_keeps_the_accuracy_that_is_required() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = link(folder.path(), 400);
    let plan = |options: &[&str]| plan("vocnet-mini", &link, options);
    let latency = |told: &serde_json::Value| told["latency_ns"].as_u64().expect("a time");
    let profile = Profile::read(&published("mate10pro/vocnet-mini")).expect("a profile");
    let (mut before, mut used) = (0, [false; 2]);
    for required in ["0", "0.83", "0.85", "0.86", "0.87", "0.878"] {
        let told = json(&mut plan(&["--accuracy", required]));
        let at_least: f64 = required.parse().expect("a number");
        assert_eq!(told["limit_accuracy"], at_least, "{told}");
        assert_eq!(told["confidence"], 0.95);
        assert_eq!(told["placed_on"], serde_json::json!(["cpu", "npu"]));
        assert_eq!(told["is_best"], true);
        let [low, high] = [0, 1].map(|end| told["accuracy_interval"][end].as_f64());
        let accuracy = told["accuracy"].as_f64();
        assert!(low <= accuracy && accuracy <= high, "{told}");
        assert!(low >= Some(at_least), "{told}");
        // The server counts as the CPU.
        let placement = digits(&told);
        assert_eq!(told["combination"], placement.to_string());
        let mut rows = profile.combinations.iter();
        let row = rows.find(|row| row.combination == placement);
        assert_eq!(told["is_measured"], row.is_some(), "{told}");
        if let Some(row) = row {
            let accuracy = accuracy.expect("a number");
            assert!((accuracy - row.score).abs() < 1e-6, "{told}");
        }
        assert!(latency(&told) >= before, "{required} costs less");
        before = latency(&told);
        used[0] |= placement.processors().contains(&1);
        used[1] |= told["server_ns"].as_u64() > Some(0);
        for baseline in ["phone-only", "server-only", "neurosurgeon"] {
            let alone = &["--accuracy", required, "--algorithm", baseline];
            let alone = latency(&json(&mut plan(alone)));
            assert_eq!(told["baselines_latency_ns"][baseline], alone);
            assert!(latency(&told) <= alone, "{baseline}");
        }
    }
    assert_eq!(used, [true; 2], "the NPU and the server are used");
    // What any accuracy allows is the plan that no accuracy is required of, if it may use the NPU.
    let free = json(&mut plan(&["--processors", "cpu,npu"]));
    let any = json(&mut plan(&["--accuracy", "0"]));
    assert_eq!(latency(&any), latency(&free));
    assert_eq!(free["accuracy"], serde_json::Value::Null);
    let without_npu = ["--processors", "cpu"];
    let alone = json(&mut plan(&without_npu));
    let same = json(&mut plan(
        &[&without_npu[..], &["--accuracy", "0.5"]].concat(),
    ));
    assert_eq!(latency(&same), latency(&alone));
    assert_eq!(same["accuracy"], same["all_cpu_accuracy"]);
    // Estimates alone allow more.
    let strict = json(&mut plan(&["--accuracy", "0.878"]));
    let loose = json(&mut plan(&["--accuracy", "0.878", "--confidence", "none"]));
    assert!(latency(&loose) < latency(&strict), "{loose}");
    assert_eq!(loose["confidence"], serde_json::Value::Null);
    // Other limits hold, too.
    let phone = json(&mut plan(&["--accuracy", "0.87", "--server-time", "0s"]));
    assert_eq!(phone["server_ns"], 0);

    let said = succeed(&mut plan(&["--accuracy", "0.87"]));
    for words in [
        "accuracy 0.8",
        "0.87 is required with 95 % confidence",
        "all layers on cpu have 0.8786",
        "█ npu",
        "the server counts as cpu",
        "Compared with what keeps that accuracy: phone-only ",
        "energy is not planned with",
    ] {
        assert!(said.contains(words), "`{words}` is missing in: {said}");
    }
}

#[test]
fn an_accuracy_that_nothing_keeps_is_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = link(folder.path(), 400);
    let refused = |options: &[&str]| output(&mut plan("vocnet-mini", &link, options));
    let words = [
        "joint has no plan: no placement keeps accuracy 0.95 with 95 % confidence",
        "the best that is reachable is 0.8786",
    ];
    assert_fails(&refused(&["--accuracy", "0.95"]), 8, &words);
    let npu_alone = [
        "--processors",
        "npu",
        "--algorithm",
        "phone-only",
        "--accuracy",
        "0.87",
    ];
    let words = [
        "phone-only has no plan",
        "the best that is reachable is 0.5925, of a placement with 0.6225 measured",
    ];
    assert_fails(&refused(&npu_alone), 8, &words);
    let in_time = [
        "--latency",
        "1600us",
        "--accuracy",
        "0.878",
        "--confidence",
        "none",
    ];
    assert_fails(&refused(&in_time), 8, &["within the other limits", "0.8"]);
    assert_fails(
        &refused(&["--latency", "1us", "--accuracy", "0.5"]),
        8,
        &["latency is at least"],
    );
    assert_fails(
        &refused(&["--accuracy", "60"]),
        3,
        &["a fraction between 0 and 1"],
    );
    let words = [
        "the server's npu computes in 8-bit integers",
        "--remote-processors",
    ];
    let other = ["--accuracy", "0.5", "--remote-processors", "npu"];
    assert_fails(&refused(&other), 3, &words);
    let larac = [
        "--accuracy",
        "0.5",
        "--algorithm",
        "larac",
        "--latency",
        "1s",
    ];
    assert_fails(&refused(&larac), 3, &["larac does not plan"]);
    let alone = refused(&["--confidence", "90%"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(stderr(&alone).contains("--accuracy"), "{}", stderr(&alone));
    // A phone of which nobody measured the accuracy of placements.
    let phone = folder.path().join("phone");
    let mut profile = Profile::read(&published("mate10pro/vocnet-mini")).expect("a profile");
    profile.evaluations.clear();
    profile.combinations.clear();
    std::fs::create_dir(&phone).expect("room");
    profile.write(&phone).expect("room");
    let mut unknown = layerlab();
    unknown.args(["plan", "edge", "--profile"]).arg(&phone);
    unknown
        .arg("--remote")
        .arg(published("oneplus7/vocnet-mini"));
    unknown.arg("--link").arg(&link).args(["--accuracy", "0.5"]);
    assert_fails(
        &output(&mut unknown),
        3,
        &[
            "has no measured combinations",
            "layerlab evaluate --profile",
        ],
    );
}

/// Thirty layers have a billion placements: they are searched, and the plan says so.
#[test]
fn a_long_network_is_searched() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = link(folder.path(), 400);
    let plan = |options: &[&str]| plan("yolo-mini", &link, options);
    let told = json(&mut plan(&["--accuracy", "0.7"]));
    assert_eq!(told["is_best"], false);
    assert_eq!(told["combination"], digits(&told).to_string());
    assert!(told["accuracy_interval"][0].as_f64() >= Some(0.7), "{told}");
    let on_cpu = json(&mut plan(&[]));
    assert!(told["latency_ns"].as_u64() < on_cpu["latency_ns"].as_u64());
    let said = succeed(&mut plan(&["--accuracy", "0.7"]));
    let words = "found by a search, which may have missed a better plan";
    assert!(said.contains(words), "{said}");
}

/// With a radio each group is on the processor that draws least, where that is asked for.
#[test]
fn what_draws_least_keeps_the_accuracy_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = link(folder.path(), 20);
    let phone = folder.path().join("phone");
    metered::publish(&phone, [3_000, 500]);
    let plan = |options: &[&str]| {
        let mut command = layerlab();
        command.args(["plan", "edge", "--profile"]).arg(&phone);
        command
            .arg("--remote")
            .arg(published("mate10pro/vocnet-mini"));
        command.arg("--link").arg(&link).args([
            "--radio",
            "wifi",
            "--minimise",
            "phone-energy",
            "--processors",
            "cpu,npu",
        ]);
        command.args(options);
        json(&mut command)
    };
    let drawn = |told: &serde_json::Value| told["energy_nj"].as_u64().expect("nJ");
    let (soonest, any) = (plan(&[]), plan(&["--accuracy", "0"]));
    let accurate = plan(&["--accuracy", "0.87"]);
    assert!(drawn(&any) <= drawn(&soonest), "{any}");
    assert!(drawn(&any) < drawn(&accurate), "{accurate}");
    assert!(accurate["accuracy_interval"][0].as_f64() >= Some(0.87));
    assert_eq!(accurate["combination"], digits(&accurate).to_string());
}

#[test]
fn a_sweep_keeps_the_accuracy_at_each_bandwidth() {
    let sweep = |options: &[&str]| {
        let mut command = layerlab();
        command.args(["plan", "edge", "sweep", "--profile"]);
        command
            .arg(published("mate10pro/vocnet-mini"))
            .arg("--remote");
        command.arg(published("oneplus7/vocnet-mini"));
        command.args(["--round-trip", "1ms", "--steps", "5"]);
        command.args(options);
        command
    };
    let rows = |options: &[&str]| -> Vec<std::collections::BTreeMap<String, String>> {
        let said = succeed(&mut sweep(options));
        let mut table = csv::Reader::from_reader(said.as_bytes());
        table.deserialize().collect::<Result<_, _>>().expect("rows")
    };
    let number = |text: &String| -> f64 { text.parse().expect("a number") };
    let any = rows(&["--processors", "cpu,npu"]);
    let accurate = rows(&["--accuracy", "0.87"]);
    assert_eq!((any.len(), accurate.len()), (5, 5));
    assert!(!any[0].contains_key("accuracy"));
    for (any, accurate) in any.iter().zip(&accurate) {
        assert!(number(&accurate["accuracy_low"]) >= 0.87, "{accurate:?}");
        assert_eq!(accurate["limit_accuracy"], "0.87");
        assert_eq!(accurate["combination"].len(), 11);
        assert!(number(&accurate["latency_ns"]) > number(&any["latency_ns"]));
        assert_eq!(any["bandwidth_bps"], accurate["bandwidth_bps"]);
    }
    let refused = output(&mut sweep(&["--accuracy", "0.9"]));
    assert_fails(&refused, 8, &["the best that is reachable is 0.8786"]);
}

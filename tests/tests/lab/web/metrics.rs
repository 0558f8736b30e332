//! Metrics are those of the lab, in Prometheus's words.

use std::collections::BTreeSet;
use std::process::Command;

use layerlab_profiles::document::Profile;
use layerlab_tests::farm::Farm;
use layerlab_tests::lab::{Lab, simulating};
use layerlab_tests::web_lab::profile_of_run;
use layerlab_tests::{device, in_real_time, succeed};

use super::super::{EACH, LONG, job, wait_for_job};
use super::{lab_with, models, on_the_web, opened, started};

/// The value of a sample, if it is there.
fn value(metrics: &str, sample: &str) -> Option<f64> {
    let mut samples = metrics.lines().filter_map(|line| line.rsplit_once(' '));
    let (_, value) = samples.find(|(named, _)| *named == sample)?;
    Some(value.parse().expect("a number"))
}

/// That the text is what Prometheus takes: each family with a word of help and its type, by whose rules it is named, and no sample
/// twice.
fn check_format(metrics: &str) {
    let (mut help, mut family, mut kind) = ("", "", "");
    let (mut families, mut samples) = (BTreeSet::new(), BTreeSet::new());
    for line in metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            (help, _) = rest.split_once(' ').expect("a name and a sentence");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            (family, kind) = rest.split_once(' ').expect("a name and a type");
            assert_eq!(help, family);
            assert!(families.insert(family), "{family} comes twice");
            assert!(["gauge", "counter", "summary"].contains(&kind), "{line}");
            assert_eq!(family.ends_with("_total"), kind == "counter", "{line}");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').expect("a sample and its value");
        let name = sample.split('{').next().unwrap_or_default();
        let own = match kind {
            "summary" => name.strip_suffix("_sum").or(name.strip_suffix("_count")),
            _ => Some(name),
        };
        assert_eq!(own, Some(family), "{line}");
        assert!(samples.insert(sample), "{sample} comes twice");
        value.parse::<f64>().expect("a number");
    }
}

/// Every sample of a counter or a summary, and what it was.
fn counters(metrics: &str) -> Vec<(&str, f64)> {
    let lines = metrics.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.filter_map(|line| line.rsplit_once(' '));
    let counts = |name: &str| {
        ["_total", "_sum", "_count"]
            .iter()
            .any(|end| name.ends_with(end))
    };
    samples
        .filter(|(sample, _)| sample.split('{').next().is_some_and(counts))
        .map(|(sample, value)| (sample, value.parse().expect("a number")))
        .collect()
}

#[test]
fn metrics_are_those_of_the_lab() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    nobody.get("/metrics").is_problem(401, "");
    let viewer = nobody.with_role(&lab, "viewer");
    let before = viewer.get("/metrics").body;
    check_format(&before);
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    let metrics = viewer.get("/metrics");
    let kind = metrics.header("content-type");
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let metrics = metrics.body;
    check_format(&metrics);
    for line in [
        "layerlab_ready 1",
        "layerlab_devices{state=\"busy\"} 0",
        "layerlab_jobs{state=\"done\"} 1",
        "layerlab_runs{state=\"done\"} 2",
        "layerlab_events_total{kind=\"published\"} 2",
        "layerlab_blocks_rejected_total{reason=\"throttling\"} 0",
        "layerlab_link_failures_total{rung=\"reboot\"} 0",
    ] {
        assert!(
            metrics.lines().any(|it| it == line),
            "{line} is not in {metrics}"
        );
    }
    assert!(
        metrics.contains("device=\"mate10pro\",simulated=\"true\""),
        "{metrics}"
    );
    for (sample, count) in counters(&before) {
        assert!(
            value(&metrics, sample) >= Some(count),
            "{sample} became less: {metrics}"
        );
    }
    for grown in [
        "layerlab_decision_seconds_count",
        "layerlab_decision_seconds_sum",
        "layerlab_device_busy_seconds_total{device=\"mate10pro\"}",
        "layerlab_device_busy_seconds_total{device=\"oneplus7\"}",
    ] {
        assert!(
            value(&metrics, grown) > value(&before, grown),
            "{grown}: {metrics}"
        );
    }
    // What a device was at work is part of what its run took.
    let runs = lab.kept().runs;
    let busy = runs.values().map(|run| run.spent.busy_ms).sum::<u64>() as f64 / 1e3;
    let told: f64 = ["mate10pro", "oneplus7"]
        .map(|name| format!("layerlab_device_busy_seconds_total{{device=\"{name}\"}}"))
        .iter()
        .filter_map(|sample| value(&metrics, sample))
        .sum();
    assert!((told - busy).abs() < 0.01, "{told} is not {busy}");
    // Nothing is behind where nothing runs.
    assert!(
        !metrics.contains("layerlab_journal_lag_seconds{"),
        "{metrics}"
    );
}

#[test]
fn what_grafana_and_alerts_ask_for_is_there() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let metrics = nobody.with_role(&lab, "viewer").get("/metrics").body;
    let families = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    let families: BTreeSet<String> = families
        .flat_map(|family| match family.split_once(' ') {
            Some((name, "summary")) => vec![format!("{name}_sum"), format!("{name}_count")],
            Some((name, _)) => vec![name.to_owned()],
            None => panic!("{family} has no type"),
        })
        .collect();
    let folder = layerlab_tests::file("../docs/monitoring");
    for file in ["grafana.json", "alerts.yml"] {
        let asked = std::fs::read_to_string(folder.join(file)).expect("it is there");
        let words = asked.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        let names: BTreeSet<&str> = words.filter(|it| it.starts_with("layerlab_")).collect();
        assert!(!names.is_empty(), "{file}");
        for name in names {
            assert!(families.contains(name), "{file} asks for {name}");
        }
    }
}

#[test]
fn rejected_blocks_are_those_of_the_published_profile() {
    let lab = lab_with(&device("heats"));
    let (_daemon, viewer) = opened(&lab);
    let hot = "samples = 30\ngap-us = 0\n";
    lab.submit(&job("yolo-small", &(EACH.to_owned() + hot)));
    wait_for_job(&lab);
    let profile = Profile::read(&profile_of_run(&lab, 1)).expect("a profile");
    let metrics = viewer.get("/metrics").body;
    let mut all = 0;
    for reason in [
        "sentinel-moved",
        "throttling",
        "clock-cap-changed",
        "disturbed",
    ] {
        let blocks = profile.blocks.iter().filter_map(|block| block.rejection);
        let rejected = blocks.filter(|why| why.name() == reason).count();
        let sample = format!("layerlab_blocks_rejected_total{{reason=\"{reason}\"}}");
        assert_eq!(value(&metrics, &sample), Some(rejected as f64), "{sample}");
        all += rejected;
    }
    assert!(all > 0, "it does not heat");
}

/// The processes that a process has started itself.
fn children(parent: u32) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("Linux");
    let names = processes.filter_map(|process| process.ok()?.file_name().into_string().ok());
    let is_child = |process: &String| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        let told = format!("PPid:\t{parent}");
        status.is_ok_and(|status| status.lines().any(|line| line == told))
    };
    names.filter(is_child).collect()
}

#[test]
fn a_journal_of_which_nothing_comes_is_further_and_further_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let slow = folder.path().join("slow.toml");
    std::fs::write(&slow, in_real_time("noisy")).expect("room");
    let lab = lab_with(&slow);
    let (daemon, viewer) = opened(&lab);
    let sample = format!(
        "layerlab_journal_lag_seconds{{device={:?}}}",
        slow.display().to_string()
    );
    let lag = || value(&viewer.get("/metrics").body, &sample);
    lab.submit(&job("alexnet", LONG));
    lab.wait_for("a journal that is followed", || {
        lag().is_some_and(|lag| lag < 1.0)
    });
    let agents = children(daemon.id());
    assert!(!agents.is_empty(), "{}", lab.log());
    succeed(Command::new("kill").arg("-STOP").args(&agents));
    lab.wait_for("a journal that is behind", || {
        lag().is_some_and(|lag| lag > 2.0)
    });
    succeed(Command::new("kill").arg("-CONT").args(&agents));
    lab.wait_for("a journal that was caught up with", || {
        lag().is_some_and(|lag| lag < 1.0)
    });
}

#[test]
fn failures_of_links_are_counted_by_what_was_tried_next() {
    let Some(farm) = Farm::new() else { return };
    let phones = [farm.phone("P1")];
    let agent = farm.path("dies");
    std::fs::write(&agent, "#!/system/bin/sh\nexit 1\n").expect("room");
    let configuration = simulating(&phones, &device("noisy"));
    let configuration = configuration.replace("[phones]\n", "[phones]\nreboot = false\n")
        + "[attempts]\nper-run = 1\n[web]\nlisten = \"127.0.0.1:0\"\n";
    let lab = Lab::new(&configuration)
        .with_phones(&farm)
        .with_agent(&agent);
    let (_daemon, viewer) = opened(&lab);
    lab.submit(&job("alexnet", "[[devices]]\nserial = \"P1\"\n"));
    let waited = lab.run(&["job", "wait", "1", "--timeout", "3m"]);
    assert_eq!(waited.status.code(), Some(4), "{}", lab.log());
    let metrics = viewer.get("/metrics").body;
    let count = |rung: &str| {
        value(
            &metrics,
            &format!("layerlab_link_failures_total{{rung={rung:?}}}"),
        )
    };
    // Each attempt climbs the whole ladder of an agent that fails, on a phone that must not be rebooted.
    assert!(count("given-up") >= Some(1.0), "{metrics}");
    for rung in ["retry", "restart-agent", "reconnect"] {
        assert_eq!(count(rung), count("given-up"), "{rung}: {metrics}");
    }
    for rung in ["reboot", "restart-server"] {
        assert_eq!(count(rung), Some(0.0), "{rung}: {metrics}");
    }
}

//! The stream of events is whole and in order, for whoever comes back as well.

use serde_json::Value;

use super::super::{EACH, job, wait_for_job};
use super::{models, on_the_web, started};
use layerlab_tests::web::WebClient;

fn numbers(events: &[(i64, Value)]) -> Vec<i64> {
    events.iter().map(|(number, _)| *number).collect()
}

#[test]
fn who_comes_back_misses_nothing_also_of_a_daemon_that_was_killed() {
    let lab = on_the_web(&models());
    let (daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    let mut stream = viewer.events(0);
    let mut seen = stream.until("daemon-started");
    lab.submit(&job("alexnet", EACH));
    seen.extend(stream.until("started"));
    // Nobody listens while most of it happens.
    drop(stream);
    wait_for_job(&lab);
    let after = seen.last().expect("events").0;
    let mut stream = viewer.events(after);
    seen.extend(stream.until("job-ended"));
    daemon.kill();
    seen.extend(std::iter::from_fn(|| stream.next_event()));
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let again = WebClient::of(&lab).with_token_of(&viewer);
    let after = seen.last().expect("events").0;
    seen.extend(again.events(after).until("daemon-started"));
    let expected: Vec<i64> = (1..=seen.len() as i64).collect();
    assert_eq!(numbers(&seen), expected);
    assert!(
        seen.iter()
            .all(|(number, event)| event["number"] == *number)
    );
    let published: Vec<&Value> = seen
        .iter()
        .filter(|(_, event)| event["kind"] == "published")
        .map(|(_, event)| &event["run"])
        .collect();
    assert_eq!(published.len(), 2, "{seen:?}");
}

#[test]
fn a_stream_ends_with_its_token_and_with_the_daemon() {
    let lab = on_the_web(&models());
    let (daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    let mut stream = viewer.events(0);
    stream.until("daemon-started");
    lab.succeed(&["token", "revoke", "the.viewer"]);
    lab.succeed(&["reserve", "mate10pro", "--until", "8h"]);
    let rest: Vec<_> = std::iter::from_fn(|| stream.next_event()).collect();
    let is_told = rest.iter().any(|(_, event)| event["kind"] == "reserved");
    assert!(!is_told, "{rest:?}");
    let operator = nobody.with_role(&lab, "operator");
    let mut stream = operator.events(0);
    stream.until("reserved");
    daemon.stop();
    while stream.next_event().is_some() {}
}

#[test]
fn a_stream_begins_where_it_is_told_to() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    nobody.get("/api/v1/events").is_problem(401, "");
    let wrong = [("last-event-id", "x")];
    viewer
        .get_with("/api/v1/events", &wrong)
        .is_problem(400, "Last-Event-ID");
    viewer
        .get("/api/v1/events?after=x")
        .is_problem(400, "parameters");
    // A number from before the store was made anew: what is new is told.
    let mut stream = viewer.events(1_000_000);
    lab.succeed(&["reserve", "mate10pro", "--until", "8h"]);
    let (number, event) = stream.next_event().expect("an event");
    assert_eq!(event["kind"], "reserved");
    assert_eq!(number, lab.kept().last_event);
}

#[test]
fn metrics_are_those_of_the_lab() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    nobody.get("/metrics").is_problem(401, "");
    let viewer = nobody.with_role(&lab, "viewer");
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    let metrics = viewer.get("/metrics");
    assert!(
        metrics
            .header("content-type")
            .starts_with("text/plain; version=0.0.4")
    );
    for line in [
        "layerlab_ready 1",
        "layerlab_devices{state=\"busy\"} 0",
        "layerlab_jobs{state=\"done\"} 1",
        "layerlab_runs{state=\"done\"} 2",
        "layerlab_events_total{kind=\"published\"} 2",
    ] {
        assert!(
            metrics.body.lines().any(|it| it == line),
            "{line} is not in {}",
            metrics.body
        );
    }
    assert!(
        metrics
            .body
            .contains("device=\"mate10pro\",simulated=\"true\""),
        "{}",
        metrics.body
    );
    let described = |line: &str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        metrics.body.contains(&format!("# TYPE {name} "))
    };
    let mut samples = metrics.body.lines().filter(|line| !line.starts_with('#'));
    assert!(samples.all(described), "{}", metrics.body);
    for file in ["grafana.json", "alerts.yml"] {
        let asked = std::fs::read_to_string(file_of_docs(file)).expect("it is there");
        let words = asked.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        let names: Vec<&str> = words.filter(|it| it.starts_with("layerlab_")).collect();
        assert!(!names.is_empty(), "{file}");
        for name in names {
            let help = format!("# HELP {name} ");
            assert!(metrics.body.contains(&help), "{file} asks for {name}");
        }
    }
}

fn file_of_docs(name: &str) -> std::path::PathBuf {
    layerlab_tests::file("../docs/monitoring").join(name)
}

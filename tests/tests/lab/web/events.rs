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

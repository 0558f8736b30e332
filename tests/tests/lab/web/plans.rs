//! What the explorer and plans say over the web is what the time model and the command line say.

use layerlab_profiles::document::Profile;
use layerlab_tests::web::WebClient;
use layerlab_tests::web_lab::{predicted, profile_of_run, put_one_with_accuracy};
use serde_json::{Value, json};

use super::super::{job, wait_for_job};
use super::{models, on_the_web, started};

const ONE: &str = "[[devices]]\nserial = \"mate10pro\"\n[measure]\ndesign = \"local\"\n";

fn explored(client: &WebClient, placement: &str) -> Value {
    let answered = client.get(&format!("/api/v1/profiles/1/placements/{placement}"));
    assert_eq!(answered.status, 200, "{answered:?}");
    answered.json()
}

#[test]
fn a_placement_takes_what_the_time_model_says() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    lab.submit(&job("alexnet", ONE));
    wait_for_job(&lab);
    let folder = profile_of_run(&lab, 1);
    let layers = Profile::read(&folder).expect("a profile").layers.len();
    for placement in [
        "0".repeat(layers),
        "1".repeat(layers),
        "01101110010"[..layers].to_owned(),
    ] {
        let answer = explored(&viewer, &placement);
        let expected = predicted(&folder, &placement);
        assert_eq!(answer["time_ns"], expected.total().as_nanos(), "{answer}");
        assert_eq!(
            answer["transfer_ns"],
            expected.transfer.as_nanos(),
            "{answer}"
        );
        assert_eq!(
            answer["processors"][0]["compute_ns"],
            expected.on(0).as_nanos(),
            "{answer}"
        );
        assert_eq!(answer["simulated"], true);
        assert!(answer["accuracy"].is_null(), "{answer}");
        let why = answer["accuracy_unknown"].as_str().expect("a sentence");
        assert!(why.contains("was not measured"), "{why}");
    }
    let curve = viewer.get("/api/v1/profiles/1/curve").json();
    assert_eq!(curve["points"], json!([]), "{curve}");
    let why = curve["unknown"].as_str().expect("a sentence");
    assert!(why.contains("was not measured"), "{why}");
    // The page says so, and leads to the fastest placement, which no other is as fast as.
    let page = viewer.get("/profiles/1/explore").body;
    assert!(page.contains("was not measured"), "{page}");
    let fastest = page.split("The fastest</td>").nth(1).expect("it is named");
    let fastest = fastest.split("?placement=").nth(1).expect("a link");
    let fastest = &fastest[..layers];
    let time = |placement: &str| {
        explored(&viewer, placement)["time_ns"]
            .as_i64()
            .expect("a time")
    };
    for layer in 0..layers {
        let moved = match &fastest[layer..=layer] {
            "0" => "1",
            _ => "0",
        };
        let mut other = fastest.to_owned();
        other.replace_range(layer..=layer, moved);
        assert!(time(fastest) <= time(&other), "{fastest} {other}");
    }
    let path = |placement: &str| format!("/api/v1/profiles/1/placements/{placement}");
    viewer.get(&path("01")).is_problem(422, "11 layers");
    viewer
        .get(&path("22222222222"))
        .is_problem(422, "no processor 2");
    viewer
        .get(&path("..%2f.."))
        .is_problem(422, "cannot be read");
    viewer
        .get("/api/v1/profiles/9/placements/0")
        .is_problem(404, "run 9");
    let goal = json!({ "run": 1, "goal": "max-accuracy", "time_ns": 1_500_000 });
    viewer
        .post("/api/v1/plan", "application/json", &goal.to_string())
        .is_problem(422, "no measured combinations");
}

/// The curve ascends, its points are what the explorer says of them, and one of them is as fast and as accurate as the plan.
fn is_on_or_below_the_curve(client: &WebClient, plan: &Value) {
    let curve = client.get("/api/v1/profiles/1/curve").json();
    assert!(curve["unknown"].is_null(), "{curve}");
    assert_eq!(curve["simulated"], true);
    let points = curve["points"].as_array().expect("points");
    let numbers = |point: &Value| {
        let accuracy = point["accuracy"]["value"]
            .as_f64()
            .or(point["accuracy"].as_f64());
        (
            point["time_ns"].as_i64().expect("a time"),
            accuracy.expect("an accuracy"),
        )
    };
    let all: Vec<(i64, f64)> = points.iter().map(numbers).collect();
    assert!(all.len() > 3, "{curve}");
    assert!(
        all.windows(2)
            .all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1),
        "{all:?}"
    );
    let (time, accuracy) = numbers(plan);
    assert!(
        all.iter().any(|one| one.0 <= time && one.1 >= accuracy),
        "{plan}: {all:?}"
    );
    for point in [&points[0], &points[points.len() - 1]] {
        let answer = explored(client, point["placement"].as_str().expect("digits"));
        assert_eq!(answer["time_ns"], point["time_ns"], "{answer}");
        assert_eq!(answer["time_ci95_ns"], point["time_ci95_ns"], "{answer}");
        assert_eq!(answer["accuracy"], point["accuracy"], "{answer}");
    }
}

#[test]
fn a_plan_is_that_of_the_command_line() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    lab.submit(&job("alexnet", ONE));
    wait_for_job(&lab);
    // A profile with accuracy in the place of the one that was just published: learning it anew would take minutes.
    let folder = profile_of_run(&lab, 1);
    put_one_with_accuracy(&folder, "oneplus7/vocnet-mini");
    for (goal, body) in [
        (
            ["max-accuracy", "--time", "1500us"],
            json!({ "run": 1, "goal": "max-accuracy", "time_ns": 1_500_000 }),
        ),
        (
            ["min-time", "--accuracy", "0.8"],
            json!({ "run": 1, "goal": "min-time", "accuracy": 0.8 }),
        ),
    ] {
        let folder = folder.to_str().expect("UTF-8");
        let line = [&["plan"], &goal[..], &["--json", "--no-cache", folder]].concat();
        let command: Value = serde_json::from_str(&lab.succeed(&line)).expect("JSON");
        let answered = viewer.post("/api/v1/plan", "application/json", &body.to_string());
        assert_eq!(answered.status, 200, "{answered:?}");
        assert_eq!(answered.json(), command);
        let plan = &command["outcomes"][0]["plan"];
        let placement = plan["combination"].as_str().expect("digits");
        // What was learnt for the plan is known to the explorer.
        let answer = explored(&viewer, placement);
        assert_eq!(answer["time_ns"], plan["time_ns"], "{answer}");
        assert_eq!(answer["time_ci95_ns"], plan["time_ci95_ns"], "{answer}");
        assert_eq!(answer["accuracy"]["value"], plan["accuracy"], "{answer}");
        is_on_or_below_the_curve(&viewer, plan);
    }
    let page = viewer.get("/profiles/1/explore").body;
    let curve = viewer.get("/api/v1/profiles/1/curve").json();
    for point in curve["points"].as_array().expect("points") {
        let link = format!(
            "href=\"/profiles/1/explore?placement={}\"",
            point["placement"].as_str().expect("digits")
        );
        assert!(page.contains(&link), "{link}: {page}");
    }
    for (body, said) in [
        (json!({ "run": 1, "goal": "max-accuracy" }), "time_ns"),
        (
            json!({ "run": 1, "goal": "max-accuracy", "time_ns": 0 }),
            "time limit is 0",
        ),
        (
            json!({ "run": 1, "goal": "min-time", "accuracy": 2.0 }),
            "fraction",
        ),
        (json!({ "run": 1, "goal": "fastest" }), "fastest"),
    ] {
        viewer
            .post("/api/v1/plan", "application/json", &body.to_string())
            .is_problem(422, said);
    }
}

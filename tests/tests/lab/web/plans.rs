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

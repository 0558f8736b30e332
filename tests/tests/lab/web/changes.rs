//! What is changed over the web is changed as commands change it, and the event log says by whom.

use layerlab_lab::record::{JobState, RunState};
use layerlab_tests::web::WebClient;
use serde_json::json;

use super::super::wait_for_job;
use super::{models, on_the_web, started};

const TOML: &str = "application/toml";
const JSON: &str = "application/json";

fn change(client: &WebClient, path: &str) {
    let answered = client.post(path, JSON, "");
    assert_eq!(answered.status, 204, "{answered:?}");
}

#[test]
fn a_job_is_submitted_paused_resumed_cancelled_and_tried_again() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let operator = nobody.with_role(&lab, "operator");
    let file = "name = \"by web\"\nmodels = [\"alexnet.onnx\"]\n[[devices]]\nserial = \"mate10pro\"\n[measure]\ndesign = \"local\"\nsamples = 400\n";
    let submitted = operator.post("/api/v1/jobs", TOML, file);
    assert_eq!(submitted.status, 201, "{submitted:?}");
    assert_eq!(submitted.json()["job"], 1);
    change(&operator, "/api/v1/jobs/1/pause");
    assert_eq!(lab.kept().jobs[&1].state, JobState::Paused);
    change(&operator, "/api/v1/jobs/1/resume");
    assert_eq!(lab.kept().jobs[&1].state, JobState::Open);
    change(&operator, "/api/v1/jobs/1/cancel");
    lab.wait_for("a run that was cancelled", || {
        lab.kept().runs[&1].state == RunState::Cancelled
    });
    operator
        .post("/api/v1/jobs/1/pause", JSON, "")
        .is_problem(409, "cancelled");
    // As long as the run is leaving its device, it cannot be tried again.
    lab.wait_for("a job that is tried again", || {
        let path = "/api/v1/jobs/1/retry";
        operator.post(path, JSON, "").status == 204
    });
    let shown = operator.get("/api/v1/jobs/1").json();
    let events = shown["events"].as_array().expect("events").iter();
    let asked: Vec<&str> = events
        .filter_map(|event| {
            event["what"]
                .as_str()?
                .strip_prefix("the.operator asked over the web to ")
        })
        .collect();
    assert_eq!(asked, ["submit", "pause", "resume", "cancel", "retry"]);
    operator
        .post("/api/v1/jobs/7/cancel", JSON, "")
        .is_problem(404, "7");
}

#[test]
fn a_job_in_json_is_the_same_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let hostile = "<script>.onnx";
    std::fs::copy(models().join("alexnet.onnx"), folder.path().join(hostile)).expect("room");
    let lab = on_the_web(folder.path());
    let (_daemon, nobody) = started(&lab);
    let operator = nobody.with_role(&lab, "operator");
    let job = json!({
        "name": "<script>alert(1)</script>",
        "models": [hostile],
        "devices": [{ "serial": "mate10pro" }],
        "measure": { "design": "local" },
    });
    let submitted = operator.post("/api/v1/jobs", JSON, &job.to_string());
    assert_eq!(submitted.status, 201, "{submitted:?}");
    let again = operator.post("/api/v1/jobs", JSON, &job.to_string());
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!(again.json()["job"], 1);
    wait_for_job(&lab);
    // Whatever it is called, no browser takes it for a page.
    let jobs = operator.get("/api/v1/jobs?all=true");
    assert_eq!(jobs.json()["items"][0]["name"], job["name"]);
    assert_eq!(jobs.header("content-type"), JSON);
    assert_eq!(jobs.header("x-content-type-options"), "nosniff");
    assert!(
        jobs.header("content-security-policy")
            .starts_with("default-src 'none'")
    );
    for (key, file) in [
        ("models", "models = [\"../alexnet.onnx\"]"),
        ("models", "models = [\"/etc/passwd\"]"),
        ("models", "models = [\"..\"]"),
        ("models", "models = [\"./<script>.onnx\"]"),
        (
            "models",
            "models = [{ file = \"<script>.onnx\", quantised = \"a/b\" }]",
        ),
        (
            "profiles",
            "models = [\"<script>.onnx\"]\nprofiles = \"/tmp\"",
        ),
        (
            "accuracy.set",
            "models = [\"<script>.onnx\"]\naccuracy.set = \"/etc/passwd\"",
        ),
    ] {
        let job = format!("{file}\n[[devices]]\nserial = \"mate10pro\"\n");
        operator
            .post("/api/v1/jobs", TOML, &job)
            .is_problem(422, &format!("`{key}`"));
    }
    operator
        .post("/api/v1/jobs", TOML, "models = ")
        .is_problem(422, "line 1");
    operator
        .post("/api/v1/jobs", JSON, "{")
        .is_problem(422, "read");
    operator
        .post("/api/v1/jobs", "text/plain", "x")
        .is_problem(415, "TOML or JSON");
}

#[test]
fn devices_are_reserved_and_left_alone() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let operator = nobody.with_role(&lab, "operator");
    let reservation =
        json!({ "device": "mate10pro", "until": "2100-01-01T00:00:00Z", "note": "a demo" });
    let reserved = operator.post("/api/v1/reservations", JSON, &reservation.to_string());
    assert_eq!(reserved.status, 204, "{reserved:?}");
    assert!(lab.succeed(&["reserve", "--list"]).contains("a demo"));
    let listed = operator.get("/api/v1/reservations").json();
    assert_eq!(listed["items"][0]["device"], "mate10pro");
    assert_eq!(
        operator.delete("/api/v1/reservations/mate10pro").status,
        204
    );
    operator
        .delete("/api/v1/reservations/mate10pro")
        .is_problem(409, "not reserved");
    operator
        .delete("/api/v1/reservations/..%2f..%2fx")
        .is_problem(404, "");
    let unknown = json!({ "device": "nobody", "until": "2100-01-01T00:00:00Z" });
    operator
        .post("/api/v1/reservations", JSON, &unknown.to_string())
        .is_problem(404, "nobody");
    let quarantine = json!({ "device": "oneplus7", "reason": "it sulks", "for": "2h" });
    let quarantined = operator.post("/api/v1/quarantine", JSON, &quarantine.to_string());
    assert_eq!(quarantined.status, 201, "{quarantined:?}");
    assert!(lab.succeed(&["quarantine", "list"]).contains("it sulks"));
    let listed = operator.get("/api/v1/quarantine").json();
    assert_eq!(listed["items"][0]["reason"], "it sulks");
    assert_eq!(operator.delete("/api/v1/quarantine/oneplus7").status, 204);
    operator
        .delete("/api/v1/quarantine/oneplus7")
        .is_problem(409, "not in quarantine");
    let forever = json!({ "device": "oneplus7", "reason": "it sulks", "for": "a while" });
    operator
        .post("/api/v1/quarantine", JSON, &forever.to_string())
        .is_problem(422, "`for`");
}

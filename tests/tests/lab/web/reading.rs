//! What is read over the web is what the lab knows.

use layerlab_tests::web::WebClient;
use serde_json::{Value, json};

use super::super::{EACH, job, wait_for_job};
use super::{models, on_the_web, started};

fn items(client: &WebClient, path: &str) -> Vec<Value> {
    let answered = client.get(path);
    assert_eq!(answered.status, 200, "{answered:?}");
    let list = answered.json();
    list["items"].as_array().expect("a list").clone()
}

#[test]
fn a_job_its_runs_and_its_profiles_are_read() {
    let lab = on_the_web(&models());
    let (daemon, nobody) = started(&lab);
    assert_eq!(nobody.get("/healthz").body, "ok\n");
    assert_eq!(nobody.get("/readyz").body, "ready\n");
    let viewer = nobody.with_role(&lab, "viewer");
    let devices = items(&viewer, "/api/v1/devices");
    let names: Vec<&Value> = devices.iter().map(|device| &device["name"]).collect();
    assert_eq!(names, ["mate10pro", "oneplus7"]);
    assert!(devices.iter().all(|device| device["simulated"] == true));
    assert_eq!(items(&viewer, "/api/v1/jobs"), [json!(null); 0]);
    viewer.get("/api/v1/jobs/1").is_problem(404, "no job 1");
    viewer.get("/api/v1/runs/1").is_problem(404, "no run 1");
    viewer
        .get("/api/v1/profiles/1")
        .is_problem(404, "no profile");
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    assert_eq!(items(&viewer, "/api/v1/jobs"), [json!(null); 0]);
    let jobs = items(&viewer, "/api/v1/jobs?all=true");
    assert_eq!(jobs.len(), 1);
    assert_eq!(
        [&jobs[0]["state"], &jobs[0]["done"]],
        [&json!("done"), &json!(2)]
    );
    let shown = viewer.get("/api/v1/jobs/1").json();
    assert_eq!(shown["all_runs"], 2);
    let events = shown["events"].as_array().expect("events");
    assert_eq!(events[0]["what"], "submitted");
    let run = viewer.get("/api/v1/runs/1").json();
    assert_eq!(run, shown["runs"][0]);
    assert_eq!([&run["simulated"], &run["published"]], [true, true]);
    assert_eq!(items(&viewer, "/api/v1/profiles").len(), 2);
    let of_device = items(&viewer, "/api/v1/profiles?model=alexnet&device=mate10pro");
    assert_eq!(of_device.len(), 1);
    assert_eq!(of_device[0]["simulated"], true);
    let past = items(&viewer, "/api/v1/profiles?until=2020-01-01T00:00:00Z");
    assert_eq!(past.len(), 0);
    assert_eq!(items(&viewer, "/api/v1/profiles?page=2").len(), 0);
    let report = viewer.get("/api/v1/report").json();
    let headline = report["headline"].as_str().expect("a sentence");
    assert!(headline.contains("2"), "{headline}");
    assert_eq!(report["headline"], report["report"]["headline"]);

    // The files are those of the published folder, and never change.
    let run = of_device[0]["run"].as_i64().expect("a number");
    let folder = lab.kept().runs[&run]
        .profile
        .clone()
        .expect("it is published");
    let profile = viewer.get(&format!("/api/v1/profiles/{run}")).json();
    let entries = std::fs::read_dir(&folder)
        .expect("it is there")
        .map(|entry| entry.expect("a file"));
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    assert_eq!(profile["files"], json!(names));
    let path = format!("/api/v1/profiles/{run}/files/layers.csv");
    let file = viewer.get(&path);
    let published = std::fs::read_to_string(folder.join("layers.csv")).expect("a table");
    assert_eq!(file.body, published);
    let tag = file.header("etag");
    let again = viewer.get_with(&path, &[("if-none-match", tag)]);
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let other = viewer.get_with(&path, &[("if-none-match", "\"other\"")]);
    assert_eq!(other.status, 200);
    for trick in [
        "..%2f..%2f..%2f..%2fconfig.toml",
        "%2e%2e",
        "..%5cprofile.json",
        "%2fetc%2fpasswd",
        "layers.csv%00",
        "",
    ] {
        let answered = viewer.get(&format!("/api/v1/profiles/{run}/files/{trick}"));
        answered.is_problem(404, "");
    }
    daemon.stop();
}

#[test]
fn what_cannot_be_read_is_a_problem_document() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    viewer.get("/nothing").is_problem(404, "openapi.json");
    viewer.get("/api/v1/jobs/none").is_problem(404, "");
    viewer.get("/api/v1/jobs?page=x").is_problem(400, "page");
    viewer.get("/api/v1/jobs?pge=1").is_problem(400, "pge");
    viewer
        .get("/api/v1/runs/99999999999999999999")
        .is_problem(404, "");
    viewer
        .get("/api/v1/report?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z")
        .is_problem(400, "before it begins");
    viewer.delete("/api/v1/jobs").is_problem(405, "method");
    let described = nobody.get("/api/v1/openapi.json");
    assert_eq!(described.status, 200);
    assert!(described.json()["paths"]["/api/v1/devices"]["get"].is_object());
}

#[test]
fn text_is_compressed_for_whoever_wants_it_and_an_archive_may_be_kept() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let token = lab.succeed(&["token", "create", "ada", "--role", "viewer"]);
    let head = |path: &str, headers: &str| {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n{headers}\r\n",
            nobody.address,
            token.trim()
        );
        let said = nobody.said_to(request.as_bytes());
        let head = said.split("\r\n\r\n").next().unwrap_or_default();
        head.to_owned()
    };
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    let wanted = "Accept-Encoding: gzip\r\n";
    for path in ["/api/v1/devices", "/api/v1/profiles/1/files/layers.csv"] {
        let compressed = head(path, wanted);
        assert!(
            compressed.contains("content-encoding: gzip"),
            "{compressed}"
        );
        assert!(!head(path, "").contains("content-encoding"), "{path}");
    }
    let archive = "/api/v1/profiles/1/archive";
    let said = head(archive, wanted);
    assert!(said.contains("content-type: application/zip"), "{said}");
    assert!(!said.contains("content-encoding"), "{said}");
    let tag = said.lines().find_map(|line| line.strip_prefix("etag: "));
    let known = format!("If-None-Match: {}\r\n", tag.expect("a tag"));
    assert!(head(archive, &known).starts_with("HTTP/1.1 304"));
    assert!(head("/api/v1/profiles/2/archive", &known).starts_with("HTTP/1.1 200"));
    nobody.get(archive).is_problem(401, "");
}

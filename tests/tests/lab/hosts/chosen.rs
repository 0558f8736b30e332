//! Jobs that choose hosts.

use layerlab_tests::postgres::postgres;
use layerlab_tests::web::WebClient;

use super::super::{EACH, SIMULATED, job};
use super::{host, racks};
use layerlab_tests::lab::Lab;

const TWICE: &str = "repeats = 2\n[[devices]]\nabi = \"x86_64\"\n[measure]\ndesign = \"local\"\n";

#[test]
fn a_job_waits_for_the_host_that_it_chooses_and_says_so() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path().to_str().expect("UTF-8");
    let [one, two] = racks(&url, shared);
    let second = two.daemon();
    two.wait_until_open();
    two.wait_for_devices(2);
    second.stop();
    let first = one.daemon();
    one.wait_until_open();
    one.wait_for_devices(4);
    let file = one.path("job.toml");
    std::fs::write(&file, job("alexnet", TWICE)).expect("room");
    let file = file.to_str().expect("UTF-8");
    let submitted = one.run(&["submit", file, "--host", "rack-2"]);
    assert!(submitted.status.success());
    assert_eq!(String::from_utf8_lossy(&submitted.stderr), "");
    let jobs = one.succeed(&["jobs"]);
    assert!(jobs.contains("host `rack-2`, which ended"), "{jobs}");
    let shown = one.succeed(&["job", "show", "1"]);
    let row = shown
        .lines()
        .find(|line| line.trim_start().starts_with("hosts "));
    assert!(row.is_some_and(|row| row.ends_with("rack-2")), "{shown}");

    let second = two.daemon();
    one.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    let by: Vec<_> = one.kept().runs.into_values().map(|run| run.host).collect();
    assert_eq!(by, [Some("rack-2".to_owned()), Some("rack-2".to_owned())]);

    let unknown = one.run(&["submit", file, "--host", "rack-9", "--host", "rack-1"]);
    assert!(unknown.status.success());
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    let warning = "warning: the lab has no host `rack-9` (it has rack-1, rack-2); start a daemon with that name";
    assert!(said.contains(warning), "{said}");
    let bad = one.run(&["submit", file, "--host", "rack 9"]);
    assert_eq!(bad.status.code(), Some(2));
    let said = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert!(said.contains("`rack 9` is no name of a host"), "{said}");
    second.stop();
    first.stop();
}

#[test]
fn a_lab_of_one_host_refuses_a_job_that_chooses_hosts() {
    let lab = Lab::new(SIMULATED);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    let file = lab.path("job.toml");
    std::fs::write(
        &file,
        job("alexnet", &format!("hosts = [\"rack-1\"]\n{EACH}")),
    )
    .expect("room");
    let refused = lab.run(&["submit", file.to_str().expect("UTF-8")]);
    assert_eq!(refused.status.code(), Some(3));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("this lab has one host") && said.contains("leave `hosts`"),
        "{said}"
    );
    assert_eq!(lab.kept().jobs.len(), 0);
    daemon.stop();
}

#[test]
fn a_job_over_the_web_chooses_hosts_too() {
    let Some(server) = postgres() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path().to_str().expect("UTF-8");
    let models = layerlab_tests::web_lab::models();
    let web = format!("[web]\nlisten = \"127.0.0.1:0\"\nmodels = {models:?}\n");
    let url = server.database();
    let one = super::host_with("rack-1", &url, shared, ["a", "b"], &web);
    let two = host("rack-2", &url, shared, ["c", "d"]);
    let (first, second) = (one.daemon(), two.daemon());
    for lab in [&one, &two] {
        lab.wait_until_open();
        lab.wait_for_devices(4);
    }
    let operator = WebClient::of(&one).with_role(&one, "operator");
    let form = operator.get("/jobs/new").body;
    assert!(form.contains("name=\"host\" value=\"rack-2\""), "{form}");
    let c = format!("{shared}/c.toml");
    let job = serde_json::json!({
        "models": ["alexnet.onnx"],
        "devices": [{ "serial": c }],
        "hosts": ["rack-1"],
        "measure": { "design": "local" },
    });
    let taken = operator.post("/api/v1/jobs", "application/json", &job.to_string());
    assert_eq!(taken.status, 201, "{taken:?}");
    assert_eq!(operator.get("/api/v1/jobs/1").json()["hosts"][0], "rack-1");
    let listed = operator.get("/api/v1/jobs").json();
    assert_eq!(
        listed["items"][0]["waiting_for"][0],
        "no device that it is for is on host `rack-1`"
    );
    let page = operator.get("/jobs/1").body;
    assert!(page.contains("<dt>On hosts</dt><dd>rack-1</dd>"), "{page}");
    second.stop();
    first.stop();
}

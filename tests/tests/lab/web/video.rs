//! Jobs of frames from elsewhere, and what the web says of them.

use layerlab_tests::elsewhere::Guest;
use layerlab_tests::lab::Lab;
use layerlab_tests::model;
use layerlab_tests::scenes::scenes;

use super::super::SIMULATED;
use super::started;

#[test]
fn a_job_of_frames_from_elsewhere_brings_its_set_and_is_no_profile() {
    let lab = Lab::new(&format!("{SIMULATED}[web]\nlisten = \"127.0.0.1:0\"\n"));
    let (_daemon, nobody) = started(&lab);
    let url = format!("http://{}", nobody.address);
    let guest = Guest::of(&url).with_role(&lab, "operator");
    let set = scenes(&guest.path(""), 4, &["--metric", "multi-label"]);
    let file = guest.path("night.toml");
    let text = format!(
        "models = [{:?}]\n[[devices]]\nserial = \"mate10pro\"\n[video]\nset = {set:?}\n",
        model("vocnet-mini")
    );
    std::fs::write(&file, text).expect("room");
    let path = file.to_str().expect("UTF-8");
    let said = guest.succeed(&["submit", "--wait", path]);
    assert!(said.contains("1 video measurement."), "{said}");
    assert!(
        said.contains("all video measurements are published"),
        "{said}"
    );
    let report = guest.succeed(&["report"]);
    assert!(
        report.starts_with("1 of 1 video measurement published"),
        "{report}"
    );

    let viewer = nobody.with_role(&lab, "viewer");
    let run = viewer.get("/api/v1/runs/1").json();
    let facts = (&run["kind"], &run["state"], &run["published"]);
    assert_eq!(facts, (&"video".into(), &"done".into(), &false.into()));
    assert_eq!(viewer.get("/api/v1/jobs/1").json()["kind"], "video");
    let profiles = viewer.get("/api/v1/profiles").json();
    assert_eq!(profiles["all"], 0, "{profiles}");
    viewer
        .get("/api/v1/profiles/1")
        .is_problem(404, "no profile");
    for page in ["/runs/1", "/jobs/1", "/report", "/jobs?all=true"] {
        let answered = viewer.get(page);
        assert_eq!(answered.status, 200, "{page}");
        let text = answered.body;
        assert!(!text.contains("/profiles/1"), "{page}: {text}");
        let folder = lab.data();
        assert!(
            !text.contains(folder.to_str().expect("UTF-8")),
            "{page}: {text}"
        );
        let is_told =
            page.starts_with("/jobs?") || text.to_lowercase().contains("video measurement");
        assert!(is_told, "{page}: {text}");
    }
}

//! Jobs of links from elsewhere, which are refused, and what the web says of those of the lab's own host.

use layerlab_edge::Token;
use layerlab_tests::elsewhere::Guest;
use layerlab_tests::lab::Lab;
use layerlab_tests::web::WebClient;

use super::super::links::{HOST, SOON, link, serve};

#[test]
fn a_link_is_no_profile_on_the_web_and_no_job_of_one_comes_over_it() {
    let models = tempfile::tempdir().expect("a folder");
    let web = format!(
        "[web]\nlisten = \"127.0.0.1:0\"\nmodels = {:?}\n",
        models.path()
    );
    let lab = Lab::new(&format!("{HOST}{web}"));
    let server = serve(&lab);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(1);
    let nobody = WebClient::of(&lab);
    let url = format!("http://{}", nobody.address);
    let guest = Guest::of(&url).with_role(&lab, "operator");
    let job = link(
        &lab,
        "host",
        "ethernet",
        &server.address().to_string(),
        SOON,
    );
    let file = guest.path("night.toml");
    std::fs::write(&file, &job).expect("room");
    let refused = "the server's secret stays on the lab's host";
    guest.fail(&["submit", file.to_str().expect("UTF-8")], 3, refused);
    let operator = nobody.with_role(&lab, "operator");
    // Not even one whose file is among those that jobs from the web may name.
    Token::read_or_make(&models.path().join("token")).expect("room");
    let named = job.replace(lab.path("token").to_str().expect("UTF-8"), "token");
    operator
        .post("/api/v1/jobs", "application/toml", &named)
        .is_problem(422, refused);
    assert!(lab.kept().jobs.is_empty());
    assert_eq!(server.connections(), 0);

    lab.submit(&job);
    lab.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    let viewer = nobody.with_role(&lab, "viewer");
    let run = viewer.get("/api/v1/runs/1").json();
    let facts = (&run["kind"], &run["state"], &run["published"]);
    assert_eq!(facts, (&"link".into(), &"done".into(), &false.into()));
    let names = (&run["link"], &run["model"]);
    assert_eq!(names, (&"lab".into(), &serde_json::Value::Null));
    let job = viewer.get("/api/v1/jobs/1").json();
    assert_eq!(
        (&job["kind"], &job["link"]),
        (&"link".into(), &"lab".into())
    );
    assert_eq!(job["models"].as_array().map(Vec::len), Some(0), "{job}");
    let profiles = viewer.get("/api/v1/profiles").json();
    assert_eq!(profiles["all"], 0, "{profiles}");
    viewer
        .get("/api/v1/profiles/1")
        .is_problem(404, "no profile");
    let secret = Token::read(&lab.path("token")).expect("ours").to_hex();
    for (page, told) in [
        ("/", "host"),
        ("/runs/1", "Link measurement"),
        ("/jobs/1", "the link lab to "),
        ("/report", "Mbit/s ("),
        ("/jobs?all=true", "1 of 1"),
        ("/profiles", "rofile"),
        ("/profiles/1", "no profile"),
        ("/calendar", "window"),
    ] {
        let answered = viewer.get(page);
        let expected = if page == "/profiles/1" { 404 } else { 200 };
        assert_eq!(answered.status, expected, "{page}");
        let text = answered.body;
        assert!(text.contains(told), "{page}: {text}");
        assert!(!text.contains("href=\"/profiles/1"), "{page}: {text}");
        assert!(!text.contains(&secret), "{page}: {text}");
        let folder = lab.data();
        assert!(
            !text.contains(folder.to_str().expect("UTF-8")),
            "{page}: {text}"
        );
    }
}

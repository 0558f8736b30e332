//! Pages: who logs in sees what the lab knows, and nothing that a name brings in runs.

use layerlab_tests::web::{Answered, WebClient};
use serde_json::json;

use super::super::{EACH, job, wait_for_job};
use super::{models, on_the_web, started};

const FORM: &str = "application/x-www-form-urlencoded";

/// The cookie that a login sets, as a browser sends it back.
fn cookie(answered: &Answered) -> String {
    let set = answered.header("set-cookie");
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(set.contains(attribute), "{set}");
    }
    set.split(';').next().unwrap_or_default().to_owned()
}

fn page(nobody: &WebClient, cookie: &str, path: &str) -> String {
    let answered = nobody.get_with(path, &[("cookie", cookie)]);
    assert_eq!(answered.status, 200, "{path}: {answered:?}");
    assert_eq!(answered.header("content-type"), "text/html; charset=utf-8");
    let policy = answered.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'"),
        "{policy}"
    );
    assert!(!policy.contains("unsafe"), "{policy}");
    // Nothing that this policy would refuse is on the page, and nothing comes from elsewhere.
    for refused in [
        "<style",
        " style=",
        "<script>",
        " onclick=",
        "http://",
        "https://",
    ] {
        assert!(
            !answered.body.contains(refused),
            "{path} has {refused}: {}",
            answered.body
        );
    }
    answered.body
}

#[test]
fn who_logs_in_sees_all_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let hostile = "<script>.onnx";
    std::fs::copy(models().join("alexnet.onnx"), folder.path().join(hostile)).expect("room");
    let lab = on_the_web(folder.path());
    let (_daemon, nobody) = started(&lab);
    let token = lab.succeed(&["token", "create", "wall", "--role", "operator"]);
    let wanted = nobody.get("/jobs?all=true");
    assert_eq!(wanted.status, 303);
    assert_eq!(wanted.header("location"), "/login?to=/jobs%3Fall%3Dtrue");
    assert_eq!(nobody.get("/login?to=/jobs").status, 200);
    let wrong = nobody.post("/login", FORM, "token=wrong&to=/jobs");
    assert_eq!(wrong.status, 401);
    assert!(
        wrong.body.contains("wrong, over or revoked"),
        "{}",
        wrong.body
    );
    let away = nobody.post(
        "/login",
        FORM,
        &format!("token={}&to=//evil.example", token.trim()),
    );
    assert_eq!((away.status, away.header("location")), (303, "/"));
    let cookie = cookie(&away);

    let job = json!({
        "name": "<img src=x>",
        "models": [hostile],
        "devices": [{ "serial": "mate10pro" }],
        "measure": { "design": "local" },
    });
    let operator = nobody.with_token(&token);
    let submitted = operator.post("/api/v1/jobs", "application/json", &job.to_string());
    assert_eq!(submitted.status, 201, "{submitted:?}");
    wait_for_job(&lab);
    let wall = page(&nobody, &cookie, "/");
    assert!(
        wall.contains("mate10pro") && wall.contains("oneplus7"),
        "{wall}"
    );
    assert!(wall.contains("live.js"), "{wall}");
    let jobs = page(&nobody, &cookie, "/jobs?all=true");
    assert!(jobs.contains("&lt;img src=x&gt;"), "{jobs}");
    for path in [
        "/jobs",
        "/jobs/1",
        "/runs/1",
        "/profiles",
        "/profiles/1",
        "/report",
    ] {
        let page = page(&nobody, &cookie, path);
        assert!(!page.contains("<img src=x>"), "{page}");
    }
    // Whatever is said of the simulated device says so.
    for path in [
        "/",
        "/jobs/1",
        "/runs/1",
        "/profiles",
        "/profiles/1",
        "/report",
    ] {
        let page = page(&nobody, &cookie, path);
        assert!(page.contains("simulated"), "{path}: {page}");
    }
    let profile = page(&nobody, &cookie, "/profiles/1");
    assert!(
        profile.contains("C1") && profile.contains("/profiles/1/explore"),
        "{profile}"
    );
    assert!(page(&nobody, &cookie, "/report").contains("/profiles/1"));
    let gone = nobody.get_with("/jobs/7", &[("cookie", &cookie)]);
    assert_eq!(gone.status, 404);
    assert!(gone.body.contains("there is no job 7"), "{}", gone.body);
    for asset in ["page.css", "web.css", "live.js", "explore.js"] {
        assert_eq!(
            nobody.get(&format!("/assets/{asset}")).status,
            200,
            "{asset}"
        );
    }
    nobody.get("/assets/..%2fCargo.toml").is_problem(404, "");
    // The cookie opens the stream that pages listen to, and is forgotten with the token.
    let left = nobody.post("/logout", FORM, "");
    assert!(left.header("set-cookie").contains("Max-Age=0"), "{left:?}");
    lab.succeed(&["token", "revoke", "wall"]);
    assert_eq!(nobody.get_with("/", &[("cookie", &cookie)]).status, 303);
}

#[test]
fn another_site_may_lead_here_and_do_nothing_else() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let from_elsewhere = |mode| [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", mode)];
    assert_eq!(
        nobody.get_with("/", &from_elsewhere("navigate")).status,
        303
    );
    nobody
        .get_with("/", &from_elsewhere("no-cors"))
        .is_problem(403, "another site");
}

#[test]
fn a_browser_is_told_on_a_page_what_a_program_is_told_in_a_document() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let viewer = nobody.with_role(&lab, "viewer");
    let browser = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    for (path, status, sentence) in [
        ("/nothing", 404, "there is nothing at this path"),
        ("/jobs/none", 404, "there is nothing at this path"),
        ("/runs/99999999999999999999", 404, "there is nothing"),
        ("/jobs?page=x", 400, "the parameters cannot be read"),
        ("/report?hours=-1", 400, "the parameters cannot be read"),
        ("/assets/none.css", 404, "there is no such file"),
    ] {
        let answered = viewer.get_with(path, &browser);
        assert_eq!(answered.status, status, "{path}: {answered:?}");
        assert_eq!(answered.header("content-type"), "text/html; charset=utf-8");
        let policy = answered.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src"),
            "{policy}"
        );
        for part in ["<nav aria-label=\"Pages\">", "<h1>", sentence] {
            assert!(
                answered.body.contains(part),
                "{path} has no {part}: {answered:?}"
            );
        }
        viewer.get(path).is_problem(status, sentence);
    }
    // The API is for programs, whoever asks.
    for path in ["/api/v1/nothing", "/api/v1/jobs/none"] {
        viewer
            .get_with(path, &browser)
            .is_problem(404, "there is nothing");
    }
    let posted = viewer.post_with("/calendar", FORM, "", &browser);
    assert_eq!(
        (posted.status, posted.header("content-type")),
        (405, "text/html; charset=utf-8")
    );
    let stranger = nobody.get_with("/metrics", &browser);
    assert_eq!(stranger.header("www-authenticate"), "Bearer");
    assert!(stranger.body.contains("<h1>"), "{stranger:?}");
}

#[test]
fn a_viewer_is_told_nothing_of_where_things_lie_on_the_host() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let (viewer, operator) = (
        nobody.with_role(&lab, "viewer"),
        nobody.with_role(&lab, "operator"),
    );
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    let host = lab.data().parent().expect("a folder").display().to_string();
    for path in [
        "/",
        "/jobs/1",
        "/runs/1",
        "/devices/mate10pro",
        "/profiles/1",
        "/report",
    ] {
        let page = viewer.get(path).body;
        assert!(page.contains("simulated"), "{path}: {page}");
        assert!(!page.contains(&host), "{path}: {page}");
    }
    assert!(operator.get("/report").body.contains(&host));
    let report = viewer.get("/report").body;
    assert!(report.contains(">…/mate10pro"), "{report}");
    let run = viewer.get("/runs/1").body;
    assert!(
        run.contains("published as <a href=\"/profiles/1\">its profile</a>"),
        "{run}"
    );
}

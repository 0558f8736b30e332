//! What browsers change by plain forms: operators on the lab's own pages, and nobody else.

use layerlab_lab::record::{JobState, RunState};
use layerlab_tests::lab::Lab;
use layerlab_tests::web::{Answered, WebClient};

use super::{models, on_the_web, started};

const FORM: &str = "application/x-www-form-urlencoded";

/// A browser that has logged in.
struct Browser {
    client: WebClient,
    cookie: String,
}

impl Browser {
    fn logged_in(lab: &Lab, nobody: &WebClient, role: &str) -> Browser {
        let token = lab.succeed(&["token", "create", role, "--role", role]);
        let answered = nobody.post("/login", FORM, &format!("token={}", token.trim()));
        let set = answered.header("set-cookie");
        let cookie = set.split(';').next().unwrap_or_default().to_owned();
        Browser {
            client: nobody.clone(),
            cookie,
        }
    }

    fn page(&self, path: &str) -> String {
        let answered = self.client.get_with(path, &[("cookie", &self.cookie)]);
        assert_eq!(answered.status, 200, "{path}: {answered:?}");
        answered.body
    }

    /// Sends a form as browsers do from the lab's own pages.
    fn sends(&self, path: &str, fields: &str) -> Answered {
        let origin = format!("http://{}", self.client.address);
        self.sends_from(path, fields, &[("origin", &origin)])
    }

    fn sends_from(&self, path: &str, fields: &str, headers: &[(&str, &str)]) -> Answered {
        let headers = [&[("cookie", self.cookie.as_str())], headers].concat();
        self.client.post_with(path, FORM, fields, &headers)
    }
}

/// That a form led to a page.
#[track_caller]
fn leads(answered: &Answered, page: &str) {
    assert_eq!(
        (answered.status, answered.header("location")),
        (303, page),
        "{answered:?}"
    );
}

/// That a form was refused on its page, in a sentence.
#[track_caller]
fn is_refused(answered: &Answered, status: u16, sentence: &str) {
    assert_eq!(answered.status, status, "{answered:?}");
    assert_eq!(answered.header("content-type"), "text/html; charset=utf-8");
    let alert = answered.body.split("role=\"alert\">").nth(1);
    let alert = alert.and_then(|rest| rest.split('<').next());
    assert!(
        alert.is_some_and(|alert| alert.contains(sentence)),
        "{answered:?}"
    );
}

#[test]
fn a_job_is_submitted_and_changed_by_forms() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let operator = Browser::logged_in(&lab, &nobody, "operator");
    let new = operator.page("/jobs/new");
    for offered in ["alexnet.onnx", "mate10pro", "oneplus7", "simulated"] {
        assert!(new.contains(offered), "{offered}: {new}");
    }
    is_refused(
        &operator.sends("/jobs", "device=mate10pro&name=one"),
        422,
        "no model is chosen",
    );
    let nothing_else = operator.sends("/jobs", "model=alexnet.onnx");
    is_refused(&nothing_else, 422, "no device is chosen");
    // What was filled in is still there.
    let ticked = "name=\"model\" value=\"alexnet.onnx\" checked";
    assert!(nothing_else.body.contains(ticked), "{nothing_else:?}");
    let unlike = "model=..%2falexnet.onnx&device=mate10pro";
    is_refused(&operator.sends("/jobs", unlike), 422, "is a path");
    let both = "name=by+form&model=alexnet.onnx&device=mate10pro&device=oneplus7&processor=cpu";
    leads(&operator.sends("/jobs", both), "/jobs/1");
    let spec = lab.kept().jobs[&1].spec.clone();
    assert_eq!(spec.name, "by form");
    assert_eq!(spec.devices.len(), 2);
    assert_eq!(spec.measure.processors, ["cpu"]);
    let again = operator.sends("/jobs", both);
    is_refused(&again, 409, "job 1 asks for the same");
    assert!(again.body.contains("name=\"again\""), "{again:?}");
    leads(
        &operator.sends("/jobs", &format!("{both}&again=yes")),
        "/jobs/2",
    );

    let broken = operator.sends("/jobs", "file=models+%3D+%5B%22%3Cscript%3E.onnx");
    is_refused(&broken, 422, "line 1");
    assert!(broken.body.contains("&lt;script&gt;.onnx"), "{broken:?}");
    let file = "file=models+%3D+%5B%22yolo-small.onnx%22%5D%0D%0A%5B%5Bdevices%5D%5D%0D%0Aserial+%3D+%22oneplus7%22%0D%0A\
                %5Bmeasure%5D%0D%0Adesign+%3D+%22local%22%0D%0Asamples+%3D+400%0D%0A";
    leads(&operator.sends("/jobs", file), "/jobs/3");

    leads(&operator.sends("/jobs/3/pause", ""), "/jobs/3");
    assert_eq!(lab.kept().jobs[&3].state, JobState::Paused);
    assert!(operator.page("/jobs/3").contains("/jobs/3/resume"));
    leads(&operator.sends("/jobs/3/resume", ""), "/jobs/3");
    assert_eq!(lab.kept().jobs[&3].state, JobState::Open);
    leads(&operator.sends("/jobs/3/cancel", ""), "/jobs/3");
    lab.wait_for("a run that was cancelled", || {
        let kept = lab.kept();
        let mut of_job = kept.runs.values().filter(|run| run.job == 3);
        of_job.all(|run| run.state == RunState::Cancelled)
    });
    is_refused(&operator.sends("/jobs/3/pause", ""), 409, "cancelled");
    assert!(operator.page("/jobs/3").contains("/jobs/3/retry"));
    // As long as the run is leaving its device, it cannot be tried again.
    lab.wait_for("a job that is tried again", || {
        operator.sends("/jobs/3/retry", "").status == 303
    });
    is_refused_wholly(
        &operator.sends("/jobs/9/pause", ""),
        404,
        "there is no job 9",
    );
    is_refused_wholly(
        &operator.sends("/jobs/3/burn", ""),
        404,
        "nothing of this name",
    );
    // The log says who it was.
    let shown = operator.page("/jobs/3");
    assert!(
        shown.contains("operator asked over the web to retry"),
        "{shown}"
    );
}

/// That a form was refused where there is no page of its own.
#[track_caller]
fn is_refused_wholly(answered: &Answered, status: u16, sentence: &str) {
    assert_eq!(answered.status, status, "{answered:?}");
    assert!(answered.body.contains(sentence), "{answered:?}");
    assert!(answered.body.contains("<h1>"), "{answered:?}");
}

#[test]
fn a_device_is_taken_and_given_back_by_forms() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let operator = Browser::logged_in(&lab, &nobody, "operator");
    let (mate, oneplus) = ("/devices/mate10pro", "/devices/oneplus7");
    assert!(operator.page("/").contains(mate));
    let never = operator.sends(&format!("{mate}/reserve"), "until=sometime&note=a+demo");
    is_refused(&never, 422, "`sometime` is no point in time");
    assert!(never.body.contains("value=\"sometime\""), "{never:?}");
    leads(
        &operator.sends(&format!("{mate}/reserve"), "until=8h&note=a+demo"),
        mate,
    );
    assert!(lab.succeed(&["reserve", "--list"]).contains("a demo"));
    let page = operator.page(mate);
    assert!(
        page.contains("a demo") && page.contains("Give it back"),
        "{page}"
    );
    leads(&operator.sends(&format!("{mate}/release"), ""), mate);
    is_refused(
        &operator.sends(&format!("{mate}/release"), ""),
        409,
        "not reserved",
    );
    is_refused(
        &operator.sends(&format!("{oneplus}/quarantine"), "for=2h"),
        422,
        "Reason",
    );
    let sulks = "reason=it+sulks+%3Cb%3E&for=2h";
    leads(
        &operator.sends(&format!("{oneplus}/quarantine"), sulks),
        oneplus,
    );
    assert!(lab.succeed(&["quarantine", "list"]).contains("it sulks"));
    let page = operator.page(oneplus);
    assert!(page.contains("it sulks &lt;b&gt;"), "{page}");
    assert!(page.contains("Use it again"), "{page}");
    leads(&operator.sends(&format!("{oneplus}/lift"), ""), oneplus);
    is_refused(
        &operator.sends(&format!("{oneplus}/lift"), ""),
        409,
        "not in quarantine",
    );
    is_refused_wholly(
        &operator.sends("/devices/..%2fnobody/release", ""),
        404,
        "never seen",
    );
}

#[test]
fn a_viewer_is_offered_nothing_and_refused_if_it_asks() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let operator = Browser::logged_in(&lab, &nobody, "operator");
    let viewer = Browser::logged_in(&lab, &nobody, "viewer");
    let file = "model=alexnet.onnx&device=mate10pro";
    leads(&operator.sends("/jobs", file), "/jobs/1");
    leads(
        &operator.sends("/devices/oneplus7/quarantine", "reason=x"),
        "/devices/oneplus7",
    );
    let pages = ["/", "/jobs", "/jobs/1", "/devices/oneplus7"];
    let forms = |page: &str| page.matches("method=\"post\"").count();
    for path in pages {
        assert_eq!(forms(&viewer.page(path)), 1, "{path}");
    }
    for path in &pages[2..] {
        assert!(forms(&operator.page(path)) > 1, "{path}");
    }
    let new = |browser: &Browser| {
        let cookie = [("cookie", browser.cookie.as_str())];
        browser.client.get_with("/jobs/new", &cookie).status
    };
    assert_eq!((new(&operator), new(&viewer)), (200, 403));
    let before = lab.kept();
    for path in [
        "/jobs",
        "/jobs/1/pause",
        "/jobs/1/cancel",
        "/devices/mate10pro/reserve",
        "/devices/oneplus7/lift",
    ] {
        let fields = format!("{file}&until=8h&again=yes");
        is_refused_wholly(&viewer.sends(path, &fields), 403, "operator");
    }
    let after = lab.kept();
    assert_eq!(before.jobs.len(), after.jobs.len());
    assert_eq!(after.jobs[&1].state, before.jobs[&1].state);
    assert!(after.reservations.is_empty());
    assert!(lab.succeed(&["quarantine", "list"]).contains("oneplus7"));
}

#[test]
fn a_form_that_does_not_come_from_the_lab_is_refused() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let operator = Browser::logged_in(&lab, &nobody, "operator");
    let reserve = "/devices/mate10pro/reserve";
    for (header, sentence) in [
        (None, "from which page"),
        (Some(("origin", "https://evil.example")), "another site"),
        (Some(("origin", "null")), "another site"),
        (Some(("sec-fetch-site", "cross-site")), "another site"),
        (Some(("sec-fetch-site", "same-site")), "another site"),
        (Some(("sec-fetch-site", "none")), "from which page"),
    ] {
        let answered = operator.sends_from(reserve, "until=8h", header.as_slice());
        assert_eq!(answered.status, 403, "{header:?}: {answered:?}");
        assert!(answered.body.contains(sentence), "{header:?}: {answered:?}");
    }
    assert!(lab.kept().reservations.is_empty());
    let own = [("sec-fetch-site", "same-origin")];
    leads(
        &operator.sends_from(reserve, "until=8h", &own),
        "/devices/mate10pro",
    );
    // Whose token is over is asked for another, and then sees the page that the form was on.
    let nobody_now = Browser {
        cookie: String::new(),
        client: nobody.clone(),
    };
    leads(
        &nobody_now.sends(reserve, "until=8h"),
        "/login?to=/devices/mate10pro/reserve",
    );
    let cookie = [("cookie", operator.cookie.as_str())];
    leads(&nobody.get_with(reserve, &cookie), "/devices/mate10pro");
}

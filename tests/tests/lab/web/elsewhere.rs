//! Commands that ask a lab elsewhere do what those do that ask the one here, and print the same.

use std::os::unix::fs::PermissionsExt;

use layerlab_lab::record::{JobState, RunState};
use layerlab_tests::elsewhere::{Guest, contents, fails, free_port};
use layerlab_tests::lab::Lab;
use serde_json::Value;

use super::super::{EACH, LONG, SIMULATED, job, wait_for_job};
use super::{models, on_the_web, started};

fn url(address: &str) -> String {
    format!("http://{address}")
}

#[test]
fn commands_print_of_a_lab_elsewhere_what_they_print_of_the_one_here() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let guest = Guest::of(&url(&nobody.address)).with_role(&lab, "viewer");
    let same = |arguments: &[&str]| {
        let (here, there) = (lab.succeed(arguments), guest.succeed(arguments));
        assert_eq!(here, there, "{arguments:?}");
        here
    };
    assert!(same(&["jobs"]).contains("No jobs."));
    assert!(same(&["profiles", "list"]).contains("no profile yet"));
    same(&["reserve", "--list"]);
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    lab.succeed(&["reserve", "oneplus7", "--until", "8h", "--note", "a demo"]);
    let period = ["--since", "2020-01-01 00:00", "--until", "2100-01-01 00:00"];
    let report = [&["report"], &period[..]].concat();
    for arguments in [
        &["jobs"][..],
        &["jobs", "--json"],
        &["jobs", "--all"],
        &["jobs", "--all", "--json"],
        &["jobs", "--all", "--page", "2"],
        &["job", "show", "1", "--json"],
        &["job", "wait", "1"],
        &["job", "example"],
        &["reserve", "--list"],
        &["reserve", "--list", "--json"],
        &["watch", "--once"],
        &report,
        &[&report[..], &["--json"]].concat(),
    ] {
        assert!(!same(arguments).is_empty(), "{arguments:?}");
    }
    let html = |elsewhere: bool, name: &str| {
        let file = lab.path(name);
        let path = file.to_str().expect("UTF-8");
        let line = [&report[..], &["--html", path]].concat();
        let said = match elsewhere {
            true => guest.succeed(&line),
            false => lab.succeed(&line),
        };
        assert!(said.contains(path), "{said}");
        std::fs::read_to_string(file).expect("a page")
    };
    assert_eq!(html(false, "here.html"), html(true, "there.html"));

    // What lies in folders of the lab's host is told without them.
    let here = lab.succeed(&["job", "show", "1"]);
    let there = guest.succeed(&["job", "show", "1"]);
    let without_digests = |text: &str| -> Vec<String> {
        let lines = text.lines();
        lines
            .map(|line| {
                line.split(" (")
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_owned()
            })
            .collect()
    };
    assert_eq!(without_digests(&here), without_digests(&there));
    let list = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    for line in [
        &["profiles", "list", "--json"][..],
        &["profiles", "show", "alexnet", "mate10pro", "--json"],
    ] {
        let mut here = list(&lab.succeed(line));
        for profile in here.as_array_mut().expect("a list") {
            let folder = profile.as_object_mut().expect("a profile").remove("folder");
            assert!(folder.is_some(), "{profile}");
        }
        assert_eq!(here, list(&guest.succeed(line)), "{line:?}");
    }
    let devices = guest.succeed(&["devices"]);
    assert!(devices.contains("mate10pro"), "{devices}");
    assert!(devices.contains("simulated"), "{devices}");
    assert!(devices.contains("reserved"), "{devices}");
    guest.fail(&["devices", "--watch"], 2, "--watch");
    guest.fail(
        &["profiles", "latest", "alexnet", "mate10pro"],
        2,
        "profiles get",
    );
    guest.fail(
        &["profiles", "show", "alexnet", "nobody"],
        3,
        "alexnet on nobody",
    );
    guest.fail(&["job", "show", "7"], 3, "no job 7");
}

#[test]
fn a_lab_elsewhere_is_given_jobs_and_told_what_to_do_with_them() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let guest = Guest::of(&url(&nobody.address)).with_role(&lab, "operator");
    let viewer = Guest::of(&url(&nobody.address)).with_role(&lab, "viewer");
    let file = guest.path("night.toml");
    let rest =
        "[[devices]]\nserial = \"mate10pro\"\n[measure]\ndesign = \"local\"\nsamples = 400\n";
    std::fs::write(&file, job("alexnet", rest)).expect("room");
    let file = file.to_str().expect("UTF-8");
    let submitted = guest.succeed(&["submit", file]);
    assert_eq!(
        submitted,
        "Job 1, night, is submitted: 1 profile. `layerlab job show 1` says how it goes.\n"
    );
    let again = guest.succeed(&["submit", file]);
    assert!(again.contains("--again submits it anyway"), "{again}");
    viewer.fail(&["submit", file], 2, "the role operator");
    viewer.fail(&["job", "cancel", "1"], 2, "the role operator");
    assert_eq!(guest.succeed(&["job", "pause", "1"]), "job 1 is paused\n");
    assert_eq!(lab.kept().jobs[&1].state, JobState::Paused);
    guest.succeed(&["job", "resume", "1"]);
    guest.succeed(&["job", "cancel", "1"]);
    lab.wait_for("a run that was cancelled", || {
        lab.kept().runs[&1].state == RunState::Cancelled
    });
    fails(&guest.run(&["job", "pause", "1"]), 3, "cancelled");
    let wait = guest.run(&["job", "wait", "1"]);
    assert_eq!(wait.status.code(), Some(4), "{wait:?}");
    guest.succeed(&["reserve", "oneplus7", "--until", "8h", "--note", "a demo"]);
    assert!(lab.succeed(&["reserve", "--list"]).contains("a demo"));
    guest.succeed(&["release", "oneplus7"]);
    guest.fail(&["release", "oneplus7"], 3, "not reserved");
    guest.fail(&["release", "../jobs"], 3, "");
    // The event log says who it was.
    let shown = lab.succeed(&["job", "show", "1"]);
    assert!(
        shown.contains("a.operator asked over the web to cancel"),
        "{shown}"
    );
}

#[test]
fn a_profile_is_brought_whole_or_not_at_all() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let guest = Guest::of(&url(&nobody.address)).with_role(&lab, "viewer");
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    let published = lab.kept().runs[&2]
        .profile
        .clone()
        .expect("it is published");
    for (line, out) in [(true, guest.path("there")), (false, guest.path("here"))] {
        let line = |arguments: &[&str]| match line {
            true => guest.run(arguments),
            false => lab.run(arguments),
        };
        let path = out.to_str().expect("UTF-8");
        let got = line(&["profiles", "get", "2", "--out", path]);
        assert!(got.status.success(), "{got:?}");
        assert_eq!(contents(&out), contents(&published));
        fails(
            &line(&["profiles", "get", "2", "--out", path]),
            5,
            "exists already",
        );
        let other = line(&["profiles", "get", "1", "--out", path, "--replace"]);
        assert!(other.status.success(), "{other:?}");
        assert_ne!(contents(&out), contents(&published));
        fails(&line(&["profiles", "get", "7", "--out", "x"]), 3, "run 7");
    }
    // A table that was altered is not what the profile says.
    std::fs::write(published.join("layers.csv"), "altered").expect("it is there");
    let out = guest.path("altered");
    let line = [
        "profiles",
        "get",
        "2",
        "--out",
        out.to_str().expect("UTF-8"),
    ];
    for got in [guest.run(&line), lab.run(&line)] {
        fails(&got, 6, "layers.csv");
        assert!(!out.exists());
    }
    std::fs::remove_dir_all(&published).expect("it is there");
    guest.fail(&line, 3, "gone");
    let left = std::fs::read_dir(guest.path("")).expect("a folder").count();
    assert_eq!(left, 2, "what was brought, and nothing half-made");
}

#[test]
fn a_login_keeps_the_token_to_oneself() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let url = url(&nobody.address);
    let guest = Guest::of(&url);
    guest.fail(&["jobs"], 2, "layerlab login");
    guest.fail(&["logout"], 2, "no token");
    let token = lab.succeed(&["token", "create", "ada", "--role", "viewer"]);
    let kept = guest.path("config/layerlab/logins.json");
    fails(
        &guest.run_with_input(&["login", &url], "wrong\n"),
        2,
        "refuses the token",
    );
    fails(
        &guest.run_with_input(&["login", &url], "two words\n"),
        2,
        "no token",
    );
    fails(&guest.run_with_input(&["login", &url], ""), 2, "no token");
    assert!(!kept.exists());
    let login = guest.run_with_input(&["login", &url], &token);
    let said = String::from_utf8_lossy(&login.stdout).into_owned();
    assert!(login.status.success(), "{login:?}");
    assert!(
        said.contains("You are ada") && said.contains("role viewer"),
        "{said}"
    );
    assert!(!said.contains(token.trim()), "{said}");
    let mode = std::fs::metadata(&kept)
        .expect("it is kept")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(guest.succeed(&["jobs"]).contains("No jobs."));
    // Another one has no token there, and one that others may read is not used.
    let other = format!("http://127.0.0.1:{}", free_port());
    fails(&guest.run(&["jobs", "--lab", &other]), 2, "layerlab login");
    std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o644)).expect("one's own");
    guest.fail(&["jobs"], 5, "chmod 600");
    std::fs::set_permissions(&kept, PermissionsExt::from_mode(0o600)).expect("one's own");
    guest.succeed(&["logout", &url]);
    guest.fail(&["jobs"], 2, "layerlab login");
    assert!(
        !std::fs::read_to_string(&kept)
            .expect("it is there")
            .contains("layerlab_")
    );
    // The socket stays the default.
    assert!(lab.succeed(&["jobs"]).contains("No jobs."));
}

#[test]
fn who_waits_for_a_job_elsewhere_outlives_the_daemon() {
    let listen = format!("127.0.0.1:{}", free_port());
    let lab = Lab::new(&format!("{SIMULATED}[web]\nlisten = \"{listen}\"\n"));
    let (daemon, _) = started(&lab);
    let guest = Guest::of(&url(&listen)).with_role(&lab, "viewer");
    lab.submit(&job("alexnet", LONG));
    let mut waiting = guest.command(&["job", "wait", "1"]);
    let log = std::fs::File::create(lab.path("waiting.log")).expect("room");
    let waiting = waiting.stdout(std::process::Stdio::piped()).stderr(log);
    let waiting = waiting.spawn().expect("layerlab runs");
    daemon.kill();
    lab.wait_for("a lab that is missed", || {
        let log = std::fs::read_to_string(lab.path("waiting.log"));
        log.expect("a log").contains("waiting goes on")
    });
    let _daemon = lab.daemon();
    let ended = waiting.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{}", lab.log());
    assert_eq!(ended.stdout, b"job 1: all profiles are published\n");
}

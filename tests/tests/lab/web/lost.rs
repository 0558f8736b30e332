//! A lab elsewhere that is not there, or is none: one sentence each, with what mends it.

use layerlab_tests::elsewhere::{Guest, answering, free_port, from_a_lab};
use serde_json::json;

use super::{models, on_the_web, started};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn guest(url: &str) -> Guest {
    Guest::of(url).with("LAYERLAB_TOKEN", "layerlab_0")
}

#[test]
fn a_lab_that_cannot_be_asked_is_told_in_a_sentence() {
    let guest = guest("http://127.0.0.1:1");
    for (url, said) in [
        ("lab.example", "is no lab's URL"),
        ("http://lab.example", "not encrypted"),
        ("https://lab.example/api", "nothing after it"),
    ] {
        let refused = guest.run(&["jobs", "--lab", url]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(error.contains(said), "{error}");
    }
    let nowhere = "https://no-such-host.invalid";
    guest.fail(&["jobs", "--lab", nowhere], 4, "there is no host");
    let silent = format!("http://127.0.0.1:{}", free_port());
    guest.fail(&["jobs", "--lab", &silent], 4, "nothing answers");
    let missing = [
        "jobs",
        "--lab",
        "https://127.0.0.1:1",
        "--ca",
        "missing.pem",
    ];
    guest.fail(&missing, 3, "missing.pem");
}

#[test]
fn what_answers_is_a_lab_of_this_version_or_told_to_be_none() {
    let page = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi".to_vec();
    let other = from_a_lab("9.9.0", b"{}");
    let strange = from_a_lab(VERSION, b"{}");
    let short = from_a_lab(VERSION, &[b' '; 1000])[..200].to_vec();
    let moved = b"HTTP/1.1 302 Found\r\nlocation: https://evil.example/\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    for (answer, said) in [
        (page, "is no layerlab lab"),
        (b"SSH-2.0-OpenSSH_9.9\r\n".to_vec(), "is no layerlab lab"),
        (moved.to_vec(), "is no layerlab lab"),
        (other, "runs layerlab 9.9.0"),
        (strange, "does not understand"),
        (short, "was lost"),
    ] {
        let url = answering(move |_| answer.clone());
        guest(&url).fail(&["jobs"], 4, said);
    }
    // Who does not speak TLS is no lab either.
    let url = answering(|_| Vec::new()).replace("http://", "https://");
    guest(&url).fail(&["jobs"], 4, &url);
}

#[test]
fn a_profile_that_is_not_what_the_lab_says_is_not_kept() {
    let profile = json!({
        "run": 1, "job": 1, "model": "alexnet", "device": "mate10pro", "simulated": true,
        "published": "2026-01-01T00:00:00Z", "digest": "0".repeat(64), "files": [],
    });
    let url = answering(move |path| match path.ends_with("/archive") {
        true => from_a_lab(VERSION, b"no archive"),
        false => from_a_lab(VERSION, profile.to_string().as_bytes()),
    });
    let guest = guest(&url);
    let out = guest.path("out");
    let line = [
        "profiles",
        "get",
        "1",
        "--out",
        out.to_str().expect("UTF-8"),
    ];
    guest.fail(&line, 6, "archive");
    assert_eq!(
        std::fs::read_dir(guest.path("")).expect("a folder").count(),
        0
    );
}

#[test]
fn a_token_that_is_wrong_over_or_revoked_is_refused_in_a_sentence() {
    let lab = on_the_web(&models());
    let (_daemon, nobody) = started(&lab);
    let url = format!("http://{}", nobody.address);
    guest(&url).fail(&["jobs"], 2, "layerlab login");
    let revoked = Guest::of(&url).with_role(&lab, "viewer");
    revoked.succeed(&["jobs"]);
    lab.succeed(&["token", "revoke", "a.viewer"]);
    revoked.fail(&["jobs"], 2, "wrong, over or revoked");
}

//! Jobs that measure links, and in which sentence one is refused.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use layerlab_campaign::LinkSettings;
use layerlab_profiles::link::LinkKind;

use super::super::content::Link;
use super::*;

const LINK: &str =
    "name = 'lab'\nkind = 'wifi'\nserver = '192.168.1.2:7377'\ntoken-file = 'token'\n";

/// A folder with a token that nobody else can read.
fn folder() -> Folder {
    let folder = Folder::new();
    let token = folder.write("token", "5a".repeat(32));
    allow(&token, 0o600);
    folder
}

fn allow(path: &Path, mode: u32) {
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("ours");
}

fn job(more: &str) -> String {
    format!("{DEVICES}[link]\n{more}")
}

#[test]
fn a_job_of_a_link_is_resolved_and_names_its_token_by_its_path_alone() {
    let folder = folder();
    let resolved = |more: &str| {
        let path = folder.write("tonight.toml", job(&format!("{LINK}{more}")));
        let job = JobFile::read(&path).expect("a job");
        assert_eq!(job.kind(), RunKind::Link);
        job.resolve(now()).expect("a spec").spec
    };
    let spec = resolved("");
    assert_eq!(spec.kind(), RunKind::Link);
    assert_eq!((spec.subjects(), spec.subject(0)), (1, Some("lab")));
    let usual = LinkSettings {
        name: "lab".to_owned(),
        carrier: LinkKind::Wifi,
        server: "192.168.1.2:7377".to_owned(),
        token_file: folder.0.path().join("token"),
        tunnel: false,
        shape: None,
        repeats: 10,
        echoes: 200,
        connections: None,
        gap_us: 1000,
        trace: None,
        seed: 0,
    };
    assert_eq!(spec.link.as_ref(), Some(&usual));
    let json = serde_json::to_string(&spec).expect("JSON");
    assert!(!json.contains("5a5a"), "the secret is in {json}");
    assert_eq!(
        serde_json::from_str::<JobSpec>(&json).expect("a spec"),
        spec
    );

    let chosen = "shape = '5mbit,75ms'\nrepeats = 4\nechoes = 6\nconnections = 2\ngap-us = 0\ntrace = '10s'\nseed = 7\n";
    let chosen = resolved(chosen);
    let expected = LinkSettings {
        shape: Some("5mbit,75ms".parse().expect("a shape")),
        repeats: 4,
        echoes: 6,
        connections: Some(2),
        gap_us: 0,
        trace: Some(Duration::from_secs(10)),
        seed: 7,
        ..usual
    };
    assert_eq!(chosen.link.as_ref(), Some(&expected));
    // Another measurement is other work, wherever the token lies.
    assert_ne!(spec.content_sha256(), chosen.content_sha256());
    let mut elsewhere = spec.clone();
    elsewhere.link.as_mut().expect("a link").token_file = "elsewhere".into();
    assert_eq!(spec.content_sha256(), elsewhere.content_sha256());
}

#[test]
fn the_example_says_the_defaults_of_links() {
    let link: String = EXAMPLE
        .split_once("#   [link]")
        .expect("a section")
        .1
        .lines()
        .filter_map(|line| line.strip_prefix("#   "))
        .flat_map(|line| [line, "\n"])
        .collect();
    let folder = Folder::new();
    let path = folder.write("example.toml", job(&link));
    let link = JobFile::read(&path).expect("a job").link.expect("a link");
    assert_eq!(
        link,
        Link {
            name: "lab-wifi".to_owned(),
            kind: Some(LinkKind::Wifi),
            server: "192.168.1.2:7377".to_owned(),
            token_file: "edge-token".into(),
            shape: Some("5mbit,75ms".parse().expect("a shape")),
            connections: Some(5),
            trace: Some(Duration::from_secs(10)),
            ..Link::default()
        }
    );
}

#[test]
fn links_that_cannot_be_measured_are_refused_in_a_sentence() {
    let folder = folder();
    allow(&folder.write("open", "5a".repeat(32)), 0o644);
    allow(&folder.write("other", "secret"), 0o600);
    let with = |more: &str| job(&format!("{LINK}{more}"));
    let instead = |from: &str, to: &str| {
        assert!(LINK.contains(from), "{from}");
        job(&LINK.replace(from, to))
    };
    let cases = [
        (job(""), "`link.name`: a link's name has"),
        (instead("'lab'", "'../lab'"), "`link.name`: a link's name"),
        (
            instead("kind = 'wifi'\n", ""),
            "`link.kind`: what carries the link is missing",
        ),
        (
            instead("'wifi'", "'shaped'"),
            "`link.kind`: what carries the link is missing; write wifi",
        ),
        (
            instead("'wifi'", "'tube'"),
            "`link.kind`: `\"tube\"` cannot stand here",
        ),
        (
            instead(":7377", ""),
            "`link.server`: this is no address of an edge server",
        ),
        (
            instead("token-file = 'token'\n", ""),
            "`link.token-file`: the server's token file is missing",
        ),
        (
            instead("'token'", "'missing'"),
            "`link.token-file`: cannot read the token in",
        ),
        (
            instead("'token'", "'open'"),
            "open is no secret, for its mode is 644",
        ),
        (instead("'token'", "'other'"), "other holds no token"),
        (
            with("tunnel = true"),
            "`link.tunnel`: a tunnel leads to the machine of the adb server alone",
        ),
        (
            with("shape = '5mbit'"),
            "`link.shape`: write a bandwidth and a round trip, such as 5mbit,75ms",
        ),
        (
            with("repeats = 1"),
            "`link.repeats`: `1` is out of range; write a whole number from 2 to 1000",
        ),
        (with("echoes = 5"), "`link.echoes`: `5` is out of range"),
        (
            with("connections = 0"),
            "`link.connections`: `0` is out of range",
        ),
        (
            with("connections = 11"),
            "`link.connections`: a connection needs a transfer of each size",
        ),
        (
            with("gap-us = 1000001"),
            "`link.gap-us`: `1000001` is out of range",
        ),
        (
            with("trace = '1ms'"),
            "`link.trace`: this is no length of a trace",
        ),
        (
            with("token = '5a5a'"),
            "`link.token`: there is no such key; write `name`",
        ),
        (
            format!("models = ['net.onnx']\n{}", with("")),
            "`models`: a job with [link] measures that alone",
        ),
        (
            with("[measure]\nseed = 2"),
            "`measure`: a job with [link] measures that alone",
        ),
        (
            with("[accuracy]\nset = 'frames.set'"),
            "`accuracy`: a job with [link] measures that alone",
        ),
        (
            with("[video]\nset = 'frames.set'"),
            "`video`: a job with [link] measures that alone",
        ),
        (
            format!(
                "repeats = 1000\n{}",
                with("").replace(DEVICES, &DEVICES.repeat(11))
            ),
            "one link on 11 of `devices`, 1000 times each, are 11000 link measurements",
        ),
    ];
    for (toml, expected) in cases {
        let message = folder.refused(&toml);
        assert!(message.contains(expected), "{toml}\n{message}");
        assert!(message.starts_with("job.toml"), "{message}");
        assert!(!message.contains('\n'), "{message}");
        assert!(!message.contains("5a5a5a"), "{message}");
    }
}

#[test]
fn a_job_of_a_link_does_not_come_from_elsewhere() {
    let folder = folder();
    let text = job(LINK);
    let path = folder.write("night.toml", &text);
    let refused = "the server's secret stays on the lab's host";
    let error = OutgoingJob::read(&path, &[], now()).expect_err("it stays");
    assert!(error.to_string().contains(refused), "{error}");
    let sent = SentJob::parse(&text).expect("a job");
    let error = sent.within(folder.0.path()).expect_err("it stays");
    assert!(error.to_string().contains(refused), "{error}");
}

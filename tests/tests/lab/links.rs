//! Jobs that measure links to an edge server, from the host and from phones.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use layerlab_edge::{Server, ServerLimits, Token};
use layerlab_lab::record::{Run, RunState, What};
use layerlab_profiles::link::{LinkDocument, check_link_directory};
use layerlab_tests::farm::Farm;
use layerlab_tests::lab::Lab;
use layerlab_tests::{layerlab, succeed};

use super::{SIMULATED, wait_for_job};

/// A lab whose one device is its host.
pub(super) const HOST: &str = "[phones]\nlocal = [\"host\"]\n[gates]\nload-percent = 100\n";

/// As few exchanges as a link is published of, on a link that is over soon.
pub(super) const SOON: &str = "shape = '400mbit,2ms'\nrepeats = 2\nechoes = 6\n";

/// What takes minutes to measure.
const SLOW: &str = "shape = '64kbit,100ms'\n";

/// A server beside the lab that knows the token in its folder.
pub(super) fn serve(lab: &Lab) -> Server {
    serve_at(lab, 0)
}

fn serve_at(lab: &Lab, port: u16) -> Server {
    let token = Token::read_or_make(&lab.path("token")).expect("room");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a port");
    let (program, limits) = ("layerlab test".to_owned(), ServerLimits::default());
    Server::start(listener, token, program, limits).expect("a thread")
}

/// A job for the link to `server`.
pub(super) fn link(lab: &Lab, device: &str, kind: &str, server: &str, more: &str) -> String {
    let token = lab.path("token");
    format!(
        "[[devices]]\nserial = '{device}'\n[link]\nname = 'lab'\nkind = '{kind}'\nserver = '{server}'\ntoken-file = {token:?}\n{more}"
    )
}

/// The folder in which a run has published its link.
fn published(lab: &Lab, run: i64) -> (PathBuf, LinkDocument) {
    let run = &lab.kept().runs[&run];
    let others = (&run.profile, &run.video);
    assert_eq!((run.state, others), (RunState::Done, (&None, &None)));
    let folder = run.link.clone().expect("it is published");
    succeed(layerlab().args(["link", "check"]).arg(&folder));
    let (document, _) = check_link_directory(&folder).expect("a measurement");
    (folder, document)
}

/// Nobody finds the server's secret in what the lab keeps, publishes or logs.
#[track_caller]
fn assert_secret_is_kept(lab: &Lab) {
    let secret = Token::read(&lab.path("token")).expect("ours").to_hex();
    let told = [lab.state(), lab.data()].map(|folder| files_with(&secret, &folder));
    assert_eq!(told.concat(), [""; 0], "the secret is there");
    assert!(!lab.log().contains(&secret), "the secret is in the log");
}

/// The files below `folder` that have `text` in them. Sockets have nothing.
fn files_with(text: &str, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            found.extend(files_with(text, &path));
        } else if path.is_file() {
            // What goes meanwhile has told nobody.
            let content = fs::read(&path).unwrap_or_default();
            let mut windows = content.windows(text.len());
            if windows.any(|bytes| bytes == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn a_host_measures_its_link_as_often_as_it_is_asked_and_each_measurement_is_published() {
    let lab = Lab::new(HOST);
    let server = serve(&lab);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let address = server.address().to_string();
    let file = lab.path("job.toml");
    let job = link(&lab, "host", "ethernet", &address, SOON);
    fs::write(&file, format!("repeats = 2\n{job}")).expect("room");
    let file = file.to_str().expect("UTF-8");
    let said = lab.succeed(&["submit", file]);
    assert!(said.contains("2 link measurements."), "{said}");
    wait_for_job(&lab);
    for run in [1, 2] {
        let (folder, document) = published(&lab, run);
        let expected = lab.data().join(format!("profiles/host/lab/run-{run}"));
        assert_eq!(folder, expected);
        assert_eq!(document.samples.len(), 26);
        assert!(document.header.shape.is_some(), "it was shaped");
        let links = fs::read_to_string(folder.join("links.csv")).expect("a table");
        let mut rows = links.lines().skip(1);
        assert!(rows.all(|row| row.ends_with(",derived-from-simulated")));
    }
    let beside = fs::read_dir(lab.data().join("profiles/host/lab")).expect("a folder");
    assert_eq!(beside.count(), 2, "nothing half done lies beside them");

    // Whoever looks sees what it is, and no profile.
    let shown = lab.succeed(&["job", "show", "1"]);
    for word in [
        "lab (ethernet, slowed down to",
        &address,
        "its link measurement is published",
        "run-2",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    for word in ["design", "models"] {
        assert!(!shown.contains(word), "{word}: {shown}");
    }
    let report = lab.succeed(&["report"]);
    assert!(
        report.starts_with("2 of 2 link measurements published"),
        "{report}"
    );
    for word in [
        "Link measurements",
        "lab (shaped, simulated)",
        " Mbit/s (",
        "round trip ",
    ] {
        assert!(report.contains(word), "{word}: {report}");
    }
    // The link is simulated, the host is not.
    assert!(!report.contains("host (simulated)"), "{report}");
    let report = lab.succeed(&["report", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let directions = &report["jobs"][0]["runs"][1]["link"]["directions"];
    assert_eq!(directions.as_array().map(Vec::len), Some(2), "{report}");
    assert!(directions[0]["bandwidth_ci95_bps"][0].is_u64(), "{report}");
    assert_eq!(lab.succeed(&["profiles", "list", "--json"]).trim(), "[]");
    assert!(
        lab.succeed(&["submit", file])
            .contains("Job 1 asks for the same")
    );
    // What nobody wants any more ends at once.
    lab.submit(&link(&lab, "host", "ethernet", &address, SLOW));
    lab.wait_for("a host that measures", || server.connections() > 0);
    lab.succeed(&["job", "cancel", "2"]);
    lab.wait_for("a host that measures no more", || server.connections() == 0);
    assert_secret_is_kept(&lab);
}

/// The run, once it is over.
fn given_up(lab: &Lab, run: i64) -> Run {
    let is_over = || {
        let kept = lab.kept();
        kept.runs.get(&run).is_some_and(|run| run.state.is_over())
    };
    lab.wait_for("a run that is over", is_over);
    lab.kept().runs.remove(&run).expect("a run")
}

#[test]
fn a_server_that_is_absent_or_refuses_is_one_sentence_and_the_job_can_be_tried_again() {
    let lab = Lab::new(HOST);
    let port = {
        let server = serve(&lab);
        server.address().port()
    };
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let address = format!("127.0.0.1:{port}");
    lab.submit(&link(&lab, "host", "ethernet", &address, SOON));
    let run = given_up(&lab, 1);
    assert_eq!((run.state, run.attempt), (RunState::Failed, 1));
    let why = run.reason.expect("a reason");
    assert!(
        why.starts_with(&format!("cannot reach an edge server at {address}"))
            && why.contains("start `layerlab edge-server`"),
        "{why}"
    );
    // A server that knows another token.
    let other = Lab::new(HOST);
    let refusing = serve_at(&other, port);
    lab.succeed(&["job", "retry", "1"]);
    lab.wait_for("another reason", || {
        let run = lab.kept().runs.remove(&1).expect("a run");
        let told = run
            .reason
            .is_some_and(|reason| reason.contains("refused: the token"));
        run.state == RunState::Failed && told
    });
    drop(refusing);
    let report = lab.succeed(&["report"]);
    assert!(
        report.starts_with("0 of 1 link measurement published; 1 failed"),
        "{report}"
    );
    // It is no fault of the device.
    assert!(!lab.succeed(&["quarantine", "list"]).contains("host"));
    let _server = serve_at(&lab, port);
    lab.succeed(&["job", "retry", "1"]);
    wait_for_job(&lab);
    published(&lab, 1);
    assert_secret_is_kept(&lab);
}

#[test]
fn a_phone_measures_its_link_through_a_tunnel_whatever_becomes_of_the_daemon() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    // No processor is timed: a phone may measure a link that no model is measured on.
    let gates = "[gates]\nbattery-level-percent = 30\n";
    phone.set("battery_level_percent", "20");
    let phones = format!("[phones]\nadb-connect = [{:?}]\n", phone.address);
    let lab = Lab::new(&format!("{phones}{gates}")).with_phones(&farm);
    let server = serve(&lab);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(1);
    let address = server.address().to_string();
    let wrong = link(
        &lab,
        "P1",
        "wifi",
        &address,
        &format!("tunnel = true\n{SOON}"),
    );
    lab.submit(&wrong);
    let run = given_up(&lab, 1);
    let why = run.reason.expect("a reason");
    assert!(why.contains("the kind is network-tunnel"), "{why}");

    let tunnelled = |more| {
        link(
            &lab,
            "P1",
            "network-tunnel",
            &address,
            &format!("tunnel = true\n{more}"),
        )
    };
    // Cancelled or not, what is being measured is no obstacle to the next.
    lab.submit(&tunnelled(SLOW));
    lab.wait_for("a phone that measures", || server.connections() > 0);
    lab.succeed(&["job", "cancel", "2"]);
    lab.wait_for("a phone that measures no more", || {
        server.connections() == 0
    });
    lab.submit(&tunnelled("shape = '20mbit,20ms'\nrepeats = 10\n"));
    let progress = || {
        let devices = lab.devices();
        devices.first().and_then(|device| device.progress)
    };
    lab.wait_for("progress", || {
        progress().is_some_and(|(done, of)| done > 0 && of == Some(300))
    });
    assert!(!lab.is_over(), "it was over too soon");
    daemon.kill();
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.succeed(&["job", "wait", "3", "--timeout", "3m"]);
    let (folder, document) = published(&lab, 3);
    assert_eq!(lab.kept().runs[&3].attempt, 1, "it went on");
    let provenance = &document.header.provenance;
    let measured_by = provenance.phone.as_ref().expect("a phone");
    assert!(measured_by.tunnelled);
    assert_eq!(measured_by.described.serial, "P1");
    assert_eq!(document.samples.len(), 300);
    let told = lab.events().into_iter();
    let told = told.filter(|event| matches!(event.what, What::LinkPublished { .. }));
    assert_eq!(told.count(), 1);
    let beside = fs::read_dir(folder.parent().expect("a folder")).expect("a folder");
    assert_eq!(beside.count(), 1, "nothing half done lies beside it");
    daemon.stop();
    assert_secret_is_kept(&lab);
}

#[test]
#[ignore = "takes a minute: make slow-test"]
fn a_phone_that_is_unplugged_while_it_measures_measures_again_when_it_is_back() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let phones = format!(
        "[phones]\nadb-connect = [{:?}]\npatience = \"1s\"\n",
        phone.address
    );
    let lab = Lab::new(&phones).with_phones(&farm);
    let server = serve(&lab);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(1);
    let address = server.address().to_string();
    lab.submit(&link(
        &lab,
        "P1",
        "network-tunnel",
        &address,
        "tunnel = true\nshape = '20mbit,20ms'\n",
    ));
    lab.wait_for("a phone that measures", || server.connections() > 0);
    phone.unplug();
    lab.wait_for("an attempt that failed", || {
        let failed = |what: &What| matches!(what, What::AttemptFailed { .. });
        lab.events().iter().any(|event| failed(&event.what))
    });
    phone.plug();
    lab.succeed(&["job", "wait", "1", "--timeout", "3m"]);
    published(&lab, 1);
    assert_eq!(lab.kept().runs[&1].attempt, 2);
    let left_alone = lab.succeed(&["quarantine", "list"]);
    assert!(!left_alone.contains("P1"), "{left_alone}");
}

/// Two that are measured at once would share the server.
#[test]
fn links_of_one_lab_are_measured_one_after_the_other() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let lab = Lab::new(&format!(
        "[phones]\nlocal = [\"host\"]\nadb-connect = [{:?}]\n[gates]\nload-percent = 100\n",
        phone.address
    ));
    let lab = lab.with_phones(&farm);
    let server = serve(&lab);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    let address = server.address().to_string();
    let lasting = "shape = '40mbit,20ms'\nrepeats = 2\nechoes = 6\n";
    lab.submit(&link(&lab, "host", "ethernet", &address, lasting));
    lab.wait_for("a host that measures", || server.connections() > 0);
    let tunnelled = format!("tunnel = true\n{lasting}");
    lab.submit(&link(&lab, "P1", "network-tunnel", &address, &tunnelled));
    lab.succeed(&["job", "wait", "1", "--timeout", "3m"]);
    lab.succeed(&["job", "wait", "2", "--timeout", "3m"]);
    let [first, second] = [1, 2].map(|run| published(&lab, run).1.header.provenance);
    assert!(
        first.finished_at <= second.started_at,
        "{} and {}",
        first.finished_at,
        second.started_at
    );
}

#[test]
fn a_simulated_device_has_no_link() {
    let lab = Lab::new(SIMULATED);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(2);
    Token::read_or_make(&lab.path("token")).expect("room");
    let file = lab.path("job.toml");
    let job = link(&lab, "mate10pro", "ethernet", "127.0.0.1:9", SOON);
    fs::write(&file, job).expect("room");
    let said = lab.run(&["submit", file.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.contains("is simulated, and has no link such as lab"),
        "{said}"
    );
    lab.wait_for("a job that says why it waits", || {
        lab.succeed(&["jobs"]).contains("is simulated")
    });
    let waited = lab.run(&["job", "wait", "1", "--timeout", "1s"]);
    assert_eq!(waited.status.code(), Some(4), "it waits on");
    assert!(!Path::new(&lab.data()).join("profiles/mate10pro").exists());
}

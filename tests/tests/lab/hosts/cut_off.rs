//! A host that cannot reach the database for five minutes, which its lease does not outlast.
#![expect(
    clippy::print_stdout,
    reason = "a test that takes minutes tells its figures"
)]

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use layerlab_lab::record::RunState;
use layerlab_tests::farm::Farm;
use layerlab_tests::gate::Gate;
use layerlab_tests::in_real_time;
use layerlab_tests::lab::{Lab, simulating};
use layerlab_tests::postgres::PostgresServer;
use layerlab_tests::virtual_phone::VirtualPhone;

use super::super::job;

const CUT_OFF: Duration = Duration::from_secs(300);

/// Until all is done that was to be done.
const PATIENCE: Duration = Duration::from_secs(1200);

/// A run on any phone with so many samples. A phone measures about a fifth of them by itself: that of 30,000 takes longer than the
/// host is cut off.
fn run_of(samples: u32) -> String {
    let of_any = "[[devices]]\nabi = \"x86_64\"\n[measure]\ndesign = \"local\"\n";
    job("alexnet", &format!("{of_any}samples = {samples}\n"))
}

/// A host with one phone, which takes as long as it says.
fn host(
    name: &str,
    url: &str,
    shared: &Path,
    patience: &str,
    farm: &Farm,
    phone: &VirtualPhone,
) -> Lab {
    let device = shared.join("device.toml");
    std::fs::write(&device, in_real_time("noisy")).expect("room");
    let (copies, profiles) = (shared.join("copies"), shared.join("profiles"));
    let phone = simulating(std::slice::from_ref(phone), &device);
    Lab::new(&format!(
        "[lab]\nstore = {url:?}\nhost = {name:?}\nhost-patience = {patience:?}\ncopies = {copies:?}\nprofiles = {profiles:?}\n\
         {phone}"
    ))
    .with_phones(farm)
}

/// How many bytes of journals there are on the phone.
fn measured(phone: &VirtualPhone) -> u64 {
    fn bytes(folder: &Path) -> u64 {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let sizes = files.map(|file| match file.metadata() {
            Ok(it) if it.is_dir() => bytes(&file.path()),
            Ok(it) => it.len(),
            // It was removed meanwhile.
            Err(_) => 0,
        });
        sizes.sum()
    }
    let agents = std::fs::read_dir(phone.storage().join("layerlab"));
    let agents = agents.into_iter().flatten().flatten();
    agents.map(|agent| bytes(&agent.path().join("runs"))).sum()
}

/// Waits for what takes longer than what tests wait for.
#[track_caller]
fn wait_long(lab: &Lab, awaited: &str, mut has_come: impl FnMut() -> bool) {
    let began = Instant::now();
    while !has_come() {
        assert!(began.elapsed() < PATIENCE, "{awaited}: {}", lab.log());
        sleep(Duration::from_millis(200));
    }
}

/// How many entries of the first run's first journal are in the store.
fn entries(server: &PostgresServer, url: &str) -> u64 {
    let count = "SELECT COUNT(*) FROM layerlab.entries WHERE run LIKE '%-1-1-times'";
    server.sql(url, count).parse().expect("a number")
}

#[test]
#[ignore = "takes ten minutes"]
fn a_host_that_is_cut_off_for_five_minutes_goes_on_with_its_run_on_a_server() {
    let Some(server) = PostgresServer::new() else {
        return;
    };
    let Some(farm) = Farm::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path();
    let phones = [farm.phone("P1"), farm.phone("P2")];
    let url = server.database();
    let (gate, way) = Gate::before_database(&url);
    let one = host("rack-1", &way, shared, "30m", &farm, &phones[0]);
    let first = one.daemon();
    one.wait_until_open();
    one.wait_for_devices(1);
    one.submit(&run_of(30_000));
    one.wait_for("entries in the store", || entries(&server, &url) > 0);
    // The other host sees that the first one is away.
    let two = host("rack-2", &url, shared, "30m", &farm, &phones[1]);
    let second = two.daemon();
    two.wait_until_open();

    gate.close();
    let cut_off = Instant::now();
    one.wait_for("a daemon that cannot reach its server", || {
        one.log().contains("cannot write postgres://")
    });
    let in_store = entries(&server, &url);
    let mut before = measured(&phones[0]);
    for minute in 1..=5 {
        sleep((CUT_OFF * minute / 5).saturating_sub(cut_off.elapsed()));
        let now = measured(&phones[0]);
        println!("minute {minute}: {now} bytes measured");
        assert!(now > before, "{now} in minute {minute}: {}", one.log());
        before = now;
    }
    assert_eq!(entries(&server, &url), in_store);
    let hosts = two.succeed(&["hosts"]);
    let away = hosts.lines().find(|line| line.starts_with("rack-1"));
    assert!(away.is_some_and(|line| line.contains("lost")), "{hosts}");
    gate.open();
    wait_long(&one, "what was measured meanwhile", || {
        entries(&server, &url) > in_store
    });
    let gaps = "SELECT MAX(sequence) - COUNT(*) FROM layerlab.entries WHERE run LIKE '%-1-1-times'";
    assert_eq!(server.sql(&url, gaps), "0");
    let run = two.kept().runs[&1].clone();
    assert_eq!(
        (run.attempt, run.state, run.host.as_deref()),
        (1, RunState::Running, Some("rack-1"))
    );
    two.succeed(&["job", "cancel", "1"]);
    wait_long(&one, "a run that was left", || two.is_over());
    second.stop();
    first.stop();
}

#[test]
#[ignore = "takes ten minutes"]
fn what_a_host_that_was_cut_off_for_too_long_measured_is_refused_on_a_server() {
    let Some(server) = PostgresServer::new() else {
        return;
    };
    let Some(farm) = Farm::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path();
    let phones = [farm.phone("P1"), farm.phone("P2")];
    let url = server.database();
    let (gate, way) = Gate::before_database(&url);
    let one = host("rack-1", &way, shared, "1m", &farm, &phones[0]);
    let first = one.daemon();
    one.wait_until_open();
    one.wait_for_devices(1);
    one.submit(&run_of(6_000));
    one.wait_for("entries in the store", || entries(&server, &url) > 0);
    let two = host("rack-2", &url, shared, "1m", &farm, &phones[1]);
    let second = two.daemon();
    two.wait_until_open();

    gate.close();
    let cut_off = Instant::now();
    // What was on its way may still have come.
    one.wait_for("a daemon that cannot reach its server", || {
        one.log().contains("cannot write postgres://")
    });
    let in_store = entries(&server, &url);
    let before = measured(&phones[0]);
    wait_long(&two, "a run that another host began anew", || {
        let run = two.kept().runs[&1].clone();
        (run.attempt, run.host.as_deref()) == (2, Some("rack-2"))
    });
    sleep(CUT_OFF.saturating_sub(cut_off.elapsed()));
    assert!(measured(&phones[0]) > before, "{}", one.log());
    gate.open();
    let ended = first.ended();
    assert_eq!(ended.code(), Some(4), "{}", one.log());
    let sentence = "host `rack-1` was away";
    assert!(one.log().contains(sentence), "{}", one.log());
    assert_eq!(entries(&server, &url), in_store);

    // It begins anew, and has nothing to do with the run any more.
    let first = one.daemon();
    one.wait_until_open();
    wait_long(&two, "a run that is done", || two.runs_done() == 1);
    let run = two.kept().runs[&1].clone();
    assert_eq!(
        (run.attempt, run.state, run.host.as_deref()),
        (2, RunState::Done, Some("rack-2"))
    );
    first.stop();
    second.stop();
    two.check_journals();
}

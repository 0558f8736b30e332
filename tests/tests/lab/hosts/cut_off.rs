//! A host that cannot reach the database for five minutes, which its lease does not outlast.
#![expect(
    clippy::print_stdout,
    reason = "a test that takes minutes tells its figures"
)]

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use layerlab_lab::record::{Run, RunState};
use layerlab_tests::farm::Farm;
use layerlab_tests::gate::Gate;
use layerlab_tests::in_real_time;
use layerlab_tests::lab::{Daemon, Lab, simulating};
use layerlab_tests::postgres::PostgresServer;
use layerlab_tests::virtual_phone::VirtualPhone;
use tempfile::TempDir;

use super::super::job;

const CUT_OFF: Duration = Duration::from_secs(300);

/// Until all is done that was to be done.
const PATIENCE: Duration = Duration::from_secs(1200);

/// Of so many samples a phone measures about a fifth by itself, which takes longer than the host is cut off.
const MANY_SAMPLES: u32 = 60_000;

/// Of so many the run that another host begins anew is done in minutes.
const FEWER_SAMPLES: u32 = 6_000;

/// Two hosts with a phone each, which takes as long as it says. The first one's is in the middle of a run, and its way to the database
/// can be cut.
struct Racks {
    one: Lab,
    first: Daemon,
    two: Lab,
    second: Daemon,
    phones: [VirtualPhone; 2],
    gate: Gate,
    url: String,
    server: PostgresServer,
    /// What else they need for as long as they work.
    _farm: Farm,
    _shared: TempDir,
}

impl Racks {
    /// None where they cannot be had, which is said.
    fn in_a_run_of(samples: u32, patience: &str) -> Option<Racks> {
        let server = PostgresServer::new()?;
        let farm = Farm::new()?;
        let shared = tempfile::tempdir().expect("a folder");
        let path = |name: &str| shared.path().join(name);
        let phones = [farm.phone("P1"), farm.phone("P2")];
        let (device, copies, profiles) = (path("device.toml"), path("copies"), path("profiles"));
        std::fs::write(&device, in_real_time("noisy")).expect("room");
        let host = |name: &str, url: &str, phone: &VirtualPhone| {
            let phone = simulating(std::slice::from_ref(phone), &device);
            Lab::new(&format!(
                "[lab]\nstore = {url:?}\nhost = {name:?}\nhost-patience = {patience:?}\ncopies = {copies:?}\n\
                 profiles = {profiles:?}\n{phone}"
            ))
            .with_phones(&farm)
        };
        let url = server.database();
        let (gate, way) = Gate::before_database(&url);
        let one = host("rack-1", &way, &phones[0]);
        let first = one.daemon();
        one.wait_until_open();
        one.wait_for_devices(1);
        let of_any = "[[devices]]\nabi = \"x86_64\"\n[measure]\ndesign = \"local\"\n";
        one.submit(&job("alexnet", &format!("{of_any}samples = {samples}\n")));
        one.wait_for("entries in the store", || entries(&server, &url) > 0);
        let two = host("rack-2", &url, &phones[1]);
        let second = two.daemon();
        two.wait_until_open();
        Some(Racks {
            one,
            first,
            two,
            second,
            phones,
            gate,
            url,
            server,
            _farm: farm,
            _shared: shared,
        })
    }

    /// Cuts the first host off, and returns how many entries are in the store then.
    fn cut(&self) -> u64 {
        self.gate.close();
        // What was on its way may still have come.
        self.one
            .wait_for("a daemon that cannot reach its server", || {
                self.one.log().contains("cannot write postgres://")
            });
        self.entries()
    }

    fn entries(&self) -> u64 {
        entries(&self.server, &self.url)
    }

    /// How many bytes of journals there are on the first host's phone.
    fn measured(&self) -> u64 {
        let agents = std::fs::read_dir(self.phones[0].storage().join("layerlab"));
        let agents = agents.into_iter().flatten().flatten();
        agents.map(|agent| bytes(&agent.path().join("runs"))).sum()
    }

    /// The run, as the second host knows it.
    fn run(&self) -> Run {
        self.two.kept().runs[&1].clone()
    }
}

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
    let Some(racks) = Racks::in_a_run_of(MANY_SAMPLES, "30m") else {
        return;
    };
    let began = Instant::now();
    let in_store = racks.cut();
    let mut before = racks.measured();
    for minute in 1..=5 {
        sleep((CUT_OFF * minute / 5).saturating_sub(began.elapsed()));
        let now = racks.measured();
        println!("minute {minute}: {now} bytes measured");
        let log = racks.one.log();
        assert!(now > before, "{now} in minute {minute}: {log}");
        before = now;
    }
    assert_eq!(racks.entries(), in_store);
    let hosts = racks.two.succeed(&["hosts"]);
    let away = hosts
        .lines()
        .find(|line| line.trim_start().starts_with("rack-1"));
    assert!(away.is_some_and(|line| line.contains("lost")), "{hosts}");

    racks.gate.open();
    wait_long(&racks.one, "what was measured meanwhile", || {
        racks.entries() > in_store
    });
    let gaps = "SELECT MAX(sequence) - COUNT(*) FROM layerlab.entries WHERE run LIKE '%-1-1-times'";
    assert_eq!(racks.server.sql(&racks.url, gaps), "0");
    let run = racks.run();
    assert_eq!(
        (run.attempt, run.state, run.host.as_deref()),
        (1, RunState::Running, Some("rack-1"))
    );
    racks.two.succeed(&["job", "cancel", "1"]);
    wait_long(&racks.one, "a run that was left", || racks.two.is_over());
    racks.second.stop();
    racks.first.stop();
}

#[test]
#[ignore = "takes ten minutes"]
fn what_a_host_that_was_cut_off_for_too_long_measured_is_refused_on_a_server() {
    let Some(racks) = Racks::in_a_run_of(FEWER_SAMPLES, "1m") else {
        return;
    };
    let began = Instant::now();
    let in_store = racks.cut();
    let before = racks.measured();
    wait_long(&racks.two, "a run that another host began anew", || {
        let run = racks.run();
        (run.attempt, run.host.as_deref()) == (2, Some("rack-2"))
    });
    sleep(CUT_OFF.saturating_sub(began.elapsed()));
    assert!(racks.measured() > before, "{}", racks.one.log());
    racks.gate.open();
    let ended = racks.first.ended();
    let log = racks.one.log();
    assert_eq!(ended.code(), Some(4), "{log}");
    assert!(log.contains("host `rack-1` was away"), "{log}");
    assert_eq!(entries(&racks.server, &racks.url), in_store);

    // It begins anew, and has nothing to do with the run any more.
    let first = racks.one.daemon();
    racks.one.wait_until_open();
    wait_long(&racks.two, "a run that is done", || {
        racks.two.runs_done() == 1
    });
    let run = racks.two.kept().runs[&1].clone();
    assert_eq!(
        (run.attempt, run.state, run.host.as_deref()),
        (2, RunState::Done, Some("rack-2"))
    );
    first.stop();
    racks.second.stop();
    racks.two.check_journals();
}

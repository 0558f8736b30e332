//! Four hosts with sixteen devices each: their daemons, their database, their S3 server and their connections to both are killed
//! and cut at random, and nothing is lost.
#![expect(
    clippy::print_stdout,
    reason = "a test that takes minutes tells its figures"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use layerlab_lab::record::{Run, What};
use layerlab_tests::device;
use layerlab_tests::farm::Farm;
use layerlab_tests::gate::Gate;
use layerlab_tests::lab::{Daemon, Lab, simulating};
use layerlab_tests::postgres::PostgresServer;
use layerlab_tests::published::Published;
use layerlab_tests::s3_folder_server::{KEY, S3FolderServer, SECRET};
use layerlab_tests::virtual_phone::VirtualPhone;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::job;
use super::super::killed::kills;

const HOSTS: usize = 4;

/// Virtual phones of each host.
const PHONES: usize = 4;

/// Local devices of each host, whose agents end with its daemon.
const LOCAL: usize = 12;

const DEVICES: usize = HOSTS * (PHONES + LOCAL);

/// What daemons end with that cannot reach their store, or find that another daemon has replaced them.
const UNAVAILABLE: i32 = 4;

/// Until all is done that was to be done.
const PATIENCE: Duration = Duration::from_secs(40 * 60);

const DISTURBANCES: [Disturbance; 5] = [
    Disturbance::Daemon,
    Disturbance::Database,
    Disturbance::DatabaseConnections,
    Disturbance::ObjectServer,
    Disturbance::ObjectConnections,
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Disturbance {
    /// A daemon is killed, and another one started.
    Daemon,
    /// PostgreSQL is killed, and started after a while.
    Database,
    /// So that it cannot be reached for a while.
    DatabaseConnections,
    /// The S3 server is killed, and started after a while.
    ObjectServer,
    /// So that it cannot be reached for a while.
    ObjectConnections,
}

struct Host {
    lab: Lab,
    daemon: Daemon,
    /// How often its daemon ended by itself.
    gave_up: usize,
}

impl Host {
    /// Starts its daemon anew if it has ended by itself, as systemd would.
    fn look_after(&mut self) {
        if let Some(status) = self.daemon.has_ended() {
            assert_eq!(status.code(), Some(UNAVAILABLE), "{}", self.lab.log());
            self.gave_up += 1;
            self.daemon = self.lab.daemon();
        }
    }

    fn kill(&mut self) {
        self.look_after();
        let daemon = std::mem::replace(&mut self.daemon, self.lab.daemon());
        daemon.kill();
    }
}

/// All that the hosts share.
struct Fleet {
    database: PostgresServer,
    to_database: Gate,
    objects: S3FolderServer,
    to_objects: Gate,
    hosts: Vec<Host>,
}

impl Fleet {
    fn disturb(&mut self, what: Disturbance, random: &mut ChaCha8Rng) {
        let pause = Duration::from_millis(random.random_range(0..3_000));
        match what {
            Disturbance::Daemon => {
                let host = random.random_range(0..HOSTS);
                self.hosts[host].kill();
            }
            Disturbance::Database => {
                self.database.kill();
                std::thread::sleep(pause);
                self.database.start();
            }
            Disturbance::DatabaseConnections => {
                self.to_database.close();
                std::thread::sleep(pause);
                self.to_database.open();
            }
            Disturbance::ObjectServer => {
                self.objects.kill();
                std::thread::sleep(pause);
                self.objects.start();
            }
            Disturbance::ObjectConnections => {
                self.to_objects.close();
                std::thread::sleep(pause);
                self.to_objects.open();
            }
        }
    }

    fn look_after(&mut self) {
        for host in &mut self.hosts {
            host.look_after();
        }
    }
}

/// The configuration of who has these phones and local devices, all of which play the same device.
fn devices(phones: &[VirtualPhone], local: &[PathBuf]) -> String {
    let played = device("noisy");
    for file in local {
        std::fs::copy(&played, file).expect("room");
    }
    let with_local = format!("[phones]\nlocal = {local:?}\n");
    simulating(phones, &played).replacen("[phones]\n", &with_local, 1)
}

/// A job for each device, and when these are done, for any of them: of each of these runs `repeats`.
fn submit(lab: &Lab, repeats: usize) {
    let measure = "[measure]\ndesign = \"local\"\nsamples = 1000\n";
    let each = "[[devices]]\nabi = \"x86_64\"\neach = true\n";
    lab.wait_until_open();
    lab.wait_for_devices(DEVICES);
    let job_of_each = format!("priority = 1\nrepeats = {repeats}\n{each}{measure}");
    lab.submit(&job("alexnet", &job_of_each));
    let any = "[[devices]]\nabi = \"x86_64\"\n";
    let runs = DEVICES * repeats;
    lab.submit(&job(
        "alexnet",
        &format!("repeats = {runs}\n{any}{measure}"),
    ));
}

/// What each run has published.
fn published(lab: &Lab) -> BTreeMap<i64, Published> {
    let runs = lab.kept().runs.into_values();
    let read = runs.map(|run| {
        let folder = run.profile.unwrap_or_else(|| panic!("run {}", run.number));
        (run.number, Published::read(&folder))
    });
    read.collect()
}

#[test]
#[ignore = "takes half an hour"]
fn four_hosts_whose_daemons_and_servers_are_killed_lose_nothing_on_a_server() {
    let kills = kills(200);
    let repeats = kills.div_ceil(100);
    let Some(database) = PostgresServer::new() else {
        return;
    };
    let Some(objects) = S3FolderServer::new() else {
        return;
    };
    let Some(farm) = Farm::new() else { return };
    let shared = tempfile::tempdir().expect("a folder");
    let profiles = shared.path().join("profiles");
    objects.bucket("lab");
    let (to_database, store) = Gate::before_database(&database.database());
    let to_objects = Gate::before(objects.address, |_| {});

    let phones: Vec<VirtualPhone> = (1..=HOSTS * PHONES)
        .map(|number| farm.phone(&format!("P{number:02}")))
        .collect();
    let local: Vec<PathBuf> = (1..=HOSTS * LOCAL)
        .map(|number| shared.path().join(format!("L{number:02}.toml")))
        .collect();
    let owned = phones.chunks(PHONES).zip(local.chunks(LOCAL)).enumerate();
    let hosts = owned.map(|(index, (phones, local))| {
        let configuration = format!(
            "[lab]\nstore = {store:?}\nhost = \"rack-{}\"\nobjects = \"s3://lab/fleet\"\nprofiles = {profiles:?}\n{}",
            index + 1,
            devices(phones, local)
        );
        let lab = Lab::new(&configuration)
            .with_phones(&farm)
            .with_variable("AWS_ACCESS_KEY_ID", KEY.into())
            .with_variable("AWS_SECRET_ACCESS_KEY", SECRET.into())
            .with_variable(
                "AWS_ENDPOINT_URL",
                format!("http://{}", to_objects.address).into(),
            );
        Host {
            daemon: lab.daemon(),
            lab,
            gave_up: 0,
        }
    });
    let mut fleet = Fleet {
        hosts: hosts.collect(),
        database,
        to_database,
        objects,
        to_objects,
    };
    submit(&fleet.hosts[0].lab, repeats);

    let mut random = ChaCha8Rng::seed_from_u64(200);
    let mut disturbances: Vec<_> = (DISTURBANCES.iter().cycle().take(kills)).copied().collect();
    disturbances.shuffle(&mut random);
    let began = Instant::now();
    for what in disturbances {
        std::thread::sleep(Duration::from_millis(random.random_range(200..2_000)));
        fleet.look_after();
        fleet.disturb(what, &mut random);
    }
    let disturbed = began.elapsed();
    assert!(
        !fleet.hosts[0].lab.is_over(),
        "the jobs were over after {disturbed:.0?}"
    );
    while !fleet.hosts[0].lab.is_over() {
        assert!(began.elapsed() < PATIENCE, "{}", fleet.hosts[0].lab.log());
        fleet.look_after();
        std::thread::sleep(Duration::from_secs(1));
    }
    let gave_up: usize = fleet.hosts.iter().map(|host| host.gave_up).sum();
    println!(
        "disturbed {kills} times in {disturbed:.0?}, of which daemons gave up {gave_up} times; all was done after {:.0?}",
        began.elapsed()
    );
    let mut labs = Vec::new();
    for mut host in fleet.hosts.drain(..) {
        host.look_after();
        host.lab.wait_until_open();
        host.daemon.stop();
        labs.push(host.lab);
    }
    let lab = &labs[0];
    each_is_run_once(lab);
    lab.check_journals();

    let undisturbed = Lab::new(&devices(&phones, &local)).with_phones(&farm);
    let daemon = undisturbed.daemon();
    submit(&undisturbed, repeats);
    undisturbed.succeed(&["job", "wait", "1", "--timeout", "30m"]);
    undisturbed.succeed(&["job", "wait", "2", "--timeout", "30m"]);
    daemon.stop();
    let (all, expected) = (published(lab), published(&undisturbed));
    let numbers = |all: &BTreeMap<i64, Published>| all.keys().copied().collect::<Vec<_>>();
    assert_eq!(numbers(&all), numbers(&expected));
    assert_eq!(all.len(), 2 * DEVICES * repeats);
    let runs = lab.kept().runs;
    for (number, profile) in &all {
        let (expected, run) = (&expected[number], &runs[number]);
        let phone = run.phone.as_deref().unwrap_or_default();
        // What came before on a phone, whose clock runs on, is a matter of chance for runs that any device will do for; and the clock
        // of a local device begins anew with each daemon.
        let differences = if run.job == 1 && phones.iter().any(|it| it.serial == phone) {
            profile.differences(expected)
        } else {
            let (profile, expected) = (profile.clone(), expected.clone());
            profile.clockless().differences(&expected.clockless())
        };
        assert_eq!(differences, [""; 0], "of run {number} on {phone}");
    }

    // The object store has all of it, too, and gives a host that begins the newest of each device.
    let notes = fleet
        .objects
        .files_in(&format!("lab/fleet/runs/{}", lab.kept().lab));
    assert_eq!(notes, all.len());
    std::fs::rename(&profiles, shared.path().join("published")).expect("our own");
    let mut newest: BTreeMap<Option<String>, &Run> = BTreeMap::new();
    for run in runs.values() {
        let known = newest.entry(run.phone.clone()).or_insert(run);
        if (run.ended, run.number) > (known.ended, known.number) {
            *known = run;
        }
    }
    assert_eq!(newest.len(), DEVICES);
    let daemon = lab.daemon();
    let folders = newest.values().filter_map(|run| run.profile.as_ref());
    lab.wait_for("the newest profiles from the object store", || {
        folders.clone().all(|folder| folder.exists())
    });
    daemon.stop();
    for run in newest.values() {
        let folder = run.profile.as_ref().expect("it is done");
        let differences = Published::read(folder).differences(&all[&run.number]);
        assert_eq!(differences, [""; 0], "of run {}", run.number);
    }
}

/// No run was begun twice, or was on two devices.
fn each_is_run_once(lab: &Lab) {
    let runs = lab.kept().runs;
    assert!(runs.values().all(|run| run.attempt == 1), "{runs:?}");
    let mut devices: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    let mut begun: BTreeMap<i64, usize> = BTreeMap::new();
    for event in lab.events() {
        let (Some(run), Some(device)) = (event.run, event.device) else {
            continue;
        };
        match event.what {
            What::Started { .. } => *begun.entry(run).or_default() += 1,
            What::Continued => {}
            _ => continue,
        }
        devices.entry(run).or_default().insert(device);
    }
    assert_eq!(devices.len(), runs.len());
    for run in runs.keys() {
        assert_eq!((begun[run], devices[run].len()), (1, 1), "run {run}");
    }
}

//! A daemon that is stopped or killed, again and again, loses nothing.
#![expect(
    clippy::print_stdout,
    reason = "a test that takes minutes tells its figures"
)]

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use layerlab_tests::device;
use layerlab_tests::farm::Farm;
use layerlab_tests::lab::{Lab, same_profiles, simulating};
use layerlab_tests::postgres::postgres;
use layerlab_tests::small_disk::small_disk;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::full_disk::fill;
use super::servers::stored_at;
use super::{LONG, job, wait_for_job};

/// What was derived. A local agent ends with the daemon, and the clock of a simulated device begins anew with it: when
/// samples were taken differs.
const DERIVED: [&str; 4] = ["layers.csv", "times.csv", "cuts.csv", "segments.csv"];

/// So often is the daemon stopped.
const STOPS: u32 = 2;

#[test]
fn a_daemon_that_is_stopped_and_started_goes_on() {
    let noisy = device("noisy");
    let configuration = format!("[phones]\nlocal = [{noisy:?}]\n");
    // More runs than stays, however much the machine does in one.
    let long = format!("repeats = {}\n{LONG}", 3 * STOPS);
    let undisturbed = Lab::new(&configuration);
    let daemon = undisturbed.daemon();
    undisturbed.wait_until_open();
    undisturbed.submit(&job("alexnet", &long));
    wait_for_job(&undisturbed);
    daemon.stop();

    let lab = Lab::new(&configuration);
    let mut daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", &long));
    let mut before = (0, 0);
    for stop in 1..=STOPS {
        lab.wait_for("a run on the device", || {
            lab.devices().iter().any(|device| device.run.is_some())
        });
        daemon.stop();
        // A run whose last block ended on the stay before has nothing left but to be published.
        let (blocks, runs) = (lab.blocks(), lab.runs_done());
        assert!(
            blocks > before.0 || runs > before.1,
            "stop {stop} of {STOPS}: no block was added to {blocks} and no run was done but {runs}"
        );
        before = (blocks, runs);
        daemon = lab.daemon();
        lab.wait_until_open();
    }
    wait_for_job(&lab);
    daemon.stop();
    lab.check_journals();
    same_profiles(&lab, &undisturbed, &DERIVED);
}

#[test]
#[ignore = "takes ten minutes"]
fn a_daemon_that_is_killed_a_hundred_times_loses_nothing() {
    kill_often(None, None);
}

#[test]
#[ignore = "takes ten minutes"]
fn a_daemon_that_is_killed_a_hundred_times_loses_nothing_on_a_server() {
    if let Some(server) = postgres() {
        kill_often(None, Some(&server.database()));
    }
}

#[test]
#[ignore = "takes twelve minutes"]
fn a_daemon_that_is_killed_while_its_disk_fills_up_and_is_freed_loses_nothing() {
    let name = "killed::a_daemon_that_is_killed_while_its_disk_fills_up_and_is_freed_loses_nothing";
    // Half as much again as is there when all is done.
    let size = format!("{}m", 28 * kills(KILLS).max(10));
    if let Some(disk) = small_disk(&size, name) {
        kill_often(Some(&disk), None);
    }
}

/// How often something is killed: `usual` times, unless LAYERLAB_KILLS says otherwise.
pub(crate) fn kills(usual: usize) -> usize {
    match std::env::var("LAYERLAB_KILLS") {
        Ok(kills) => kills.parse().expect("a number"),
        Err(_) => usual,
    }
}

const KILLS: usize = 100;

/// Kills the daemon of a lab with four phones at random instants. With a small disk, which then holds its store and its
/// profiles, that disk is filled and freed about as often, at random instants, too. With a database, its store is there.
fn kill_often(disk: Option<&Path>, database: Option<&str>) {
    let kills = kills(KILLS);
    let Some(farm) = Farm::new() else { return };
    let phones: Vec<_> = (1..=4)
        .map(|number| farm.phone(&format!("P{number}")))
        .collect();
    let configuration = simulating(&phones, &device("noisy"));
    let job = job(
        "alexnet",
        &format!(
            "repeats = {}\n[[devices]]\nabi = \"x86_64\"\neach = true\n[measure]\ndesign = \"local\"\nsamples = 3000\n",
            kills.div_ceil(6)
        ),
    );
    let submit = |lab: &Lab| {
        lab.wait_until_open();
        lab.wait_for_devices(phones.len());
        lab.submit(&job);
    };

    // Each lab has agents of its own on the phones, whose clocks begin anew.
    let stored = match database {
        Some(url) => stored_at(url, &configuration),
        None => configuration.clone(),
    };
    let mut lab = Lab::new(&stored).with_phones(&farm);
    if let Some(disk) = disk {
        lab = lab.on(disk);
    }
    let mut daemon = lab.daemon();
    submit(&lab);
    let mut random = ChaCha8Rng::seed_from_u64(100);
    let began = Timestamp::now();
    let (mut killed, mut filled) = (0, 0);
    let filler = disk.map(|disk| disk.join("filler"));
    let pauses = if disk.is_some() {
        100..1_500
    } else {
        200..6_000
    };
    while killed < kills {
        std::thread::sleep(Duration::from_millis(random.random_range(pauses.clone())));
        match &filler {
            Some(filler) if random.random_ratio(2, 3) => {
                if std::fs::remove_file(filler).is_err() {
                    fill(filler);
                    filled += 1;
                }
            }
            _ => {
                daemon.kill();
                killed += 1;
                daemon = lab.daemon();
            }
        }
    }
    if let Some(filler) = filler {
        // It may be free already, which is what is wanted.
        let _ = std::fs::remove_file(filler);
        assert!(lab.log().contains("make room"), "{}", lab.log());
    }
    println!(
        "killed {killed} times, its disk filled {filled} times, in {:.0}",
        Timestamp::now().duration_since(began)
    );
    assert!(!lab.is_over(), "the job was over too soon");
    lab.succeed(&["job", "wait", "1", "--timeout", "20m"]);
    daemon.stop();
    assert_eq!(
        lab.kept().runs.values().map(|run| run.attempt).max(),
        Some(1),
        "{}",
        lab.succeed(&["job", "show", "1"])
    );
    lab.check_journals();

    let undisturbed = Lab::new(&configuration).with_phones(&farm);
    let daemon = undisturbed.daemon();
    submit(&undisturbed);
    undisturbed.succeed(&["job", "wait", "1", "--timeout", "20m"]);
    daemon.stop();
    same_profiles(&lab, &undisturbed, &[]);
}

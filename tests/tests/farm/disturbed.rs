//! Runs that are disturbed lose no sample and double none. How soon they go on, `farm-bench cable` says.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use layerlab_campaign::TimesSettings;
use layerlab_farm::adb::{Address, Fleet, Server};
use layerlab_farm::{AdbLink, Policy};
use layerlab_profiles::Nanos;
use layerlab_protocol::Hygiene;
use layerlab_tests::farm::Farm;
use layerlab_tests::interposer::Interposer;
use layerlab_tests::run::{self, measured, run, whole};
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::wait::wait_for;
use layerlab_tests::{in_real_time, succeed};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::noisy;

/// The idle time before each inference where a test needs a run that lasts.
pub(super) const SLOW: Nanos = Nanos::from_micros(8_000);

/// And where it does not.
pub(super) const FAST: Nanos = Nanos::from_micros(10);

pub(super) fn settings(samples_per_segment: u64, gap: Nanos) -> TimesSettings {
    TimesSettings {
        hygiene: Hygiene {
            // A machine that runs many tests at once is no steady device.
            sentinel_tolerance_percent: 100_000,
            ..Hygiene::default()
        },
        ..run::settings(samples_per_segment, gap)
    }
}

/// The noisy device on a clock that runs: its samples take the time that they say.
async fn link_in_real_time(farm: &Farm, phone: &VirtualPhone) -> AdbLink {
    let provision = farm.provision(&in_real_time("noisy"));
    farm.link(phone, provision).await
}

async fn link(farm: &Farm, phone: &VirtualPhone) -> AdbLink {
    farm.link(phone, farm.provision(&noisy())).await
}

/// What a lost cable must not cost: the agent on the phone, and the phone's boot.
pub(super) fn lives(phone: &VirtualPhone) -> (Vec<String>, String) {
    let process = |folder: PathBuf| std::fs::read_to_string(folder.join("agent.pid"));
    let processes = agent_folders(phone).into_iter().map(process);
    let processes: Vec<String> = processes.map(|it| it.expect("an agent")).collect();
    assert_eq!(processes.len(), 1);
    (processes, phone.status("boots"))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute: make slow-test"]
async fn an_adbd_killed_twenty_times_loses_no_sample() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let link = link_in_real_time(&farm, &phone).await;
    // The moments are drawn from a seed: so many samples after each return.
    let mut random = ChaCha8Rng::seed_from_u64(20);
    let (mut killed, mut last_connections, mut at) = (0, 0, u64::MAX);
    let mut before = None;
    let ended = whole(link, settings(30, SLOW), &mut |samples, link| {
        if link.connections() > last_connections {
            last_connections = link.connections();
            at = samples + random.random_range(1..40);
        }
        if samples >= at && killed < 20 {
            before.get_or_insert_with(|| lives(&phone));
            // Adbd is back when this returns. What was on the way before it died still comes.
            phone.crash_adbd();
            killed += 1;
            at = u64::MAX;
        }
    })
    .await;
    assert_eq!(killed, 20);
    assert!(ended.connections >= 20, "{} connections", ended.connections);
    assert_eq!(before, Some(lives(&phone)), "the link was all that failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unplugged_phone_works_on() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let link = link_in_real_time(&farm, &phone).await;
    let mut before = None;
    // At the first sample, of which the host may hear late: the run must not be over by then.
    let ended = whole(link, settings(40, SLOW), &mut |_, _| {
        if before.is_none() {
            before = Some(lives(&phone));
            phone.unplug();
            // The phone's own journal grows, with nobody at the other end.
            let lines = journaled(&phone);
            let grown = || journaled(&phone) >= lines + 100;
            let clue = || format!("it has {} entries, {lines} before", journaled(&phone));
            wait_for("100 new entries in the phone's journal", grown, clue);
            phone.plug();
        }
    })
    .await;
    assert!(ended.connections > 2, "the cable was never missed");
    assert_eq!(before, Some(lives(&phone)), "the link was all that failed");
}

/// How many lines the phone's journals have.
pub(super) fn journaled(phone: &VirtualPhone) -> usize {
    let mut lines = 0;
    for folder in agent_folders(phone) {
        let journals = std::fs::read_dir(folder.join("runs"))
            .into_iter()
            .flatten()
            .flatten();
        lines += journals
            .filter_map(|file| std::fs::read_to_string(file.path()).ok())
            .map(|text| text.lines().count())
            .sum::<usize>();
    }
    lines
}

/// The folders of the agents on the phone.
fn agent_folders(phone: &VirtualPhone) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(phone.storage().join("layerlab"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.join("layerlab-agent").exists())
        .collect()
}

/// What is done in the middle of a run changes no sample.
async fn changes_no_sample(disturb: impl Fn(&Farm, &VirtualPhone) + Send + Sync) {
    let Some(farm) = Farm::new() else { return };
    let (calm, disturbed) = (farm.phone("calm"), farm.phone("disturbed"));
    let settings = || settings(60, FAST);
    let undisturbed = whole(link(&farm, &calm).await, settings(), &mut |_, _| {}).await;
    let mut done = false;
    let link = link(&farm, &disturbed).await;
    let ended = whole(link, settings(), &mut |samples, _| {
        if samples == 100 && !done {
            done = true;
            disturb(&farm, &disturbed);
        }
    })
    .await;
    assert!(done);
    assert_eq!(measured(&ended.samples), measured(&undisturbed.samples));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_changes_no_sample() {
    changes_no_sample(|farm, _| farm.signal_server("-KILL")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebooted_phone_changes_no_sample() {
    changes_no_sample(|_, phone| {
        let before = phone.status("boot_id");
        phone.reboot();
        assert_ne!(phone.status("boot_id"), before);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_agent_changes_no_sample() {
    changes_no_sample(|farm, phone| {
        let kill = "kill -KILL $(cat /data/local/tmp/layerlab/*/agent.pid)";
        let mut adb = farm.adb();
        succeed(adb.args(["-s", &phone.address, "shell", kill]));
    })
    .await;
}

/// A server that hangs is our own: it is started anew once it has not answered for long enough. It is
/// stopped for good here; one that comes back by itself is the easier case.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute: make slow-test"]
async fn a_stopped_server_changes_no_sample() {
    changes_no_sample(|farm, _| farm.signal_server("-STOP")).await;
}

/// A server that somebody else runs is not ours to start anew: it is waited for.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute: make slow-test"]
async fn a_given_server_that_is_stopped_for_thirty_seconds_is_waited_for() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let own = Fleet::open(&farm.settings()).await;
    own.find(&phone.address).await.expect("a phone");
    let interposer = Interposer::before(farm.socket());
    let server = Server::given(Address {
        host: interposer.address.ip().to_string(),
        port: interposer.address.port(),
    });
    let provision = farm.provision(&in_real_time("noisy"));
    let (policy, state) = (Policy::default(), farm.state());
    let link = AdbLink::open(server, &phone.address, provision, policy, &state);
    let link = link.await.expect("a phone that works");
    let process = farm.server_process();
    let mut resumed = None;
    whole(link, settings(20, SLOW), &mut |samples, _| {
        if samples == 50 && resumed.is_none() {
            farm.signal_server("-STOP");
            let process = process.clone();
            resumed = Some(std::thread::spawn(move || {
                // The thirty seconds are the scenario, not a hope.
                std::thread::sleep(Duration::from_secs(30));
                succeed(Command::new("kill").args(["-CONT", &process]));
            }));
        }
    })
    .await;
    resumed.expect("it was stopped").join().expect("it goes on");
    assert_eq!(farm.server_process(), process, "it is still the same one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swapped_phone_ends_the_run_and_is_left_alone() {
    let Some(farm) = Farm::new() else { return };
    let first = farm.phone("first");
    let port = first.port().to_owned();
    let link = link(&farm, &first).await;
    let mut second = None;
    let result = run(link, settings(60, FAST), &mut |samples, _| {
        if samples == 100 && second.is_none() {
            first.stop();
            let folder = farm.path("phone-second");
            let options = ["--port", &port];
            second = Some(VirtualPhone::start_with(&folder, "second", &options));
        }
    })
    .await;
    let error = result.err().expect("another phone").to_string();
    for word in ["first", "second", "another phone"] {
        assert!(error.contains(word), "{error}");
    }
    let second = second.expect("it was swapped");
    assert!(
        agent_folders(&second).is_empty(),
        "the other phone was touched"
    );
}

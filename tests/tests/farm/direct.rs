//! Phones without an adb server or program: the real adbd, spoken to by a child process for each phone.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use layerlab_farm::adb::{AdbError, Content, Fleet, Prover, State};
use layerlab_tests::door::{self, Owner};
use layerlab_tests::farm::Farm;
use layerlab_tests::published::Published;
use layerlab_tests::run::{measured, whole};
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::wait::wait_for;
use layerlab_tests::{in_real_time, output, stderr, succeed};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::disturbed::{FAST, SLOW, lives, settings};
use super::{HOSTILE, local, noisy, profile_on};

/// Layerlab where there is no adb program, with a home of its own.
pub(super) fn without_adb(farm: &Farm) -> Command {
    let mut command = farm.layerlab();
    command
        .env("LAYERLAB_ADB", "")
        .env("LAYERLAB_DIRECT", "true")
        .env("PATH", farm.path("nothing"))
        .env("HOME", farm.path("home"));
    command
}

/// Where the key is that is made then.
fn key(farm: &Farm) -> PathBuf {
    farm.state().join("adb-key")
}

#[test]
fn a_phone_gives_the_same_profile_with_and_without_a_server() {
    let Some(farm) = Farm::new() else { return };
    let (first, second) = (farm.phone("P1"), farm.phone("P2"));
    let (direct, server) = (farm.path("direct"), farm.path("server"));
    succeed(profile_on(
        &mut without_adb(&farm),
        &first.address,
        "pixel6",
        &direct,
    ));
    gone(&first);
    let mut by_server = farm.layerlab();
    succeed(profile_on(
        &mut by_server,
        &second.address,
        "pixel6",
        &server,
    ));
    assert_eq!(Published::read(&direct), Published::read(&server));
    assert_eq!(Published::read(&direct), local(&farm, "pixel6"));
    let json = std::fs::read_to_string(direct.join("profile.json")).expect("profile.json");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["provenance"]["link"], "adb-direct");
}

#[test]
fn it_is_chosen_by_itself_where_there_is_no_adb_program_and_says_so() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let mut command = without_adb(&farm);
    command
        .env_remove("LAYERLAB_ADB")
        .env_remove("LAYERLAB_DIRECT");
    command
        .env_remove("ANDROID_HOME")
        .env_remove("ANDROID_SDK_ROOT");
    command.args(["devices", "--adb-connect", &phone.address]);
    let output = output(&mut command);
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = listed.lines().find(|line| line.contains("P1"));
    let row = row.unwrap_or_else(|| panic!("{listed}"));
    assert!(row.contains("adb-direct") && row.contains("ready"), "{row}");
    let said = stderr(&output);
    let sentence = "there is no adb program, so phones are reached without one";
    assert_eq!(said.matches(sentence).count(), 1, "{said}");
}

/// What layerlab says of a phone that it cannot profile.
fn refusal(farm: &Farm, phone: &str, code: i32) -> String {
    let mut command = without_adb(farm);
    profile_on(&mut command, phone, "pixel6", &farm.path("out")).args(["--patience", "1s"]);
    let output = output(&mut command);
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    let said = stderr(&output);
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    said
}

#[test]
fn a_phone_that_cannot_be_reached_is_refused_in_one_sentence() {
    let Some(farm) = Farm::new() else { return };
    let closed = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = closed.local_addr().expect("it is bound").to_string();
    drop(closed);
    let said = refusal(&farm, &address, 4);
    for words in [&address[..], "refused", "check the address"] {
        assert!(said.contains(words), "{said}");
    }
    // Something else listens there.
    let other = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = other.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || other.incoming().for_each(drop));
    let said = refusal(&farm, &address, 4);
    assert!(said.contains("no phone's adbd"), "{said}");
    let said = refusal(&farm, "R58M12ABCDE", 3);
    assert!(said.contains("no device `R58M12ABCDE`"), "{said}");
}

/// As an adbd does that has not yet forgotten the connection before.
#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_hangs_up_at_first_is_called_again() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let fleet = Fleet::open(&farm.direct_settings()).await;
    let door = door::hanging_up(&phone.address, 2).to_string();
    let found = fleet.find(&door).await.expect("it answers the third call");
    assert_eq!(found.row.state, State::Ready);
}

#[test]
fn a_phone_that_has_not_allowed_this_host_is_refused_in_one_sentence() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let door = door::before(&phone.address, Owner::Sleeps).to_string();
    let said = refusal(&farm, &door, 4);
    for words in [&door[..], "has not allowed this host", "accept the prompt"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn the_key_that_is_made_opens_phones() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    // The first time the owner is asked, from then on the phone knows the key.
    for owner in [Owner::Accepts, Owner::Knows(key(&farm))] {
        let door = door::before(&phone.address, owner.clone()).to_string();
        let json = succeed(without_adb(&farm).args(["devices", "--json", "--adb-connect", &door]));
        let listed: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let listed = listed.as_array().expect("a list").iter();
        let states: Vec<_> = listed
            .filter(|device| device["name"] == "P1" && device["address"] == *door)
            .map(|device| &device["state"])
            .collect();
        assert_eq!(states, ["ready"], "{owner:?}: {json}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shell_keeps_status_output_and_errors_apart_and_ends_in_time() {
    let Some(farm) = Farm::new() else { return };
    let virtual_phone = farm.phone("P1");
    let phone = farm.connect_directly(&virtual_phone).await;
    let output = phone
        .shell("cat; echo no >&2; exit 7", b"yes")
        .await
        .expect("a shell");
    assert_eq!((output.status, output.text().as_str()), (7, "yes"));
    assert_eq!(output.last_words(), "no");
    // A script may be longer than a packet, and what it writes any bytes.
    let long: Vec<u8> = (0..200_000_u32).map(|n| (n >> 3) as u8).collect();
    let output = phone.shell("cat", &long).await.expect("a shell");
    assert!(output.stdout == long, "{} bytes", output.stdout.len());
    let short = Duration::from_millis(300);
    let error = phone
        .shell_within("sleep 60", b"", short)
        .await
        .expect_err("too long");
    assert!(
        matches!(&error, AdbError::Deadline { deadline, .. } if *deadline == short),
        "{error}"
    );
    gone(&virtual_phone);
    phone.identity().await.expect("a sign of life");
    let name = "/data/local/tmp/; $(reboot) ' \" \n";
    for content in [HOSTILE.as_bytes().to_vec(), Vec::new(), long] {
        let pushed = Content::new(content.clone());
        let pushed = phone.push(&pushed, name, 0o640, Prover::Phone).await;
        pushed.expect("pushed");
        assert!(phone.pull(name).await.expect("pulled") == content);
    }
}

/// The processes that speak to `phone`.
fn children(phone: &VirtualPhone) -> Vec<u32> {
    let target = format!("tcp:{}\0", phone.address);
    processes(|process| {
        let line = std::fs::read_to_string(format!("/proc/{process}/cmdline"));
        line.is_ok_and(|line| line.contains("\0direct-child\0") && line.ends_with(&target))
    })
}

fn processes(is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("Linux").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|process| is_wanted(*process)).collect()
}

#[track_caller]
fn gone(phone: &VirtualPhone) {
    let are_gone = || children(phone).is_empty();
    wait_for("the child to be gone", are_gone, || {
        format!("{:?}", children(phone))
    });
}

/// Stops everything on the phone but what started it. It answers nothing any more, and hangs up on nobody.
fn freeze(phone: &VirtualPhone) {
    let port = format!("\0ADBD_PORT={}\0", phone.port());
    let of_phone = processes(|process| {
        let environment = std::fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        let environment = [b"\0", &environment[..]].concat();
        let program = std::fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&port) && !program.ends_with("bash")
    });
    assert!(!of_phone.is_empty(), "adbd runs");
    let numbers = of_phone.iter().map(u32::to_string);
    succeed(Command::new("kill").arg("-STOP").args(numbers));
}

/// By the deadline of a sign of life, which is the shortest.
#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_stops_answering_is_given_up_in_time() {
    let Some(farm) = Farm::new() else { return };
    let virtual_phone = farm.phone("P1");
    let phone = farm.connect_directly(&virtual_phone).await;
    assert_eq!(children(&virtual_phone).len(), 1);
    freeze(&virtual_phone);
    let error = phone.identity().await.expect_err("it answers nothing");
    let AdbError::Deadline { deadline, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*deadline, Duration::from_secs(5), "{error}");
    gone(&virtual_phone);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes five minutes, the deadline for such a file: make slow-test"]
async fn a_phone_that_stops_answering_in_the_middle_of_a_file_is_given_up_in_time() {
    let Some(farm) = Farm::new() else { return };
    let virtual_phone = farm.phone("P1");
    let phone = farm.connect_directly(&virtual_phone).await;
    let content = Content::new(vec![7; 256 << 20]);
    let path = "/data/local/tmp/large";
    let partial = virtual_phone.storage().join("large.partial");
    let arrived = || std::fs::metadata(&partial).map_or(0, |file| file.len());
    let (pushed, ()) = tokio::join!(phone.push(&content, path, 0o600, Prover::Phone), async {
        let until = async {
            while arrived() < 1 << 20 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let begun = tokio::time::timeout(Duration::from_secs(60), until).await;
        begun.expect("it begins to arrive");
        freeze(&virtual_phone);
    });
    let error = pushed.expect_err("it answers nothing");
    assert!(matches!(error, AdbError::Deadline { .. }), "{error}");
    assert!(arrived() < content.size(), "it was stopped in the middle");
    gone(&virtual_phone);
}

/// Cuts the connection so often, by turns with its phone's adbd back at once and with the cable out for a moment.
async fn unplugged(times: u32, samples_per_segment: u64) {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let provision = farm.provision(&in_real_time("noisy"));
    let link = farm.link_directly(&phone, provision).await;
    // The moments are drawn from a seed: so many samples after each return.
    let mut random = ChaCha8Rng::seed_from_u64(50);
    let (mut cut, mut last_connections, mut at) = (0, 0, u64::MAX);
    let mut before = None;
    let settings = settings(samples_per_segment, SLOW);
    let ended = whole(link, settings, &mut |samples, link| {
        if link.connections() > last_connections {
            last_connections = link.connections();
            at = samples + random.random_range(1..40);
        }
        if samples >= at && cut < times {
            before.get_or_insert_with(|| lives(&phone));
            if cut % 2 == 0 {
                phone.crash_adbd();
            } else {
                phone.unplug();
                phone.plug();
            }
            cut += 1;
            at = u64::MAX;
        }
    })
    .await;
    assert_eq!(cut, times);
    let connections = ended.connections;
    assert!(connections >= u64::from(times), "{connections} connections");
    assert_eq!(before, Some(lives(&phone)), "the link was all that failed");
    gone(&phone);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_unplugged_four_times_loses_no_sample() {
    unplugged(4, 20).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute: make slow-test"]
async fn a_phone_unplugged_fifty_times_loses_no_sample() {
    unplugged(50, 100).await;
}

/// What is done in the middle of a run changes no sample.
async fn changes_no_sample(disturb: impl Fn(&VirtualPhone) + Send + Sync) {
    let Some(farm) = Farm::new() else { return };
    let (calm, disturbed) = (farm.phone("calm"), farm.phone("disturbed"));
    let settings = || settings(60, FAST);
    let undisturbed = farm.link_directly(&calm, farm.provision(&noisy())).await;
    let undisturbed = whole(undisturbed, settings(), &mut |_, _| {}).await;
    let mut done = false;
    let link = farm
        .link_directly(&disturbed, farm.provision(&noisy()))
        .await;
    let ended = whole(link, settings(), &mut |samples, _| {
        if samples == 100 && !done {
            done = true;
            disturb(&disturbed);
        }
    })
    .await;
    assert!(done);
    assert_eq!(measured(&ended.samples), measured(&undisturbed.samples));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebooted_phone_changes_no_sample() {
    changes_no_sample(VirtualPhone::reboot).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_child_changes_no_sample() {
    changes_no_sample(|phone| {
        let children = children(phone);
        assert!(!children.is_empty());
        let numbers = children.iter().map(u32::to_string);
        succeed(Command::new("kill").arg("-KILL").args(numbers));
    })
    .await;
}

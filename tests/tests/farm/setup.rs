//! `layerlab setup`, from a phone in its box to its first profile, with its dead ends.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use layerlab_tests::farm::Farm;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::{output, stderr, stdout, succeed};

use super::Disguised;

/// Has `command` set a phone up that plays pixel6.
fn setup<'a>(command: &'a mut Command, out: &Path) -> &'a mut Command {
    command.args(["setup", "--simulate", "pixel6", "--budget", "1s", "--out"]);
    command.arg(out)
}

/// A lab whose phone is on, and that setup is to find at its address.
fn lab() -> Option<(Farm, VirtualPhone)> {
    let farm = Farm::new()?;
    let phone = farm.phone("P1");
    Some((farm, phone))
}

/// What setup says of a phone that it cannot go on with, and its exit code.
fn dead_end(farm: &Farm, phone: &VirtualPhone) -> (String, Option<i32>) {
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    let ended = output(setup(&mut command, &out).args(["--adb-connect", &phone.address]));
    assert!(!out.exists(), "nothing was measured");
    (stdout(&ended) + &stderr(&ended), ended.status.code())
}

#[test]
fn a_phone_is_set_up_as_soon_as_its_owner_accepts_the_prompt() {
    let Some(lab) = Disguised::new("P1") else {
        return;
    };
    let row = format!("{} unauthorized transport_id:1\n", lab.phone.address);
    lab.interposer.list(Some(&row));
    let out = lab.farm.path("profile");
    let mut command = lab.layerlab();
    let mut child = setup(&mut command, &out)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("layerlab starts");
    let said = BufReader::new(child.stdout.take().expect("piped"));
    let mut lines = said.lines().map_while(Result::ok);
    let told = lines
        .by_ref()
        .any(|line| line.contains("accept the prompt"));
    assert!(told, "the user is told what to do");
    lab.interposer.list(None);
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().expect("a child").success(), "{rest:?}");
    for step in ["[3 of 4]", "[4 of 4]", "Published in"] {
        assert!(rest.iter().any(|line| line.contains(step)), "{rest:?}");
    }
    succeed(lab.farm.layerlab().arg("check").arg(&out));
}

#[test]
fn a_phone_without_an_agent_for_it_is_a_dead_end_with_a_way_out() {
    let Some((farm, phone)) = lab() else { return };
    phone.set("prop.ro.product.cpu.abi", "armeabi-v7a");
    let (said, code) = dead_end(&farm, &phone);
    assert!(said.contains("make agent ABI=armeabi-v7a"), "{said}");
    assert!(said.contains("run layerlab setup again"), "{said}");
    assert_eq!(code, Some(4), "{said}");
}

#[test]
fn an_empty_battery_is_a_dead_end_with_a_way_out() {
    let Some((farm, phone)) = lab() else { return };
    phone.set("battery_level_percent", "7");
    let (said, code) = dead_end(&farm, &phone);
    assert!(said.contains("let it charge"), "{said}");
    assert_eq!(code, Some(4), "{said}");
}

#[test]
fn without_a_phone_setup_says_how_one_is_plugged_in_and_waits_no_longer_than_it_may() {
    let Some(farm) = Farm::new() else { return };
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    let ended = output(setup(&mut command, &out).args(["--patience", "1s"]));
    let said = stdout(&ended) + &stderr(&ended);
    assert!(said.contains("switch on USB debugging"), "{said}");
    assert!(said.contains("within 1s (--patience)"), "{said}");
    assert_eq!(ended.status.code(), Some(4), "{said}");
}

#[test]
fn without_adb_setup_says_how_to_get_it() {
    let mut command = layerlab_tests::layerlab();
    let state = tempfile::tempdir().expect("room");
    command
        .env("LAYERLAB_STATE", state.path())
        .env("LAYERLAB_ADB", "/no/such/adb");
    let ended = output(setup(&mut command, &state.path().join("profile")));
    let said = stdout(&ended) + &stderr(&ended);
    assert!(said.contains("apt install adb"), "{said}");
    assert_eq!(ended.status.code(), Some(4), "{said}");
}

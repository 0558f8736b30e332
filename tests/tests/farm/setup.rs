//! `layerlab setup`, from a phone in its box to its first profile, with its dead ends.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
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
    dead_end_with(farm, &["--adb-connect", &phone.address])
}

/// What setup says with these options, and its exit code. It waits for nothing that takes time.
fn dead_end_with(farm: &Farm, options: &[&str]) -> (String, Option<i32>) {
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    let ended = output(
        setup(&mut command, &out)
            .args(["--patience", "1s"])
            .args(options),
    );
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
fn a_phone_that_no_agent_can_be_built_for_is_not_answered_with_a_command_that_fails() {
    let Some((farm, phone)) = lab() else { return };
    for (abi, told) in [
        (
            "riscv64",
            "layerlab has no agents for its processor, riscv64",
        ),
        ("", "it does not say which processor it has"),
    ] {
        phone.set("prop.ro.product.cpu.abi", abi);
        let (said, code) = dead_end(&farm, &phone);
        assert!(said.contains(told), "{said}");
        assert!(said.contains("arm64-v8a, armeabi-v7a, x86_64"), "{said}");
        assert!(!said.contains("make agent"), "{said}");
        assert_eq!(code, Some(4), "{said}");
    }
}

#[test]
fn an_empty_battery_is_waited_for_and_then_a_dead_end_with_a_way_out() {
    let Some((farm, phone)) = lab() else { return };
    phone.set("battery_level_percent", "7");
    let (said, code) = dead_end(&farm, &phone);
    assert!(said.contains("let it charge to 30 %"), "{said}");
    assert!(said.contains("P1 is not ready within"), "{said}");
    assert!(said.contains("--not-fit"), "{said}");
    assert_eq!(code, Some(4), "{said}");
}

#[test]
fn a_hot_phone_is_set_up_as_it_is_by_whoever_wants_that() {
    let Some((farm, phone)) = lab() else { return };
    phone.set("battery_temperature_millicelsius", "51000");
    let (said, code) = dead_end(&farm, &phone);
    assert!(said.contains("let it cool to 37.0 °C"), "{said}");
    assert_eq!(code, Some(4), "{said}");
    let out = farm.path("profile");
    let mut command = farm.layerlab();
    let connected = ["--adb-connect", &phone.address, "--not-fit"];
    let ended = output(setup(&mut command, &out).args(connected));
    assert!(ended.status.success(), "{}", stderr(&ended));
    let checked = stdout(&output(farm.layerlab().arg("check").arg(&out)));
    assert!(checked.contains("not-fit"), "{checked}");
}

#[test]
fn without_room_setup_says_how_much_is_needed() {
    let Some(farm) = Farm::new() else { return };
    let folder = farm.path("phone");
    let phone = VirtualPhone::start_with(&folder, "P1", &["--storage-bytes", "30000000"]);
    let (said, code) = dead_end(&farm, &phone);
    assert!(
        said.contains("PROBLEM  P1: 30 MB of storage free"),
        "{said}"
    );
    assert!(said.contains("until 1073 MB are free"), "{said}");
    assert_eq!(code, Some(4), "{said}");
}

#[test]
fn without_a_phone_setup_says_how_one_is_plugged_in_and_waits_no_longer_than_it_may() {
    let Some(farm) = Farm::new() else { return };
    let (said, code) = dead_end_with(&farm, &[]);
    assert_eq!(said.matches("switch on USB debugging").count(), 1, "{said}");
    assert!(said.contains("within 1s (--patience)"), "{said}");
    assert_eq!(code, Some(4), "{said}");
}

#[test]
fn an_address_where_no_phone_is_is_not_taken_for_a_cable() {
    let Some(farm) = Farm::new() else { return };
    // Nothing listens there: it is the port of another socket, which does not listen.
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address").to_string();
    let (said, code) = dead_end_with(&farm, &["--adb-connect", &address]);
    let told = format!("no phone answers at {address}");
    assert!(said.contains(&told), "{said}");
    assert!(said.contains("Wireless debugging"), "{said}");
    assert!(!said.contains("cable"), "{said}");
    assert_eq!(code, Some(4), "{said}");
}

#[test]
fn a_phone_that_is_not_there_is_named_beside_those_that_are() {
    let Some((farm, phone)) = lab() else { return };
    let options = ["--adb-connect", &phone.address, "--device", "R58M12ABCDE"];
    let (said, code) = dead_end_with(&farm, &options);
    assert!(
        said.contains("R58M12ABCDE is not there: connect it") && said.contains("(P1)"),
        "{said}"
    );
    assert_eq!(code, Some(4), "{said}");
    // It is called by its address, too.
    phone.set("battery_level_percent", "7");
    let options = ["--adb-connect", &phone.address, "--device", &phone.address];
    let (said, _) = dead_end_with(&farm, &options);
    assert!(said.contains("P1 is ready"), "{said}");
}

#[test]
fn one_of_two_phones_is_set_up_and_how_the_other_one_is_said() {
    let Some((farm, phone)) = lab() else { return };
    let other = farm.phone("P2");
    for phone in [&phone, &other] {
        phone.set("battery_level_percent", "7");
    }
    let addresses = format!("{},{}", phone.address, other.address);
    // Both are known before setup looks for one.
    succeed(
        farm.layerlab()
            .args(["devices", "--adb-connect", &addresses]),
    );
    let (said, _) = dead_end_with(&farm, &[]);
    assert!(said.contains(" is ready, and set up now (P"), "{said}");
    assert!(said.contains("--device P"), "{said}");
}

#[test]
fn what_is_no_phone_is_not_waited_for() {
    let Some(farm) = Farm::new() else { return };
    for name in ["pixel6", "host"] {
        let (said, code) = dead_end_with(&farm, &["--device", name]);
        let told = format!("layerlab profile --device {name} --model FILE.onnx");
        assert!(said.contains(&told), "{said}");
        assert_eq!(code, Some(3), "{said}");
    }
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

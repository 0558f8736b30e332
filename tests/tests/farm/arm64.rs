//! Phones with arm64 processors: virtual ones that run the agent of `make agent` by an emulator of their processor. What it
//! measures there says nothing about any phone; that it runs, is killed and goes on does.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use layerlab_tests::farm::Farm;
use layerlab_tests::published::Published;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::wait::wait_for;
use layerlab_tests::{model, output, profile, stderr, stdout, succeed};

use tokio::runtime::Runtime;

use super::direct::without_adb;
use super::disturbed::journaled;
use super::profile_on;

/// The interface of the phones.
const ABI: &str = "arm64-v8a";

/// The folder that this variable names, which make agent-test sets.
fn folder(variable: &str) -> PathBuf {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    folder.unwrap_or_else(|| panic!("{variable} is not set: make agent-test"))
}

/// A lab with the agent for the phones that lies below `kind` among those of `make agent-test`.
fn lab_with_agent(kind: &str) -> Farm {
    let farm = Farm::new().expect("virtual phones");
    let agents = farm.path("data/agents").join(ABI);
    std::fs::create_dir_all(&agents).expect("room");
    let agent = "layerlab-agent";
    let built = folder("LAYERLAB_TEST_AGENTS").join(kind).join(ABI);
    std::fs::copy(built.join(agent), agents.join(agent)).expect("an agent");
    farm
}

/// A lab with a static agent, and a phone with an arm64 processor.
fn lab() -> (Farm, VirtualPhone) {
    let farm = lab_with_agent("");
    let phone = VirtualPhone::start_with(&farm.path("phone"), "arm", &["--abi", ABI]);
    (farm, phone)
}

/// A lab with an agent that loads libraries, ONNX Runtime and Qualcomm's libraries for arm64, and a phone of Qualcomm's. In
/// the place of the Hexagon's device there is a file with these rights, if any.
fn lab_of_qualcomm(device: Option<u32>) -> (Farm, VirtualPhone) {
    let farm = lab_with_agent("computer");
    let libraries = folder("LAYERLAB_TEST_ARM64");
    let vendor = farm.path("phone/vendor/lib");
    std::fs::create_dir_all(&vendor).expect("room");
    for library in std::fs::read_dir(libraries.join("lib")).expect("a C library") {
        let library = library.expect("a file").path();
        if library.is_file() {
            let name = library.file_name().expect("a name");
            std::fs::copy(&library, vendor.join(name)).expect("room");
        }
    }
    if let Some(mode) = device {
        let devices = farm.path("phone/dev");
        std::fs::create_dir_all(&devices).expect("room");
        let file = devices.join("fastrpc-cdsp");
        std::fs::write(&file, "").expect("room");
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("its own");
    }
    let phone = VirtualPhone::start_with(&farm.path("phone"), "arm", &["--abi", ABI]);
    phone.set("prop.ro.soc.model", "SM8550");
    phone.set("prop.ro.soc.manufacturer", "QTI");
    for wheel in std::fs::read_dir(libraries.join("wheels")).expect("wheels") {
        let wheel = wheel.expect("a file").path();
        succeed(farm.layerlab().args(["runtime", "add"]).arg(wheel));
    }
    (farm, phone)
}

/// The processors that `layerlab devices` lists for the phone, and what it says besides.
fn processors(farm: &Farm, phone: &VirtualPhone) -> (Vec<String>, String) {
    let mut command = farm.layerlab();
    let asked = command.args(["devices", "--json", "--adb-connect", &phone.address]);
    let ended = output(asked);
    let (listed, said) = (stdout(&ended), stderr(&ended));
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let mut devices = listed.as_array().expect("a list").iter();
    let phone = devices.find(|device| device["link"] == "adb");
    let processors = phone.expect("the phone is listed")["processors"].as_array();
    let names = processors.into_iter().flatten();
    let names = names.map(|one| one["name"].as_str().expect("a name").to_owned());
    (names.collect(), said)
}

/// The one line of a text that is about the Hexagon.
#[track_caller]
fn line_about_the_hexagon(text: &str) -> &str {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("Hexagon"))
        .collect();
    assert_eq!(lines.len(), 1, "{text}");
    lines[0]
}

#[test]
#[ignore = "needs agents for phones, which take minutes to build: make agent-test"]
fn a_hexagon_that_the_shell_user_may_not_open_is_left_out_with_the_reason_and_the_cpus_are_offered()
{
    let (farm, phone) = lab_of_qualcomm(Some(0));
    let (offered, said) = processors(&farm, &phone);
    for name in ["cpu:all", "cpu:ort-all"] {
        assert!(offered.iter().any(|one| one == name), "{offered:?}: {said}");
    }
    assert!(
        offered.iter().all(|name| !name.starts_with("qnn")),
        "{offered:?}"
    );
    let refusal = "its shell user may not open /dev/fastrpc-cdsp (Permission denied";
    let line = line_about_the_hexagon(&said);
    for words in [
        refusal,
        "these said `",
        "a development build after `adb root`",
    ] {
        assert!(line.contains(words), "no `{words}` in {line}");
    }
    let run = |arguments: &[&str]| {
        let mut command = farm.layerlab();
        command.args(arguments);
        output(command.args(["--adb-connect", &phone.address]))
    };
    let doctor = run(&["doctor"]);
    assert!(line_about_the_hexagon(&stdout(&doctor)).contains(refusal));
    assert_eq!(stderr(&doctor).matches("Hexagon").count(), 0);
    let model = model("vocnet-mini");
    let model = model.to_str().expect("a path");
    let support = run(&["model", "support", model, "--device", "arm"]);
    assert!(line_about_the_hexagon(&stderr(&support)).contains(refusal));
    let said = stdout(&support);
    assert!(said.contains("cpu:ort-all runs 11 of 11 layers"), "{said}");
}

#[test]
#[ignore = "needs agents for phones, which take minutes to build: make agent-test"]
fn a_phone_that_shows_no_hexagon_is_told_from_one_that_forbids_it() {
    let (farm, phone) = lab_of_qualcomm(None);
    let (offered, said) = processors(&farm, &phone);
    assert!(
        offered.iter().any(|name| name == "cpu:ort-all"),
        "{offered:?}: {said}"
    );
    let line = line_about_the_hexagon(&said);
    let absent = "it shows none of the devices by which Qualcomm's libraries reach one";
    assert!(line.contains(absent), "{line}");
}

#[test]
#[ignore = "needs agents for phones, which take minutes to build: make agent-test"]
fn a_hexagon_that_can_be_opened_and_fails_is_not_a_matter_of_rights() {
    let (farm, phone) = lab_of_qualcomm(Some(0o444));
    let (offered, said) = processors(&farm, &phone);
    assert!(
        offered.iter().any(|name| name == "cpu:ort-all"),
        "{offered:?}: {said}"
    );
    assert!(
        offered.iter().all(|name| !name.starts_with("qnn")),
        "{offered:?}"
    );
    assert!(said.contains("cannot offer qnn-htp-f16"), "{said}");
    assert!(!said.contains("shell user"), "{said}");
}

/// So often is the agent killed.
const KILLED: usize = 5;

/// So many entries of the journal come between two kills.
const BETWEEN: usize = 40;

/// Whether an adb server leads to the phone, or none.
#[derive(Clone, Copy)]
enum By {
    Server,
    Nobody,
}

impl By {
    /// The `layerlab` command that reaches phones so.
    fn layerlab(self, farm: &Farm) -> Command {
        match self {
            By::Server => farm.layerlab(),
            By::Nobody => without_adb(farm),
        }
    }
}

/// Kills the agent on the phone, as the phone may when it wants the memory.
fn kill_agent(farm: &Farm, phone: &VirtualPhone) {
    let kill = "kill -KILL $(cat /data/local/tmp/layerlab/*/agent.pid)";
    let killed = async {
        let phone = farm.connect_directly(phone).await;
        phone.shell(kill, b"").await.expect("a shell")
    };
    let killed = Runtime::new().expect("threads").block_on(killed);
    assert_eq!(killed.status, 0, "{}", killed.last_words());
}

fn killed_five_times(by: By) {
    let (farm, phone) = lab();
    let out = farm.path("profile");
    let mut command = by.layerlab(&farm);
    let run = profile(&mut command, 30, model("alexnet"), &phone.address, &out)
        .args(["--gap-us", "0", "--adb-connect", &phone.address])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut run: Child = run.spawn().expect("layerlab starts");
    for _ in 0..KILLED {
        let before = journaled(&phone);
        let grown = || journaled(&phone) >= before + BETWEEN;
        let clue = || format!("{} entries, {before} before", journaled(&phone));
        wait_for("samples in the phone's journal", grown, clue);
        assert!(matches!(run.try_wait(), Ok(None)), "it was over too soon");
        kill_agent(&farm, &phone);
    }
    let ended = run.wait_with_output().expect("a child");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    let checked = succeed(farm.layerlab().arg("check").arg(&out));
    assert!(checked.contains("a sound profile"), "{checked}");
}

#[test]
#[ignore = "needs agents for phones, which take minutes to build: make agent-test"]
fn an_arm64_agent_killed_five_times_publishes_a_sound_profile() {
    killed_five_times(By::Server);
}

#[test]
#[ignore = "needs agents for phones, which take minutes to build: make agent-test"]
fn the_same_without_an_adb_server() {
    killed_five_times(By::Nobody);
}

#[test]
#[ignore = "needs agents for phones, which take minutes to build: make agent-test"]
fn an_arm64_agent_gives_the_same_simulated_profile_with_and_without_a_server() {
    let (farm, phone) = lab();
    let published = [By::Nobody, By::Server].map(|by| {
        let out = farm.path(match by {
            By::Nobody => "direct",
            By::Server => "server",
        });
        let mut command = by.layerlab(&farm);
        succeed(profile_on(&mut command, &phone.address, "pixel6", &out));
        // The agent's clock runs on from one profile to the next.
        Published::read(&out).clockless()
    });
    assert_eq!(published[0], published[1]);
}

#[test]
#[ignore = "needs agents for phones, which take minutes to build: make agent-test"]
fn doctor_says_that_a_static_agent_leaves_the_phones_libraries_alone() {
    let (farm, phone) = lab();
    let doctor = || {
        let output = farm
            .layerlab()
            .args(["doctor", "--adb-connect", &phone.address])
            .output();
        stdout(&output.expect("layerlab runs"))
    };
    assert!(doctor().contains("arm64-v8a (static)"), "{}", doctor());
    let left_alone = "libraries for accelerators (qnn), and its agent is static";
    assert!(!doctor().contains(left_alone), "{}", doctor());
    let library = farm.path("phone/vendor/lib64/libQnnHtp.so");
    std::fs::create_dir_all(library.parent().expect("a folder")).expect("room");
    std::fs::write(&library, "").expect("room");
    let said = doctor();
    assert!(said.contains(left_alone), "{said}");
    assert!(
        said.contains("make agent ABI=arm64-v8a ANDROID=1"),
        "{said}"
    );
}

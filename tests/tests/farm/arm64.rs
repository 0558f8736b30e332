//! Phones with arm64 processors: virtual ones that run the agent of `make agent` by an emulator of their processor. What it
//! measures there says nothing about any phone; that it runs, is killed and goes on does.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use layerlab_tests::farm::Farm;
use layerlab_tests::published::Published;
use layerlab_tests::virtual_phone::VirtualPhone;
use layerlab_tests::wait::wait_for;
use layerlab_tests::{model, profile, stdout, succeed};

use tokio::runtime::Runtime;

use super::direct::without_adb;
use super::disturbed::journaled;
use super::profile_on;

/// The interface of the phones.
const ABI: &str = "arm64-v8a";

/// A lab that has the agents of `make agent-test`, and a phone with an arm64 processor.
fn lab() -> (Farm, VirtualPhone) {
    let agents = std::env::var_os("LAYERLAB_TEST_AGENTS").map(PathBuf::from);
    let agents = agents.expect("agents for phones, which make agent-test builds");
    let farm = Farm::new().expect("virtual phones");
    let folder = farm.path("data/agents").join(ABI);
    std::fs::create_dir_all(&folder).expect("room");
    let agent = "layerlab-agent";
    std::fs::copy(agents.join(ABI).join(agent), folder.join(agent)).expect("an agent");
    let phone = VirtualPhone::start_with(&farm.path("phone"), "arm", &["--abi", ABI]);
    (farm, phone)
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
    assert!(!doctor().contains("ANDROID=1"), "{}", doctor());
    let library = farm.path("phone/vendor/lib64/libQnnHtp.so");
    std::fs::create_dir_all(library.parent().expect("a folder")).expect("room");
    std::fs::write(&library, "").expect("room");
    let said = doctor();
    assert!(said.contains("(qnn)"), "{said}");
    assert!(said.contains("ANDROID=1"), "{said}");
}

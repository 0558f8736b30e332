//! A phone that was given up is left alone.

use std::path::Path;

use layerlab_farm::quarantine::Quarantine;
use layerlab_tests::farm::Farm;
use layerlab_tests::{output, stderr, succeed};

use super::profile_on;

#[test]
fn a_phone_whose_agent_dies_again_and_again_is_left_alone() {
    let Some(farm) = Farm::new() else { return };
    let phone = farm.phone("P1");
    let agent = farm.path("dies");
    std::fs::write(
        &agent,
        "#!/system/bin/sh\necho 'the runtime has no licence' >&2\nexit 1\n",
    )
    .expect("room");
    let run = |agent: &Path| {
        let mut command = farm.layerlab();
        profile_on(&mut command, &phone.address, "pixel6", &farm.path("out"));
        output(command.arg("--agent").arg(agent).arg("--no-reboot"))
    };
    let first = run(&agent);
    assert_eq!(first.status.code(), Some(4));
    assert!(
        stderr(&first).contains("the runtime has no licence"),
        "{}",
        stderr(&first)
    );
    // Another process, with an agent that would work: the phone is left alone all the same.
    let second = run(&farm.agent());
    assert!(
        stderr(&second).contains("quarantine"),
        "{}",
        stderr(&second)
    );
    let listed = succeed(farm.layerlab().args(["quarantine", "list", "--json"]));
    assert!(listed.contains("the runtime has no licence"), "{listed}");
    let entries = Quarantine::in_folder(&farm.state()).list().expect("a file");
    assert_eq!(entries.len(), 1);
    succeed(farm.layerlab().args(["quarantine", "lift", "P1"]));
    let third = run(&farm.agent());
    assert!(third.status.success(), "{}", stderr(&third));
}

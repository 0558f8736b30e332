//! Whom one host leaves alone all hosts do, and any of them lifts it.

use layerlab_lab::talk::DeviceState;
use layerlab_tests::lab::Lab;
use layerlab_tests::postgres::postgres;

use super::super::job;
use super::racks;

/// Why the device is left alone, as the daemon of `lab` says; nothing if it is not.
fn left_alone(lab: &Lab, device: &str) -> Option<String> {
    let mut devices = lab.devices().into_iter();
    let status = devices.find(|one| one.device.name == device)?;
    (status.state == DeviceState::Quarantined).then(|| status.reason.unwrap_or_default())
}

#[test]
fn whom_one_host_leaves_alone_all_do_and_any_of_them_lifts_it_also_without_a_daemon() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path().to_str().expect("UTF-8");
    let [one, two] = racks(&url, shared);
    let (first, second) = (one.daemon(), two.daemon());
    for lab in [&one, &two] {
        lab.wait_until_open();
        lab.wait_for_devices(4);
    }
    let [a, b] = ["a", "b"].map(|name| format!("{shared}/{name}.toml"));
    let add = ["quarantine", "add", &a, "--reason", "its glass is broken"];
    two.succeed(&add);
    let why = "its glass is broken (by a command on host `rack-2`)";
    one.wait_for("a device that is left alone", || {
        left_alone(&one, &a).as_deref() == Some(why)
    });
    one.submit(&job(
        "alexnet",
        &format!("[[devices]]\nserial = {a:?}\n[measure]\ndesign = \"local\"\n"),
    ));
    let jobs = one.succeed(&["jobs"]);
    assert!(
        jobs.contains("is quarantined until") && jobs.contains(why),
        "{jobs}"
    );

    // Each host's file says so too, for commands that need no daemon.
    second.stop();
    for lab in [&one, &two] {
        let listed = lab.succeed(&["quarantine", "list"]);
        assert!(listed.contains(why), "{listed}");
    }
    two.succeed(&["quarantine", "lift", &a]);
    let listed = two.succeed(&["quarantine", "list"]);
    assert_eq!(listed, "no phone is in quarantine\n");
    assert_eq!(
        left_alone(&one, &a).as_deref(),
        Some(why),
        "nobody has told the lab"
    );
    two.succeed(&["quarantine", "add", &b, "--reason", "it sulks"]);
    let second = two.daemon();
    one.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    assert_eq!(left_alone(&one, &a), None);
    assert_eq!(
        left_alone(&one, &b).as_deref(),
        Some("it sulks (by host `rack-2`)")
    );
    one.wait_for("a file that follows the lab", || {
        let listed = one.succeed(&["quarantine", "list", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
        listed[0]["phone"] == b.as_str()
            && listed[0]["by"] == "host `rack-2`"
            && listed[1].is_null()
    });
    second.stop();
    first.stop();
    for lab in [&one, &two] {
        let listed = lab.succeed(&["quarantine", "list"]);
        assert!(
            listed.contains("it sulks") && !listed.contains("glass"),
            "{listed}"
        );
    }
}

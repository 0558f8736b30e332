//! Two daemons with devices of their own and one store are one lab.

mod carried;
mod chosen;
mod cut_off;
mod killed;
mod pages;
mod quarantine;
mod zones;

use std::collections::BTreeSet;

use layerlab_tests::device;
use layerlab_tests::lab::Lab;
use layerlab_tests::postgres::postgres;

use super::job;

/// Many runs, each of which any device will do for.
const ANY: &str =
    "repeats = 8\n[[devices]]\nabi = \"x86_64\"\n[measure]\ndesign = \"local\"\nsamples = 400\n";

/// A host of the lab in the database at `url`, with two devices of these names, all of which play the same one.
fn host(name: &str, url: &str, shared: &str, devices: [&str; 2]) -> Lab {
    host_with(name, url, shared, devices, "")
}

/// The same with more in its configuration.
fn host_with(name: &str, url: &str, shared: &str, devices: [&str; 2], more: &str) -> Lab {
    let played = std::fs::read_to_string(device("mate10pro")).expect("a device file");
    let files = devices.map(|device| {
        let path = format!("{shared}/{device}.toml");
        std::fs::write(&path, &played).expect("room");
        path
    });
    Lab::new(&format!(
        "[lab]\nstore = {url:?}\nhost = {name:?}\ncopies = \"{shared}/copies\"\nprofiles = \"{shared}/profiles\"\n\
         [phones]\nlocal = {files:?}\n[gates]\nload-percent = 100\n{more}"
    ))
}

/// The hosts rack-1, with the devices a and b, and rack-2, with c and d, of a lab in the database at `url`.
fn racks(url: &str, shared: &str) -> [Lab; 2] {
    [
        host("rack-1", url, shared, ["a", "b"]),
        host("rack-2", url, shared, ["c", "d"]),
    ]
}

#[test]
fn two_hosts_share_the_runs_of_a_job_and_each_is_run_once() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let folder = tempfile::tempdir().expect("a folder");
    let shared = folder.path().to_str().expect("UTF-8");
    let one = host("rack-1", &url, shared, ["a", "b"]);
    let two = host("rack-2", &url, shared, ["c", "d"]);
    let daemons = [one.daemon(), two.daemon()];
    for lab in [&one, &two] {
        lab.wait_until_open();
        lab.wait_for_devices(4);
    }
    one.submit(&job("alexnet", ANY));
    // Either of them is asked about the whole lab.
    two.succeed(&["job", "wait", "1", "--timeout", "4m"]);
    let kept = two.kept();
    assert_eq!(kept.runs.len(), 8);
    let hosts: BTreeSet<_> = kept.runs.values().map(|run| run.host.as_deref()).collect();
    assert_eq!(hosts, [Some("rack-1"), Some("rack-2")].into());
    for run in kept.runs.values() {
        assert_eq!(run.attempt, 1, "{run:?}");
        let profile = run.profile.as_ref().expect("a profile");
        assert!(profile.join("profile.json").exists(), "{run:?}");
    }
    let hosts = one.succeed(&["hosts"]);
    for host in ["rack-1", "rack-2"] {
        let line = hosts.lines().find(|line| line.contains(host));
        let line = line.expect(&hosts);
        assert!(line.contains("alive") && line.contains(" 2 "), "{hosts}");
    }
    let [first, second] = daemons;
    second.stop();
    let hosts = one.succeed(&["hosts", "--json"]);
    let hosts: serde_json::Value = serde_json::from_str(&hosts).expect("JSON");
    assert_eq!(
        (&hosts[0]["lease"], &hosts[1]["lease"]),
        (&"alive".into(), &"ended".into())
    );
    first.stop();
    one.check_journals();
}

#[test]
fn a_lab_of_one_host_and_one_that_is_not_there_say_so() {
    let lab = Lab::new("[phones]\nlocal = [\"mate10pro\"]\n");
    assert!(
        lab.succeed(&["hosts"])
            .starts_with("no lab has been here yet")
    );
    assert_eq!(lab.succeed(&["hosts", "--json"]).trim(), "[]");
    let daemon = lab.daemon();
    lab.wait_until_open();
    assert!(
        lab.succeed(&["hosts"])
            .starts_with("This lab has one host, this machine")
    );
    assert_eq!(lab.succeed(&["hosts", "--json"]).trim(), "[]");
    daemon.stop();
}

//! What a lab has published, and what it gives back of the disk.

use layerlab_tests::lab::Lab;

use super::{EACH, LONG, SIMULATED, job, wait_for_job};

/// A lab that has published a profile twice on each of two devices, with its daemon.
fn published_twice(devices: &str) -> (Lab, layerlab_tests::lab::Daemon) {
    let lab = Lab::new(SIMULATED);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", &format!("repeats = 2\n{devices}")));
    wait_for_job(&lab);
    (lab, daemon)
}

#[test]
fn profiles_are_found_by_model_and_device() {
    let (lab, _daemon) = published_twice(EACH);
    let list = lab.succeed(&["profiles", "list"]);
    assert_eq!(list.matches("alexnet ").count(), 2, "{list}");
    assert!(list.contains("oneplus7 (simulated)"), "{list}");
    let all = lab.succeed(&["profiles", "show", "alexnet", "mate10pro", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&all).expect("JSON");
    let runs: Vec<i64> = (all.as_array().expect("a list").iter())
        .map(|profile| profile["run"].as_i64().expect("a number"))
        .collect();
    assert_eq!(runs.len(), 2);
    let newest = lab.kept().runs.into_values();
    let newest = newest.filter(|run| run.phone.as_deref() == Some("mate10pro"));
    let newest = newest
        .max_by_key(|run| run.ended)
        .expect("it was published");
    assert_eq!(runs[0], newest.number);
    let latest = lab.succeed(&["profiles", "latest", "alexnet", "mate10pro"]);
    let folder = newest.profile.expect("published");
    assert_eq!(latest.trim_end(), folder.to_str().expect("UTF-8"));
    lab.succeed(&["check", latest.trim_end()]);
    let missing = lab.run(&["profiles", "latest", "alexnet", "pixel6"]);
    assert_eq!(missing.status.code(), Some(3));
    let said = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(said.contains("but on mate10pro, oneplus7"), "{said}");
}

#[test]
fn a_lab_gives_room_back_when_it_is_asked_to_and_says_before_what_goes() {
    let (lab, daemon) = published_twice(LONG);
    let journals = |lab: &Lab| {
        let runs = lab.kept().runs.into_values();
        runs.filter(|run| run.journals_removed.is_none()).count()
    };
    let config = lab.path("config.toml");
    let config = config.to_str().expect("UTF-8");
    let prune = |options: &[&str]| {
        let all = [&["lab", "prune", "--config", config, "--budget"], options].concat();
        lab.succeed(&all)
    };
    let within = prune(&["1TiB", "--remove"]);
    assert!(within.contains("nothing has to go"), "{within}");
    let dry = prune(&["0B"]);
    assert_eq!(dry.matches("journals ").count(), 4, "{dry}");
    assert!(
        dry.contains("copy ") && !dry.contains("older profile"),
        "{dry}"
    );
    assert_eq!(journals(&lab), 4, "it only says so");
    let file = lab.state().join("lab/lab.sqlite");
    let size = || std::fs::metadata(&file).expect("there").len();
    let copies = || {
        std::fs::read_dir(lab.state().join("lab/files"))
            .expect("there")
            .count()
    };
    assert_eq!(copies(), 1);
    prune(&["0B", "--older-profiles", "--remove"]);
    assert_eq!(copies(), 0);
    lab.wait_for("journals that are removed", || journals(&lab) == 0);
    daemon.stop();
    let shrunk = size();
    assert!(shrunk < 1 << 20, "{shrunk} bytes");
    let gone = lab.kept().runs.into_values().filter(|run| {
        let folder = run.profile.as_ref().expect("published");
        !folder.is_dir()
    });
    assert_eq!(gone.count(), 2, "the newest of each device stays");
    // Without a daemon there is nothing left to remove, and that is said.
    let rest = prune(&["0B", "--remove"]);
    assert!(rest.contains("the rest is in use"), "{rest}");
}

#[test]
fn without_a_daemon_the_command_removes_journals_itself() {
    let (lab, daemon) = published_twice(LONG);
    daemon.stop();
    let file = lab.state().join("lab/lab.sqlite");
    let size = || std::fs::metadata(&file).expect("there").len();
    let before = size();
    lab.succeed(&["lab", "prune", "--budget", "0B", "--remove"]);
    let runs = lab.kept().runs;
    assert!(runs.values().all(|run| run.journals_removed.is_some()));
    assert!(size() < before / 4, "{} of {before} bytes", size());
}

//! A lab whose store is on a PostgreSQL server.

use layerlab_tests::lab::{Lab, same_profiles};
use layerlab_tests::postgres::{PostgresServer, postgres};

use super::{EACH, LONG, SIMULATED, job, wait_for_job};

/// The configuration of a lab whose store is in this database.
pub(crate) fn stored_at(url: &str, configuration: &str) -> String {
    format!("[lab]\nstore = {url:?}\n{configuration}")
}

#[test]
fn the_same_history_gives_the_same_profiles_in_a_file_and_on_a_server() {
    let Some(server) = postgres() else { return };
    let in_a_file = Lab::new(SIMULATED);
    let on_a_server = Lab::new(&stored_at(&server.database(), SIMULATED));
    let mut said = Vec::new();
    for lab in [&in_a_file, &on_a_server] {
        let daemon = lab.daemon();
        lab.wait_until_open();
        let twice = format!("repeats = 2\n{EACH}");
        let whenever = format!("window = \"00:00-00:00\"\n{EACH}");
        // One after the other: which of two jobs is next on a device depends on when the other device was done, and a simulated
        // device's clock runs on.
        for (number, rest) in [("1", twice), ("2", whenever)] {
            lab.submit(&job("alexnet", &rest));
            lab.succeed(&["job", "wait", number, "--timeout", "4m"]);
        }
        daemon.stop();
        lab.check_journals();
        let journals: Vec<usize> = (1..=6).map(|run| lab.journal(run, "times").len()).collect();
        assert!(journals.iter().all(|&entries| entries > 0), "{journals:?}");
        said.push(journals);
        // Without a daemon, and without being told where the store is.
        let jobs = lab.succeed(&["jobs", "--all"]);
        assert_eq!(jobs.matches("done").count(), 2, "{jobs}");
    }
    assert_eq!(said[0], said[1]);
    assert_eq!(on_a_server.profiles().len(), 6);
    assert!(!on_a_server.state().join("lab/lab.sqlite").exists());
    same_profiles(&on_a_server, &in_a_file, &[]);
}

#[test]
fn a_server_that_is_killed_and_comes_back_loses_nothing() {
    let Some(server) = PostgresServer::new() else {
        return;
    };
    let undisturbed = Lab::new(SIMULATED);
    let daemon = undisturbed.daemon();
    undisturbed.wait_until_open();
    undisturbed.submit(&job("alexnet", LONG));
    wait_for_job(&undisturbed);
    daemon.stop();

    let lab = Lab::new(&stored_at(&server.database(), SIMULATED));
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", LONG));
    lab.wait_for("progress on both devices", || {
        let devices = lab.devices().into_iter();
        let progress = devices.filter_map(|one| one.progress);
        progress.filter(|&(done, _)| done > 0).count() == 2
    });
    for round in 1..=2 {
        server.kill();
        lab.wait_for("a daemon that cannot reach its server", || {
            lab.log().matches("cannot write postgres://").count() >= round
        });
        let jobs = lab.run(&["jobs"]);
        let said = String::from_utf8_lossy(&jobs.stderr).into_owned();
        assert_eq!(jobs.status.code(), Some(4), "{said}");
        assert!(said.contains("the lab cannot reach postgres://"), "{said}");
        server.start();
        lab.wait_for("a daemon that can write again", || {
            lab.log().matches("the lab can write again").count() >= round
        });
    }
    wait_for_job(&lab);
    daemon.stop();
    lab.check_journals();
    same_profiles(&lab, &undisturbed, &[]);
}

#[test]
fn a_daemon_that_was_replaced_says_so_and_ends() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let configuration = stored_at(&url, SIMULATED);
    let lab = Lab::new(&configuration);
    let daemon = lab.daemon();
    lab.wait_until_open();
    let other = Lab::new(&configuration);
    let refused = other.run(&[
        "daemon",
        "--config",
        other.path("config.toml").to_str().expect("UTF-8"),
    ]);
    assert_eq!(refused.status.code(), Some(4));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains(&format!("(process {} on ", daemon.id())),
        "{said}"
    );

    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'layerlab' \
               AND datname = current_database()";
    server.sql(&url, cut);
    let successor = other.daemon();
    other.wait_until_open();
    // It is asked for something, and may not note it.
    let refused = lab.run(&["reserve", "mate10pro", "--from", "30d", "--until", "31d"]);
    assert!(!refused.status.success());
    let ended = daemon.ended();
    assert_eq!(ended.code(), Some(4), "{}", lab.log());
    let sentence = format!("another layerlab daemon (process {} on ", successor.id());
    assert!(lab.log().contains(&sentence), "{}", lab.log());
    successor.stop();
}

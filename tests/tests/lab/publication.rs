//! Profiles that cannot be written where a job wants them.

use layerlab_lab::record::RunState;
use layerlab_tests::lab::Lab;

use super::{EACH, LONG, SIMULATED, job};

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let lab = Lab::new(SIMULATED);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let file = lab.path("job.toml");
    // Nobody can make a folder in a file, whoever runs the tests.
    std::fs::write(lab.path("file"), "").expect("room");
    let toml = job("alexnet", &format!("profiles = \"file/profiles\"\n{EACH}"));
    std::fs::write(&file, toml).expect("room");
    let refused = lab.run(&["submit", file.to_str().expect("UTF-8")]);
    assert_eq!(refused.status.code(), Some(5));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("file/profiles") && said.contains("`profiles`"),
        "{said}"
    );
    assert!(lab.kept().jobs.is_empty());
}

#[test]
fn a_run_that_only_lacks_publication_frees_its_device_and_is_published_when_it_can_be() {
    let lab = Lab::new(SIMULATED);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", &format!("profiles = \"out\"\n{LONG}")));
    // What was there when the job was submitted is a file by now.
    let out = lab.path("out");
    std::fs::remove_dir(&out).expect("it is empty");
    std::fs::write(&out, "").expect("room");
    lab.wait_for("runs that wait for publication", || {
        let runs = lab.kept().runs;
        let waits = |reason: &String| reason.contains("waits for publication");
        runs.values()
            .filter(|run| run.reason.as_ref().is_some_and(waits))
            .count()
            == 2
    });
    let jobs = lab.succeed(&["jobs"]);
    let said = format!(
        "measured, and waits for publication: cannot write to {}",
        out.display()
    );
    assert!(jobs.contains(&said), "{jobs}");
    // Others have their devices.
    let file = lab.path("other.toml");
    std::fs::write(&file, job("alexnet", EACH)).expect("room");
    lab.succeed(&["submit", file.to_str().expect("UTF-8")]);
    lab.succeed(&["job", "wait", "2", "--timeout", "2m"]);
    let first = lab.kept().runs.into_values().filter(|run| run.job == 1);
    assert!(first.into_iter().all(|run| run.state == RunState::Parked));
    std::fs::remove_file(&out).expect("it is there");
    lab.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    for run in lab.kept().runs.into_values().filter(|run| run.job == 1) {
        assert_eq!(run.attempt, 1);
        lab.succeed(&[
            "check",
            run.profile.expect("published").to_str().expect("UTF-8"),
        ]);
    }
    daemon.stop();
}

#[test]
fn what_waits_for_publication_is_published_by_the_next_daemon() {
    let lab = Lab::new(SIMULATED);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", &format!("profiles = \"out\"\n{LONG}")));
    let out = lab.path("out");
    std::fs::remove_dir(&out).expect("it is empty");
    std::fs::write(&out, "").expect("room");
    lab.wait_for("runs that wait for publication", || {
        lab.succeed(&["jobs"]).contains("waits for publication")
    });
    daemon.stop();
    std::fs::remove_file(&out).expect("it is there");
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.succeed(&["job", "wait", "1", "--timeout", "2m"]);
    let attempts = lab.kept().runs.into_values().map(|run| run.attempt);
    assert_eq!(attempts.collect::<Vec<_>>(), [1, 1]);
}

//! A lab whose files are in an object store: its hosts need no folder that all of them reach.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use layerlab_lab::record::{Run, RunState};
use layerlab_tests::device;
use layerlab_tests::gate::Gate;
use layerlab_tests::lab::Lab;
use layerlab_tests::postgres::postgres;
use layerlab_tests::s3_server::s3_server;

use super::{EACH, LONG, SIMULATED, job, wait_for_job};

/// What leads to the S3 server at this address.
pub(crate) fn variables(address: impl std::fmt::Display) -> [(&'static str, OsString); 3] {
    [
        ("AWS_ACCESS_KEY_ID", "key".into()),
        ("AWS_SECRET_ACCESS_KEY", "topsecret".into()),
        ("AWS_ENDPOINT_URL", format!("http://{address}").into()),
    ]
}

/// A lab of its own with its files in `objects`, of which it keeps none at hand, and with these lines of configuration more.
fn lab(objects: &str, more: &str) -> Lab {
    Lab::new(&format!(
        "[lab]\nobjects = {objects:?}\nobjects-cache-mebibytes = 0\n{more}{SIMULATED}"
    ))
}

fn with_variables(lab: Lab, address: impl std::fmt::Display) -> Lab {
    let all = variables(address).into_iter();
    all.fold(lab, |lab, (name, value)| lab.with_variable(name, value))
}

/// How many files are at hand on a lab's host.
fn at_hand(lab: &Lab) -> usize {
    let files = std::fs::read_dir(lab.state().join("lab/files"));
    files.expect("it is there").count()
}

/// Two hosts, of which the first is given a job, and both work on it.
fn two_hosts_share_a_job(objects: &str, variables: &[(&'static str, OsString)]) {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let shared = tempfile::tempdir().expect("a folder");
    let host = |name: &str, devices: [&str; 2]| {
        let played = std::fs::read_to_string(device("mate10pro")).expect("a device file");
        let files = devices.map(|device| {
            let path = shared.path().join(format!("{device}.toml"));
            std::fs::write(&path, &played).expect("room");
            path
        });
        let lab = Lab::new(&format!(
            "[lab]\nstore = {url:?}\nhost = {name:?}\nobjects = {objects:?}\n[phones]\nlocal = {files:?}\n[gates]\n\
             load-percent = 100\n"
        ));
        let all = variables.iter().cloned();
        all.fold(lab, |lab, (name, value)| lab.with_variable(name, value))
    };
    let (one, two) = (host("rack-1", ["a", "b"]), host("rack-2", ["c", "d"]));
    let daemons = [one.daemon(), two.daemon()];
    for lab in [&one, &two] {
        lab.wait_until_open();
        lab.wait_for_devices(4);
    }
    one.submit(&job(
        "alexnet",
        "repeats = 8\n[[devices]]\nabi = \"x86_64\"\n[measure]\ndesign = \"local\"\nsamples = 400\n",
    ));
    two.succeed(&["job", "wait", "1", "--timeout", "4m"]);
    let kept = two.kept();
    let hosts: BTreeSet<_> = kept.runs.values().map(|run| run.host.as_deref()).collect();
    assert_eq!(hosts, [Some("rack-1"), Some("rack-2")].into());
    assert!(kept.runs.values().all(|run| run.attempt == 1));
    assert_eq!((at_hand(&one), at_hand(&two)), (1, 1));
    for daemon in daemons {
        daemon.stop();
    }
}

#[test]
fn hosts_that_share_a_folder_of_objects_share_a_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let objects = folder.path().join("objects");
    two_hosts_share_a_job(objects.to_str().expect("UTF-8"), &[]);
}

#[test]
#[ignore = "takes a minute: make slow-test"]
fn hosts_that_share_a_bucket_share_a_job() {
    let Some(server) = s3_server() else { return };
    let objects = format!("s3://{}/lab", server.bucket());
    two_hosts_share_a_job(&objects, &variables(server.address));
}

#[test]
fn a_job_is_refused_while_its_files_cannot_be_shared_and_its_runs_fetch_them() {
    let Some(server) = s3_server() else { return };
    let gate = Gate::before(server.address, |_| {});
    let bucket = server.bucket();
    let lab = with_variables(lab(&format!("s3://{bucket}"), ""), gate.address);
    gate.close();
    let daemon = lab.daemon();
    lab.wait_until_open();
    let beginning = format!("s3://{bucket} cannot be reached: ");
    assert!(lab.log().contains(&beginning), "{}", lab.log());
    let file = lab.path("job.toml");
    std::fs::write(&file, job("alexnet", EACH)).expect("room");
    let refused = lab.run(&["submit", file.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(4), "{said}");
    assert!(said.contains(&beginning), "{said}");
    assert!(lab.kept().jobs.is_empty());

    gate.open();
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    daemon.stop();
    lab.check_journals();
    assert_eq!(lab.profiles().len(), 2);
    let (files, kept) = (server.list(&bucket), lab.kept());
    let model = &kept.jobs[&1].spec.models[0].sha256;
    assert!(files.iter().any(|name| name.ends_with(model)), "{files:?}");
    assert!(!lab.log().contains("topsecret"), "{}", lab.log());
}

#[test]
fn an_object_store_that_cannot_be_used_is_named_before_the_lab_opens() {
    let refused = |lab: Lab| {
        let config = lab.path("config.toml");
        let ended = lab.run(&["daemon", "--config", config.to_str().expect("UTF-8")]);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(3), "{said}");
        assert!(!said.contains("topsecret"), "{said}");
        assert!(!lab.state().join("lab/lab.sqlite").exists());
        said
    };
    let said = refused(lab("s3://lab", "").with_variable("AWS_ACCESS_KEY_ID", "".into()));
    assert!(said.contains("AWS_ACCESS_KEY_ID is not set"), "{said}");
    let said = refused(lab("/proc/none", ""));
    assert!(
        said.contains("cannot use the folder /proc/none: "),
        "{said}"
    );

    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s3");
    std::fs::write(&file, "AWS_SECRET_ACCESS_KEY=topsecret\n").expect("room");
    let mode = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file, permissions).expect("our own");
    };
    let with_file = |file: &Path| {
        lab(
            "s3://lab",
            &format!("objects-credentials-file = {file:?}\n"),
        )
    };
    mode(0o644);
    let said = refused(with_file(&file));
    let sentence = format!("`chmod 600 {}` keeps it to its owner", file.display());
    assert!(said.contains(&sentence), "{said}");
    mode(0o600);
    let said = refused(with_file(&file).with_variable("AWS_ACCESS_KEY_ID", "".into()));
    assert!(said.contains("AWS_ACCESS_KEY_ID is not set"), "{said}");

    let Some(server) = s3_server() else { return };
    let said = refused(with_variables(lab("s3://nowhere", ""), server.address));
    assert!(said.contains("there is no bucket s3://nowhere"), "{said}");
}

#[test]
fn a_publication_that_cannot_be_shared_waits_also_for_the_next_daemon() {
    let Some(server) = s3_server() else { return };
    let gate = Gate::before(server.address, |_| {});
    let bucket = server.bucket();
    let lab = with_variables(lab(&format!("s3://{bucket}"), ""), gate.address);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", LONG));
    lab.wait_for("runs on both devices", || lab.blocks() >= 2);
    gate.close();
    let waiting = |run: &Run| {
        let reason = run.reason.as_deref().unwrap_or_default();
        let told = "measured, and waits for publication: it cannot be put into the object store: ";
        run.state == RunState::Parked && reason.starts_with(told)
    };
    lab.wait_for("runs that wait for publication", || {
        lab.kept().runs.values().all(waiting)
    });
    daemon.stop();
    let notes = || {
        let names = server.list(&bucket).into_iter();
        names.filter(|name| name.starts_with("runs/")).count()
    };
    assert_eq!(notes(), 0);
    gate.open();
    let daemon = lab.daemon();
    wait_for_job(&lab);
    daemon.stop();
    lab.check_journals();
    assert_eq!((lab.runs_done(), notes()), (2, 2));
    assert!(lab.kept().runs.values().all(|run| run.attempt == 1));
}

#[test]
fn a_host_has_what_another_one_has_published() {
    let Some(server) = postgres() else { return };
    let url = server.database();
    let shared = tempfile::tempdir().expect("a folder");
    let path = |name: &str| shared.path().join(name);
    // Each host has a folder of its own at this path.
    let profiles = path("profiles");
    let host = |name: &str, device: &str| {
        Lab::new(&format!(
            "[lab]\nstore = {url:?}\nhost = {name:?}\nobjects = {:?}\nprofiles = {profiles:?}\n[phones]\nlocal = [{device:?}]\n\
             [gates]\nload-percent = 100\n",
            path("objects")
        ))
    };
    let one = host("rack-1", "mate10pro");
    let daemon = one.daemon();
    one.wait_until_open();
    one.submit(&job("alexnet", EACH));
    wait_for_job(&one);
    daemon.stop();
    let published = one.kept().runs[&1].profile.clone().expect("a profile");
    let rest = published.strip_prefix(&profiles).expect("it is there");
    std::fs::rename(&profiles, path("profiles-of-one")).expect("our own");

    let two = host("rack-2", "oneplus7");
    let daemon = two.daemon();
    two.wait_for("the other host's profile", || published.is_dir());
    let digest = |folder: &Path| std::fs::read(folder.join("profile.json")).expect("it is there");
    let original = path("profiles-of-one").join(rest);
    assert_eq!(digest(&published), digest(&original));
    two.succeed(&["check", published.to_str().expect("UTF-8")]);
    daemon.stop();
}

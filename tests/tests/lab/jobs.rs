//! Jobs of a lab, and daemons that are there, twice or not at all.

use std::path::Path;

use layerlab_profiles::document::{Profile, ProfileDigest};
use layerlab_tests::lab::Lab;
use layerlab_tests::published::Published;
use layerlab_tests::{layerlab, model, succeed};

use super::{EACH, SIMULATED, job, wait_for_job};

#[test]
fn a_job_gives_the_profiles_that_the_command_gives() {
    let lab = Lab::new(SIMULATED);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let said = lab.submit(&job("alexnet", EACH));
    assert!(said.contains("Job 1"), "{said}");
    wait_for_job(&lab);
    let profiles = lab.profiles();
    assert_eq!(profiles.len(), 2, "{:?}", profiles.keys());
    lab.check_journals();
    for (number, device) in ["mate10pro", "oneplus7"].iter().enumerate() {
        let (model, out) = (model("alexnet"), lab.path(device));
        let (model, folder) = (model.display().to_string(), out.display().to_string());
        let options = ["--device", device, "--model", &model, "--out", &folder];
        lab.succeed(&[["profile", "--design", "local"].as_slice(), &options].concat());
        let of_lab = &profiles[&format!("profiles/{device}/alexnet/run-{}", number + 1)];
        let differences = of_lab.differences(&Published::read(&out));
        assert_eq!(differences, [""; 0], "the profiles of {device} differ");
    }
    let report = lab.succeed(&["report"]);
    assert!(report.starts_with("2 of 2 profiles published"), "{report}");
    // The same again is recognised.
    let again = lab.succeed(&["submit", lab.path("job.toml").to_str().expect("UTF-8")]);
    assert!(again.contains("Job 1 asks for the same"), "{again}");
    assert_eq!(lab.kept().jobs.len(), 1);
}

/// A model of an open dimension stands in a job once for each size, and what lies between is calculated of the profiles.
#[test]
fn a_job_measures_a_model_at_several_sizes() {
    let lab = Lab::new("[phones]\nlocal = [\"mate10pro\"]\n[gates]\nload-percent = 100\n");
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let model = model("variants/symbolic-size").display().to_string();
    let at = |height: u32| format!("{{ file = {model:?}, dims = {{ W = 32, H = {height} }} }}");
    let sizes = [64, 256].map(at).join(", ");
    lab.submit(&format!(
        "models = [{sizes}]\n[[devices]]\nserial = 'mate10pro'\n[measure]\ndesign = 'local'\n"
    ));
    wait_for_job(&lab);
    let folders: Vec<String> = (lab.kept().runs.values())
        .filter_map(|run| Some(run.profile.as_ref()?.display().to_string()))
        .collect();
    assert_eq!(folders.len(), 2, "{folders:?}");
    let between = [
        "interpolate",
        "--model",
        &model,
        "--dim",
        "W=32",
        "--dim",
        "H=128",
    ];
    let folders = folders.iter().map(String::as_str);
    let command: Vec<&str> = between.into_iter().chain(folders).collect();
    let said = lab.succeed(&command);
    assert!(said.contains("128"), "{said}");
    // The same size twice is the same model twice.
    let twice = [64, 64].map(at).join(", ");
    std::fs::write(
        lab.path("twice.toml"),
        format!("models = [{twice}]\n[[devices]]\nserial = 'mate10pro'\n"),
    )
    .expect("room");
    let path = lab.path("twice.toml").display().to_string();
    let refused = lab.run(&["submit", &path]);
    let said = layerlab_tests::stderr(&refused);
    assert!(said.contains("are the same model"), "{said}");
}

#[test]
fn a_job_measures_steady_times_as_the_command_does() {
    let lab = Lab::new("[phones]\nlocal = [\"mate10pro\"]\n[gates]\nload-percent = 100\n");
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let measure = "design = 'local'\nsamples = 6\nvisits = 3\ngap-us = 100000\nsteady = '12m'";
    lab.submit(&job(
        "vocnet-mini",
        &format!("[[devices]]\nserial = 'mate10pro'\n[measure]\n{measure}\n"),
    ));
    wait_for_job(&lab);
    let (model, out) = (model("vocnet-mini"), lab.path("by-command"));
    let (model, folder) = (model.display().to_string(), out.display().to_string());
    let options = ["--device", "mate10pro", "--model", &model, "--out", &folder];
    let measure = ["--design", "local", "--samples", "6", "--visits", "3"];
    let hot = ["--gap-us", "100000", "--steady", "12m"];
    lab.succeed(&[&["profile"], &measure[..], &hot, &options].concat());
    let read = |folder: &Path| Profile::read(folder).expect("a profile");
    let of_lab = read(&lab.data().join("profiles/mate10pro/vocnet-mini/run-1"));
    let by_command = read(&out);
    assert!(of_lab.steady.is_some());
    assert_eq!(of_lab.times, by_command.times);
    let steady = |profile: Profile| profile.steady.map(|steady| steady.times);
    assert_eq!(steady(of_lab), steady(by_command));
}

#[test]
fn a_lab_with_a_key_signs_what_it_publishes() {
    let keys = tempfile::tempdir().expect("a temporary folder");
    let key = keys.path().join("lab.key");
    succeed(layerlab().args(["key", "new"]).arg(&key));
    let lab = Lab::new(&format!(
        "lab.signing-key = '{}'\n{SIMULATED}",
        key.display()
    ));
    let _daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
    let profiles = lab.profiles();
    assert_eq!(profiles.len(), 2, "{:?}", profiles.keys());
    let public = format!("{}.pub", key.display());
    for name in profiles.keys() {
        let profile = lab.data().join(name);
        let said = succeed(
            layerlab()
                .arg("check")
                .arg(&profile)
                .args(["--key", &public]),
        );
        assert!(said.contains("a sound simulated profile"), "{said}");
        // The lab names it by its digest, too.
        let digest = ProfileDigest::of_folder(&profile).expect("a profile");
        let shown = lab.succeed(&["job", "show", "1"]);
        assert!(shown.contains(digest.short()), "{shown}");
    }
}

#[test]
fn a_second_daemon_is_refused() {
    let lab = Lab::new(SIMULATED);
    let first = lab.daemon();
    lab.wait_until_open();
    let config = lab.path("config.toml");
    let second = lab.run(&["daemon", "--config", config.to_str().expect("UTF-8")]);
    assert_eq!(second.status.code(), Some(4));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    let process = format!("(process {})", first.id());
    assert!(said.contains(&process), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    // The first one is none the worse for it.
    lab.submit(&job("alexnet", EACH));
    wait_for_job(&lab);
}

#[test]
fn without_a_daemon_commands_say_so() {
    let lab = Lab::new(SIMULATED);
    let file = lab.path("job.toml");
    std::fs::write(&file, job("alexnet", EACH)).expect("room");
    let output = lab.run(&["submit", file.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(4));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("layerlab daemon"), "{said}");
    assert!(lab.succeed(&["jobs"]).contains("No jobs"));
}

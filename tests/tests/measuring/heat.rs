//! A hot number is never published as a good one.

use std::path::{Path, PathBuf};
use std::process::Command;

use layerlab_profiles::Nanos;
use layerlab_profiles::document::Profile;
use layerlab_profiles::summary::Estimate;
use layerlab_tests::{file, layerlab, model, output, profile, stderr};

/// The device that heats, with `field = value` changed.
fn device(folder: &Path, name: &str, changes: &[(&str, &str)]) -> PathBuf {
    let mut text = std::fs::read_to_string(file("devices/heats.toml")).expect("the device");
    for (from, to) in changes {
        assert!(text.contains(from), "{from} is not in the device file");
        text = text.replace(from, to);
    }
    let path = folder.join(format!("{name}.toml"));
    std::fs::write(&path, text).expect("room");
    path
}

fn profile_hot(device: &Path, out: &Path) -> Command {
    let mut command = layerlab();
    profile(&mut command, 30, model("yolo-small"), device, out);
    command.args(["--gap-us", "0"]).env("LAYERLAB_LOG", "warn");
    command
}

fn numbers(profile: &Profile) -> Vec<Estimate> {
    let times = profile.times.iter().map(|row| row.time);
    times
        .flat_map(|time| [Some(time.compute), time.to_processor, time.from_processor])
        .flatten()
        .collect()
}

#[test]
fn a_phone_that_heats_gives_the_numbers_of_a_cool_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let hot = device(folder.path(), "hot", &[]);
    let cool = device(
        folder.path(),
        "cool",
        &[("power_watts = 12.0", "power_watts = 0.0")],
    );
    let mut published = Vec::new();
    for device in [&hot, &cool] {
        let out = device.with_extension("profile");
        let run = output(&mut profile_hot(device, &out));
        assert!(run.status.success(), "{}", stderr(&run));
        assert_eq!(
            stderr(&run).contains("rejected"),
            device == &hot,
            "{}",
            stderr(&run)
        );
        published.push(Profile::read(&out).expect("a profile"));
    }
    let [hot, cool] = &published[..] else {
        panic!("two profiles")
    };
    // What was thrown away is there to be seen, and used for nothing.
    let thrown_away = hot.blocks.iter().filter(|block| block.rejection.is_some());
    assert!(thrown_away.count() > 0);
    assert!(!hot.rejected.is_empty());
    assert!(cool.rejected.is_empty());
    assert!(hot.blocks.iter().any(|block| block.rested > Nanos::ZERO));
    assert_eq!(hot.samples.len(), cool.samples.len());
    let (of_hot, of_cool) = (numbers(hot), numbers(cool));
    assert_eq!(of_hot.len(), of_cool.len());
    assert!(of_hot.len() > 100);
    for (hot, cool) in of_hot.into_iter().zip(of_cool) {
        let (low, high) = hot.ci95.expect("an interval");
        assert!(
            (low..=high).contains(&cool.value),
            "{hot:?} against {cool:?}"
        );
    }
}

#[test]
fn a_phone_that_cannot_cool_down_ends_throttled_and_publishes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let sun = device(
        folder.path(),
        "sun",
        &[("ambient_celsius = 25.0", "ambient_celsius = 50.0")],
    );
    let out = folder.path().join("profile");
    let run = output(&mut profile_hot(&sun, &out));
    assert_eq!(run.status.code(), Some(4), "{}", stderr(&run));
    let said = stderr(&run);
    let last = said.lines().last().expect("a sentence");
    assert!(
        last.contains("throttled") && last.contains("nothing is published"),
        "{said}"
    );
    // Twenty minutes are the usual patience.
    assert!(last.contains("also after 1200 s of rest"), "{said}");
    // Nobody can carry a simulated phone into the shade.
    assert!(
        last.contains("its file says how warm it becomes") && !last.contains("cool the device"),
        "{said}"
    );
    assert!(!out.exists());
}

/// It does cool down, as another test here shows, but in more than a second.
#[test]
fn a_phone_that_may_not_rest_as_long_as_it_must_ends_throttled() {
    let folder = tempfile::tempdir().expect("a folder");
    let hot = device(folder.path(), "hot", &[]);
    let out = folder.path().join("profile");
    let run = output(profile_hot(&hot, &out).args(["--cool-down", "1s"]));
    assert_eq!(run.status.code(), Some(4), "{}", stderr(&run));
    let said = stderr(&run);
    assert!(said.contains("also after 1 s of rest"), "{said}");
    assert!(!out.exists());
}

/// Even the shortest block heats this phone too far: measuring again does not help.
#[test]
fn a_phone_that_every_block_overheats_ends_throttled() {
    let folder = tempfile::tempdir().expect("a folder");
    let tiny = device(
        folder.path(),
        "tiny",
        &[("joules_per_kelvin = 0.3", "joules_per_kelvin = 0.02")],
    );
    let out = folder.path().join("profile");
    let run = output(&mut profile_hot(&tiny, &out));
    assert_eq!(run.status.code(), Some(4), "{}", stderr(&run));
    assert!(stderr(&run).contains("however often"), "{}", stderr(&run));
    assert!(!out.exists());
}

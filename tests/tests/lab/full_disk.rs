//! A disk that fills up and is freed.

use std::io::Write;
use std::path::Path;
use std::process::Child;

use layerlab_tests::lab::{Lab, same_profiles};
use layerlab_tests::small_disk::small_disk;

use super::{EACH, LONG, SIMULATED, job, wait_for_job};

#[test]
fn a_disk_that_fills_up_and_is_freed_loses_nothing() {
    let name = "full_disk::a_disk_that_fills_up_and_is_freed_loses_nothing";
    let Some(disk) = small_disk("48m", name) else {
        return;
    };
    let undisturbed = Lab::new(SIMULATED);
    let daemon = undisturbed.daemon();
    undisturbed.wait_until_open();
    undisturbed.submit(&job("alexnet", LONG));
    wait_for_job(&undisturbed);
    daemon.stop();

    let lab = Lab::new(SIMULATED).on(&disk);
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", LONG));
    // The agents have what they need, and measure.
    lab.wait_for("progress on both devices", || {
        let devices = lab.devices().into_iter();
        let progress = devices.filter_map(|one| one.progress);
        progress.filter(|&(done, _)| done > 0).count() == 2
    });
    let filler = disk.join("filler");
    for _ in 0..3 {
        let noticed = complaints(&lab);
        fill(&filler);
        // The agents may find out first, and wait: so that the lab has something to write, people ask it for something.
        let mut waits = reserve(&lab);
        lab.wait_for("a daemon that has no room", || {
            if has_succeeded(&mut waits) {
                waits = reserve(&lab);
            }
            complaints(&lab) > noticed
        });
        assert!(!lab.is_over(), "the job was over too soon");
        std::fs::remove_file(&filler).expect("it is there");
        lab.wait_for("an answer after there was room again", || {
            has_succeeded(&mut waits)
        });
    }
    wait_for_job(&lab);
    same_profiles(&lab, &undisturbed, &[]);
    daemon.stop();
}

#[test]
fn a_host_without_room_for_its_agents_blames_no_device() {
    let name = "full_disk::a_host_without_room_for_its_agents_blames_no_device";
    let Some(disk) = small_disk("48m", name) else {
        return;
    };
    let lab = Lab::new(SIMULATED);
    // The store has room, the agents have not.
    std::fs::create_dir_all(lab.state().join("lab")).expect("room");
    std::os::unix::fs::symlink(&disk, lab.state().join("lab/devices")).expect("room");
    let filler = disk.join("filler");
    fill(&filler);
    let full = std::fs::metadata(&filler).expect("it is there").len();
    let file = std::fs::File::options().write(true).open(&filler);
    // Room for an agent to start, and for no model.
    file.and_then(|file| file.set_len(full - (64 << 10)))
        .expect("our own file");
    let daemon = lab.daemon();
    lab.wait_until_open();
    lab.submit(&job("alexnet", EACH));
    lab.wait_for("a daemon that waits for room on both devices", || {
        lab.log().matches("waiting for room").count() >= 2
    });
    let jobs = lab.succeed(&["jobs"]);
    assert!(jobs.contains("is not ready: cannot store"), "{jobs}");
    let left_alone = lab.succeed(&["quarantine", "list"]);
    assert_eq!(left_alone, "no phone is in quarantine\n");
    std::fs::remove_file(&filler).expect("it is there");
    wait_for_job(&lab);
    let attempts = lab.kept().runs.into_values().map(|run| run.attempt);
    assert_eq!(attempts.collect::<Vec<_>>(), [1, 1]);
    daemon.stop();
}

/// How often its daemon has said that it needs room.
fn complaints(lab: &Lab) -> usize {
    lab.log().matches("make room").count()
}

/// Asks for a device on a day on which nobody wants it.
fn reserve(lab: &Lab) -> Child {
    let day = ["--from", "30d", "--until", "31d"];
    lab.start(&[["reserve", "oneplus7"].as_slice(), &day].concat())
}

/// Whether a command has ended; it must have succeeded.
fn has_succeeded(command: &mut Child) -> bool {
    let ended = command.try_wait().expect("it was started");
    ended.is_some_and(|status| {
        assert!(status.success(), "{status}");
        true
    })
}

/// Takes all the room that there is.
pub(crate) fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).expect("a name takes no room");
    let chunk = vec![0; 1 << 16];
    while file.write_all(&chunk).is_ok() {}
    while file.write_all(&chunk[..512]).is_ok() {}
}

//! Jobs that measure how the frames of a video are answered.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use layerlab_lab::record::{RunState, What};
use layerlab_profiles::Nanos;
use layerlab_profiles::video::{VideoDocument, check_video_directory};
use layerlab_protocol::{Entry, Event};
use layerlab_tests::farm::Farm;
use layerlab_tests::lab::{Lab, simulating};
use layerlab_tests::scenes::scenes;
use layerlab_tests::{device, layerlab, model, succeed};

use super::{SIMULATED, job, wait_for_job};

/// So many take long enough to be interrupted three times, the later ones where a device answers while a daemon is slow to begin.
const IMAGES: [u32; 3] = [60, 240, 960];

/// Where they are answered: an accelerator's rounding is simulated at length.
const ON_A_CPU: &str = "processor = 'cpu'\n";

/// A job for the frames of the first scenes on a device.
fn frames(lab: &Lab, images: u32, device: &str, more: &str) -> String {
    let set = scenes(
        &lab.path(""),
        images,
        &["--metric", "multi-label", "--replace"],
    );
    let rest = format!("[[devices]]\nserial = '{device}'\n[video]\nset = {set:?}\n{more}");
    job("vocnet-mini", &rest)
}

/// The folder in which a run has published its frames.
fn published(lab: &Lab, run: i64) -> PathBuf {
    let run = &lab.kept().runs[&run];
    assert_eq!((run.state, &run.profile), (RunState::Done, &None));
    run.video.clone().expect("it is published")
}

/// What depends on no clock.
fn answered(folder: &Path) -> impl PartialEq + std::fmt::Debug + use<> {
    let (document, _) = check_video_directory(folder).expect("a measurement");
    let VideoDocument {
        mut answers,
        frames,
        accuracies,
        ..
    } = document;
    for answer in &mut answers {
        answer.infer = Nanos::ZERO;
    }
    let frames: Vec<_> = frames
        .into_iter()
        .map(|row| (row.image, row.form, row.bytes, row.predicted, row.hit))
        .collect();
    (answers, frames, accuracies)
}

#[test]
fn a_job_of_frames_gives_what_the_command_gives() {
    let lab = Lab::new(SIMULATED);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let file = lab.path("job.toml");
    fs::write(
        &file,
        frames(&lab, 8, "mate10pro", "answers = 6\nframes = 2\nseed = 3\n"),
    )
    .expect("room");
    let file = file.to_str().expect("UTF-8");
    let submitted = lab.run(&["submit", file]);
    let said = String::from_utf8_lossy(&submitted.stdout).into_owned();
    assert!(said.contains("1 video measurement."), "{said}");
    let noted = String::from_utf8_lossy(&submitted.stderr).into_owned();
    assert!(
        noted.contains("frames of 134, 179, 224 pixels are left out"),
        "{noted}"
    );
    // The lab has a copy of its own.
    fs::rename(lab.path("scenes.set"), lab.path("moved.set")).expect("it is there");
    wait_for_job(&lab);
    let of_lab = published(&lab, 1);
    assert_eq!(
        of_lab,
        lab.data().join("profiles/mate10pro/vocnet-mini/run-1")
    );
    let checked = succeed(layerlab().args(["video", "check"]).arg(&of_lab));
    assert!(checked.contains("6 answers, 18 frames"), "{checked}");

    let (model, set, out) = (
        model("vocnet-mini"),
        lab.path("moved.set"),
        lab.path("by-command"),
    );
    let mut command = layerlab();
    command.args(["video", "measure", "--device", "mate10pro"]);
    command.args(["--answers", "6", "--frames", "2", "--seed", "3"]);
    command.arg("--model").arg(model).arg("--set").arg(set);
    succeed(command.arg("--out").arg(&out));
    assert_eq!(answered(&of_lab), answered(&out));

    // Whoever looks sees what it is, and no profile.
    let shown = lab.succeed(&["job", "show", "1"]);
    for word in ["video measurement", "run-1", "scenes.set", "with doubts"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    assert!(!shown.contains("design"), "{shown}");
    let report = lab.succeed(&["report"]);
    assert!(
        report.starts_with("1 of 1 video measurement published"),
        "{report}"
    );
    assert!(report.contains("mate10pro (simulated)"), "{report}");
    let jobs = lab.succeed(&["jobs", "--all"]);
    assert!(jobs.contains("1 of 1") || jobs.contains("done"), "{jobs}");
    let profiles = lab.succeed(&["profiles", "list", "--json"]);
    assert_eq!(profiles.trim(), "[]");
    // The same again is recognised, and other frames are other work.
    fs::rename(lab.path("moved.set"), lab.path("scenes.set")).expect("it is there");
    assert!(
        lab.succeed(&["submit", file])
            .contains("Job 1 asks for the same")
    );
}

/// The places of the images that were answered, as often as that was.
fn answers(journal: &[Entry]) -> Vec<u64> {
    let image = |entry: &Entry| match entry.event {
        Event::FramesAnswered { image, .. } => Some(image),
        _ => None,
    };
    journal.iter().filter_map(image).collect()
}

/// A lab that answered frames on a device while its daemon was killed, stopped and killed again.
struct Interrupted {
    _lab: Lab,
    images: u32,
    /// What it has published.
    folder: PathBuf,
}

/// Interrupts a new lab of `labs`, and other ones with more images while the device is through with them too soon.
fn interrupted(labs: impl Fn() -> Lab, device: &str) -> Interrupted {
    let attempt = |images| {
        let lab = labs();
        let folder = interrupted_lab(&lab, device, images)?;
        Some(Interrupted {
            _lab: lab,
            images,
            folder,
        })
    };
    let interrupted = IMAGES.into_iter().find_map(attempt);
    interrupted.expect("no device is through with so many images before it was interrupted")
}

/// The folder that `lab` publishes, unless the device was through with so many images before it was interrupted three times.
fn interrupted_lab(lab: &Lab, device: &str, images: u32) -> Option<PathBuf> {
    let mut daemon = lab.daemon();
    lab.wait_until_open();
    lab.wait_for_devices(1);
    lab.submit(&frames(lab, images, device, ON_A_CPU));
    let so_far = || answers(&lab.journal(1, "video")).len();
    for is_killed in [true, false, true] {
        let before = so_far();
        lab.wait_for("more answers", || so_far() > before || lab.is_over());
        match is_killed {
            true => daemon.kill(),
            false => daemon.stop(),
        }
        if lab.is_over() {
            // Nothing went wrong: it was only too soon.
            published(lab, 1);
            return None;
        }
        daemon = lab.daemon();
        lab.wait_until_open();
    }
    wait_for_job(lab);
    let journal = lab.journal(1, "video");
    let numbers: Vec<u64> = journal.iter().map(|entry| entry.sequence).collect();
    assert_eq!(numbers, (1..=journal.len() as u64).collect::<Vec<_>>());
    let answered = answers(&journal);
    let different: BTreeSet<u64> = answered.iter().copied().collect();
    let all = images as usize;
    assert_eq!((answered.len(), different.len()), (all, all));

    let folder = published(lab, 1);
    let run = &lab.kept().runs[&1];
    assert_eq!(run.attempt, 1, "it went on");
    let told = lab.events().into_iter();
    let told = told.filter(|event| matches!(event.what, What::VideoPublished { .. }));
    assert_eq!(told.count(), 1);
    let beside = fs::read_dir(folder.parent().expect("a folder")).expect("a folder");
    assert_eq!(beside.count(), 1, "nothing half done lies beside it");
    succeed(layerlab().args(["video", "check"]).arg(&folder));
    daemon.stop();
    Some(folder)
}

#[test]
fn a_daemon_that_is_killed_and_stopped_while_frames_are_answered_loses_none_and_publishes_once() {
    let interrupted = interrupted(|| Lab::new(SIMULATED), "mate10pro");
    let undisturbed = Lab::new(SIMULATED);
    let daemon = undisturbed.daemon();
    undisturbed.wait_until_open();
    let images = interrupted.images;
    undisturbed.submit(&frames(&undisturbed, images, "mate10pro", ON_A_CPU));
    wait_for_job(&undisturbed);
    let other = published(&undisturbed, 1);
    assert_eq!(answered(&interrupted.folder), answered(&other));
    daemon.stop();
    // The device has forgotten what is published.
    assert_eq!(
        journals_of_frames(&undisturbed.state().join("lab/devices")),
        [""; 0]
    );
}

/// The names of the journals of frames in a folder of agents.
fn journals_of_frames(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("a file");
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            names.extend(journals_of_frames(&entry.path()));
        } else if name.contains("-video") {
            names.push(name);
        }
    }
    names
}

#[test]
fn a_phone_answers_frames_on_whatever_becomes_of_the_daemon() {
    let Some(farm) = Farm::new() else { return };
    let phones = [farm.phone("P1")];
    let configuration = simulating(&phones, &device("noisy"));
    let labs = || Lab::new(&configuration).with_phones(&farm);
    let interrupted = interrupted(labs, "P1");
    let (document, _) = check_video_directory(&interrupted.folder).expect("a measurement");
    let provenance = &document.header.provenance;
    assert!(provenance.phone.is_some() && provenance.fitness.is_some());
    assert!(document.header.device.simulated);
}

#[test]
fn frames_that_cannot_be_measured_are_refused_or_given_up_with_the_reason() {
    let lab = Lab::new(SIMULATED);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let file = lab.path("job.toml");
    let path = file.to_str().expect("UTF-8");
    fs::write(&file, frames(&lab, 4, "mate10pro", "answers = 5\n")).expect("room");
    let refused = lab.run(&["submit", path]);
    assert_eq!(refused.status.code(), Some(3));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("`video.answers`") && said.contains("has 4 images"),
        "{said}"
    );
    assert!(lab.kept().jobs.is_empty());

    // A device may come that has it; this one has not.
    let said = lab.submit(&frames(&lab, 4, "mate10pro", "processor = 'tpu'\n"));
    assert!(said.contains("Job 1"), "{said}");
    let waited = lab.run(&["job", "wait", "1", "--timeout", "2m"]);
    assert_eq!(waited.status.code(), Some(4));
    let said = String::from_utf8_lossy(&waited.stderr).into_owned();
    assert!(said.contains("no processor `tpu`, but cpu"), "{said}");
    lab.succeed(&["job", "show", "1"]);
}

#[test]
fn frames_that_cannot_be_published_are_when_they_can_be() {
    let lab = Lab::new(SIMULATED);
    let _daemon = lab.daemon();
    lab.wait_until_open();
    let out = lab.path("out");
    let frames = frames(&lab, 12, "mate10pro", "");
    lab.submit(&format!("profiles = {out:?}\n{frames}"));
    // What was there when the job was submitted is a file by now.
    fs::remove_dir(&out).expect("it is empty");
    fs::write(&out, "").expect("room");
    lab.wait_for("a run that waits for publication", || {
        let run = lab.kept().runs.remove(&1).expect("a run");
        let waits = |reason: String| reason.contains("waits for publication");
        run.reason.is_some_and(waits)
    });
    fs::remove_file(&out).expect("it is there");
    wait_for_job(&lab);
    let folder = published(&lab, 1);
    assert!(folder.starts_with(&out), "{}", folder.display());
    succeed(layerlab().args(["video", "check"]).arg(folder));
}

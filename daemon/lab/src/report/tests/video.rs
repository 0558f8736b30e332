//! Measurements of frames in a report.

use super::*;
use crate::job::{RunKind, VideoSpec};

/// A night in which the frames of a video were measured, in this folder, and a profile of the same model.
fn night(folder: &Path) -> Lab {
    let mut lab = Lab::default();
    lab.device("R58", "kirin970", "HUAWEI Mate 10 Pro, Android 10");
    let profiles = lab.job("profiles", JobState::Done, soc("kirin970"));
    let frames = lab.job("frames", JobState::Open, soc("kirin970"));
    let job = lab.kept.jobs.get_mut(&frames).expect("the job");
    job.spec.video = Some(VideoSpec {
        set_sha256: "ef".repeat(32),
        path: "frames.set".into(),
        processor: None,
        answers: None,
        frames: 500,
        seed: 1,
    });
    for (job, ended) in [(profiles, "20 23:00"), (frames, "21 01:00")] {
        let run = lab.run(job, 0, RunState::Done);
        run.phone = Some("R58".to_owned());
        run.started = Some(at("20 22:00"));
        run.ended = Some(at(ended));
    }
    let run = lab.kept.runs.get_mut(&1).expect("a run");
    run.profile = Some("profiles/alexnet-R58".into());
    let run = lab.kept.runs.get_mut(&2).expect("a run");
    run.video = Some(folder.to_owned());
    let published = What::VideoPublished {
        folder: folder.to_owned(),
        findings: vec!["its halves are small".to_owned()],
    };
    lab.event("21 01:00", Some(2), Some("R58"), published);
    lab
}

#[test]
fn measured_frames_are_no_profiles() {
    let folder = tempfile::tempdir().expect("a folder");
    let header = r#"{"device": {"simulated": true}, "processor": {"emulated": true}}"#;
    std::fs::write(folder.path().join("video.json"), header).expect("room");
    let mut report = night(folder.path()).report();
    assert_eq!(
        report.headline,
        "2 of 2 profiles and video measurements published, 1 of them with findings."
    );
    report.read_profiles(true);
    let kinds: Vec<RunKind> = report.jobs.iter().map(|job| job.kind).collect();
    assert_eq!(kinds, [RunKind::Profile, RunKind::Video]);
    let [profile, frames] = [0, 1].map(|job| &report.jobs[job].runs[0]);
    assert!(profile.published.is_some() && profile.video.is_none());
    assert!(frames.published.is_none() && frames.absent.is_none());
    let video = frames.video.as_ref().expect("a measurement");
    assert_eq!(
        (video.simulated, video.emulated, video.gone),
        (Some(true), Some(true), false)
    );
    let text = report.text(&TimeZone::UTC);
    let (_, section) = text.split_once("Video measurements").expect("a section");
    for word in [
        "frames (2)",
        "alexnet",
        "R58 (simulated)",
        "its halves are small",
    ] {
        let row = section.lines().find(|line| line.contains("frames (2)"));
        assert!(row.is_some_and(|row| row.contains(word)), "{word}: {text}");
    }
    // What the model takes is what its profile says, however new the frames are.
    let matrix = super::super::matrix::Matrix::of(&report).expect("a table");
    let fields: Vec<_> = matrix
        .models
        .iter()
        .flat_map(|(_, fields)| fields)
        .flatten()
        .collect();
    assert_eq!(
        fields
            .iter()
            .map(|field| field.run.number)
            .collect::<Vec<_>>(),
        [1]
    );
    // And what one program says of the night, another one reads.
    let json = serde_json::to_string(&report).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Report>(&json).expect("a report"),
        report
    );
}

#[test]
fn a_measurement_that_was_deleted_is_missed() {
    let mut report = night(Path::new("/nowhere")).report();
    report.read_profiles(true);
    let video = report.jobs[1].runs[0]
        .video
        .as_ref()
        .expect("a measurement");
    assert!(video.gone);
    assert!(report.text(&TimeZone::UTC).contains("its folder is gone"));
}

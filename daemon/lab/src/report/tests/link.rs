//! Measurements of links in a report.

use layerlab_profiles::SignedNanos;
use layerlab_profiles::link::LinkDirection;

use super::super::{LinkPublication, MeasuredDirection};
use super::*;
use crate::job::RunKind;

/// A night in which a link was measured, in this folder, beside a profile.
fn night(folder: &Path) -> Lab {
    let mut lab = Lab::default();
    lab.device("R58", "kirin970", "HUAWEI Mate 10 Pro, Android 10");
    let profiles = lab.job("profiles", JobState::Done, soc("kirin970"));
    let links = lab.job("links", JobState::Done, soc("kirin970"));
    let job = lab.kept.jobs.get_mut(&links).expect("the job");
    job.spec.models.clear();
    job.spec.link = Some(layerlab_campaign::LinkSettings::usual(
        "lab-wifi".to_owned(),
        layerlab_profiles::link::LinkKind::Wifi,
        "192.168.1.2:7377".to_owned(),
        "token".into(),
    ));
    for (job, ended) in [(profiles, "20 23:00"), (links, "21 01:00")] {
        let run = lab.run(job, 0, RunState::Done);
        run.phone = Some("R58".to_owned());
        run.started = Some(at("20 22:00"));
        run.ended = Some(at(ended));
    }
    let run = lab.kept.runs.get_mut(&1).expect("a run");
    run.profile = Some("profiles/alexnet-R58".into());
    let run = lab.kept.runs.get_mut(&2).expect("a run");
    run.link = Some(folder.to_owned());
    let published = What::LinkPublished {
        folder: folder.to_owned(),
        findings: vec!["the upload is unsteady".to_owned()],
    };
    lab.event("21 01:00", Some(2), Some("R58"), published);
    lab
}

fn carried(direction: LinkDirection) -> MeasuredDirection {
    let ns = SignedNanos::from_nanos;
    MeasuredDirection {
        direction,
        bandwidth_bps: 36_120_000,
        bandwidth_ci95_bps: Some((35_900_000, 36_400_000)),
        rtt_ns: ns(12_100_000),
        rtt_ci95_ns: Some((ns(12_000_000), ns(12_300_000))),
        echo_ns: ns(11_900_000),
        echo_ci95_ns: None,
        residual_percent: 12.5,
        unsteady: true,
        samples: 50,
    }
}

#[test]
fn a_measured_link_is_told_with_what_it_carries_and_is_no_profile() {
    let mut report = night(Path::new("/nowhere")).report();
    assert_eq!(
        report.headline,
        "2 of 2 profiles and link measurements published, 1 of them with findings."
    );
    let kinds: Vec<RunKind> = report.jobs.iter().map(|job| job.kind).collect();
    assert_eq!(kinds, [RunKind::Profile, RunKind::Link]);
    let run = &mut report.jobs[1].runs[0];
    assert!(run.published.is_none() && run.video.is_none() && run.absent.is_none());
    assert_eq!(run.model, "lab-wifi");
    let link = run.link.as_mut().expect("a measurement");
    *link = LinkPublication {
        kind: Some(layerlab_profiles::link::LinkKind::Shaped),
        simulated: Some(true),
        directions: LinkDirection::ALL.map(carried).to_vec(),
        ..link.clone()
    };
    let text = report.text(&TimeZone::UTC);
    let (_, section) = text.split_once("Link measurements").expect("a section");
    let row = section.lines().find(|line| line.contains("links (2)"));
    let row = row.expect("a row");
    for word in [
        "lab-wifi (shaped, simulated)",
        "36.1200 Mbit/s (35.9000 to 36.4000), round trip 12.10 ms (12.00 ms to 12.30 ms), residual 12.5 %, unsteady",
        "/nowhere",
        "the upload is unsteady",
    ] {
        assert!(row.contains(word), "{word}: {text}");
    }
    // A link that was shaped makes no simulated device of the phone.
    assert!(!text.contains("R58 (simulated)"), "{text}");
    // Nor is it a model.
    let matrix = super::super::matrix::Matrix::of(&report).expect("a table");
    assert_eq!(matrix.models.len(), 1);
    assert!(report.html(&TimeZone::UTC).contains("Link measurements"));
    let json = serde_json::to_string(&report).expect("JSON");
    assert_eq!(
        serde_json::from_str::<Report>(&json).expect("a report"),
        report
    );
}

#[test]
fn a_link_that_was_deleted_is_missed() {
    let mut report = night(Path::new("/nowhere")).report();
    report.read_profiles(true);
    let link = report.jobs[1].runs[0].link.as_ref();
    assert!(link.is_some_and(|link| link.gone && link.directions.is_empty()));
    assert!(report.text(&TimeZone::UTC).contains("its folder is gone"));
}

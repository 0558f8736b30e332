//! Bodies as each version of layerlab wrote them. They are in people's stores: what is frozen here does not change.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use layerlab_campaign::LinkSettings;
use layerlab_profiles::document::HashedFile;
use layerlab_profiles::link::LinkKind;

use super::*;
use crate::job::{TwinSpec, VideoSpec};
use crate::record::{
    Device, DeviceQuarantine, Event, Job, JobState, Run, RunState, Spent, Verdict, What,
};
use crate::store::tests::samples;

fn time() -> Timestamp {
    samples::time(7200)
}

fn full_job() -> Job {
    let mut job = samples::job(3);
    // The bodies were frozen before placements could be on more than two processors.
    if let Some(accuracy) = &mut job.spec.accuracy {
        accuracy.processors.clear();
    }
    job.content_sha256 = job.spec.content_sha256();
    job.spec.deadline = Some(time());
    job.spec.devices[0].android = Some(">= 12".parse().expect("a requirement"));
    job.spec.devices[0].pool = Some("night".to_owned());
    job.spec.measure.processors = vec!["cpu".to_owned(), "npu".to_owned()];
    job
}

fn full_run() -> Run {
    Run {
        only: Some("PHONE1".to_owned()),
        state: RunState::Failed,
        phone: Some("PHONE1".to_owned()),
        ended: Some(time()),
        profile: Some("profiles/run-2".into()),
        journals_removed: Some(time()),
        stays_without_block: 4,
        ..samples::run(2)
    }
}

fn full_device() -> Device {
    Device {
        simulated: true,
        soc: Some("SM8550".to_owned()),
        abi: Some("arm64-v8a".to_owned()),
        ..samples::device("PHONE1")
    }
}

/// One event of each kind that the first versions knew.
fn events() -> Vec<Event> {
    let reason = || "it's hot".to_owned();
    let kinds = [
        What::DaemonStarted { host: None },
        What::DaemonStopped { host: None },
        What::Submitted,
        What::JobEnded {
            state: JobState::Expired,
        },
        What::Paused,
        What::Resumed,
        What::RetryAsked,
        What::DeviceCame,
        What::DeviceGone,
        What::Quarantined {
            reason: reason(),
            until: time(),
        },
        What::Reserved {
            from: samples::time(0),
            until: time(),
            note: "debugging".to_owned(),
        },
        What::ReservationLifted,
        What::Started { attempt: 2 },
        What::Continued,
        What::NotReady { reason: reason() },
        What::Parked { reason: reason() },
        What::AttemptFailed { reason: reason() },
        What::BlockRejected { reason: reason() },
        What::Published {
            profile: "profiles/run-2".into(),
            findings: vec!["additivity".to_owned()],
        },
        What::Failed { reason: reason() },
        What::Trouble { reason: reason() },
    ];
    let event = |(number, what)| Event {
        run: Some(2),
        what,
        ..samples::event(number)
    };
    (1..).zip(kinds).map(event).collect()
}

/// Each line of the frozen bodies of a version is the record of the same place.
fn check<T: StoredRecord + PartialEq + Debug>(frozen: &str, expected: &[T]) {
    let found: Vec<T> = frozen
        .lines()
        .map(|body| record(body).expect("a record"))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn bodies_of_version_0_are_read() {
    check(include_str!("frozen/job-0.jsonl"), &[full_job()]);
    let began = Run {
        spent: Spent::default(),
        journals_removed: None,
        stays_without_block: 0,
        ..full_run()
    };
    check(include_str!("frozen/run-0.jsonl"), &[full_run(), began]);
    let reservations = [samples::reservation(1)];
    check(include_str!("frozen/reservation-0.jsonl"), &reservations);
    check(include_str!("frozen/event-0.jsonl"), &events());
}

/// The first devices that were kept did not say whether they are simulated; their descriptions did.
#[test]
fn devices_of_version_0_are_simulated_if_they_or_their_descriptions_say_so() {
    let local = |description: &str, simulated| Device {
        name: "mate10pro".to_owned(),
        serial: "mate10pro".to_owned(),
        description: description.to_owned(),
        simulated,
        abi: Some("x86_64".to_owned()),
        ..Device::default()
    };
    let expected = [
        full_device(),
        local("simulated", true),
        local("this host", false),
        local("a phone that was never simulated", false),
        local("simulated", false),
    ];
    check(include_str!("frozen/device-0.jsonl"), &expected);
}

/// What is written is read as it was, and is what was frozen.
fn check_newest<T: StoredRecord + PartialEq + Debug>(frozen: &str, records: &[T]) {
    check(frozen, records);
    let written = records.iter().map(|one| body(one).expect("JSON"));
    let frozen: Vec<&str> = frozen.lines().collect();
    assert_eq!(written.collect::<Vec<_>>(), frozen);
}

#[test]
fn version_1_is_written_and_read() {
    let reservations = [samples::reservation(1)];
    check_newest(include_str!("frozen/reservation-1.jsonl"), &reservations);
    let quarantine = DeviceQuarantine {
        device: "PHONE1".to_owned(),
        reason: "it's hot".to_owned(),
        since: samples::time(0),
        until: time(),
        by: "a command on host `rack-1`".to_owned(),
    };
    check_newest(include_str!("frozen/quarantine-1.jsonl"), &[quarantine]);
}

/// Devices have been of version 2 since phones may be carried from one host to another.
#[test]
fn devices_of_older_versions_are_read_and_version_2_is_written() {
    check(include_str!("frozen/device-1.jsonl"), &[full_device()]);
    let booted = Device {
        boot_id: Some("6f9619ff-8b86-d011-b42d-00cf4fc964ff".to_owned()),
        ..full_device()
    };
    let all = [full_device(), booted];
    check_newest(include_str!("frozen/device-2.jsonl"), &all);
}

/// Jobs have been of version 2 since they may ask for steady times and for energy, of version 3 since they may ask for frames,
/// of version 4 since they may ask for a link, of version 5 since they may choose hosts, and of version 6 since they
/// say how long a device may rest.
#[test]
fn jobs_of_older_versions_are_read_and_version_6_is_written() {
    check(include_str!("frozen/job-1.jsonl"), &[full_job()]);
    let mut hot = full_job();
    hot.spec.measure.visits = 7;
    hot.spec.measure.steady = Some(Duration::from_secs(1800));
    hot.spec.measure.energy = Some(Duration::from_secs(30));
    hot.spec.measure.energy_visits = 4;
    hot.content_sha256 = hot.spec.content_sha256();
    assert_ne!(hot.content_sha256, full_job().content_sha256);
    let older = [full_job(), hot.clone()];
    check(include_str!("frozen/job-2.jsonl"), &older);
    let mut frames = full_job();
    frames.spec.accuracy = None;
    frames.spec.video = Some(VideoSpec {
        set_sha256: "56".repeat(32),
        path: "sets/frames.set".into(),
        processor: Some("npu".to_owned()),
        answers: Some(1000),
        frames: 500,
        seed: u64::MAX,
    });
    frames.content_sha256 = frames.spec.content_sha256();
    let older = [full_job(), hot, frames];
    check(include_str!("frozen/job-3.jsonl"), &older);
    let mut link = full_job();
    link.spec.models.clear();
    link.spec.accuracy = None;
    link.spec.link = Some(LinkSettings {
        name: "lab-wifi".to_owned(),
        carrier: LinkKind::Wifi,
        server: "192.168.1.2:7377".to_owned(),
        token_file: "secrets/edge-token".into(),
        tunnel: false,
        shape: Some("5mbit,75ms".parse().expect("a shape")),
        repeats: 10,
        echoes: 200,
        connections: Some(4),
        gap_us: 20_000,
        trace: Some(Duration::from_secs(10)),
        seed: u64::MAX,
    });
    link.content_sha256 = link.spec.content_sha256();
    let older = [&older[..], &[link]].concat();
    check(include_str!("frozen/job-4.jsonl"), &older);
    let mut on_hosts = full_job();
    on_hosts.spec.hosts = vec!["rack-1".to_owned(), "rack-2".to_owned()];
    on_hosts.content_sha256 = on_hosts.spec.content_sha256();
    let older = [&older[..], &[on_hosts]].concat();
    check(include_str!("frozen/job-5.jsonl"), &older);
    let mut rested = full_job();
    rested.spec.measure.cool_down = Duration::from_secs(45 * 60);
    rested.content_sha256 = rested.spec.content_sha256();
    assert_ne!(rested.content_sha256, full_job().content_sha256);
    let all = [&older[..], &[rested]].concat();
    check_newest(include_str!("frozen/job-6.jsonl"), &all);
}

/// Runs have been of version 2 since their profiles are compared with those before them, of version 3 since they may measure
/// frames, of version 4 since they may measure a link, of version 5 since a lab may have several hosts, and of version 6 since
/// a profile may be compared with several.
#[test]
fn runs_of_older_versions_are_read_and_version_6_is_written() {
    check(include_str!("frozen/run-1.jsonl"), &[full_run()]);
    let verdict = Verdict {
        against: "profiles/run-1".into(),
        is_baseline: true,
        good: 1,
        tolerance: 0.05,
        alpha: 0.01,
        numbers: 34,
        worse: vec!["layer 1 C1 on cpu: +9.0 % ± 1.0 %".to_owned()],
        may_be_worse: 3,
        changed: vec!["the threads on cpu".to_owned()],
        repeat_alarmed: Some(true),
    };
    let beside_several = Run {
        verdict: Some(Verdict {
            is_baseline: false,
            good: 8,
            ..verdict.clone()
        }),
        ..full_run()
    };
    let worse = Run {
        verdict: Some(verdict),
        ..full_run()
    };
    let older = [full_run(), worse.clone()];
    check(include_str!("frozen/run-2.jsonl"), &older);
    let frames = Run {
        profile: None,
        video: Some("profiles/run-2".into()),
        ..full_run()
    };
    let older = [full_run(), worse, frames];
    check(include_str!("frozen/run-3.jsonl"), &older);
    let link = Run {
        profile: None,
        link: Some("profiles/run-2".into()),
        ..full_run()
    };
    let older = [&older[..], &[link]].concat();
    check(include_str!("frozen/run-4.jsonl"), &older);
    let claimed = Run {
        host: Some("rack-1".to_owned()),
        ..full_run()
    };
    let older = [&older[..], &[claimed]].concat();
    check(include_str!("frozen/run-5.jsonl"), &older);
    let all = [&older[..], &[beside_several]].concat();
    check_newest(include_str!("frozen/run-6.jsonl"), &all);
}

/// Events have been of version 2 since devices in quarantine may be used again before its end, of version 3 since
/// profiles are compared with those before them, of version 4 since the lab is on the web, of version 5 since runs may
/// measure frames, of version 6 since they may measure a link, and of version 7 since a lab may have several hosts.
#[test]
fn events_of_older_versions_are_read_and_version_7_is_written() {
    check(include_str!("frozen/event-1.jsonl"), &events());
    let mut all = events();
    all.push(Event {
        run: Some(2),
        what: What::QuarantineLifted,
        ..samples::event(22)
    });
    check(include_str!("frozen/event-2.jsonl"), &all);
    all.push(Event {
        run: Some(2),
        what: What::Worse {
            than: "profiles/run-1".into(),
            numbers: vec!["layer 1 C1 on cpu: +9.0 % ± 1.0 %".to_owned()],
        },
        ..samples::event(23)
    });
    check(include_str!("frozen/event-3.jsonl"), &all);
    all.push(Event {
        run: Some(2),
        what: What::Asked {
            by: "night-planner".to_owned(),
            command: "cancel".to_owned(),
        },
        ..samples::event(24)
    });
    check(include_str!("frozen/event-4.jsonl"), &all);
    all.push(Event {
        run: Some(2),
        what: What::VideoPublished {
            folder: "profiles/run-2".into(),
            findings: vec!["its calibration half has 12 answers".to_owned()],
        },
        ..samples::event(25)
    });
    check(include_str!("frozen/event-5.jsonl"), &all);
    all.push(Event {
        run: Some(2),
        what: What::LinkPublished {
            folder: "profiles/run-2".into(),
            findings: vec!["the upload is unsteady".to_owned()],
        },
        ..samples::event(26)
    });
    check(include_str!("frozen/event-6.jsonl"), &all);
    let host = || Some("rack-1".to_owned());
    let of_hosts = [
        What::DaemonStarted { host: host() },
        What::DaemonStopped { host: host() },
    ];
    let of_hosts = (27..).zip(of_hosts).map(|(number, what)| Event {
        run: Some(2),
        what,
        ..samples::event(number)
    });
    all.extend(of_hosts);
    check_newest(include_str!("frozen/event-7.jsonl"), &all);
}

#[test]
fn a_job_with_a_quantised_twin_is_read_as_it_was_written() {
    let mut job = full_job();
    job.spec.models[0].quantised = Some(TwinSpec {
        sha256: "12".repeat(32),
        source: HashedFile {
            name: "alexnet-int8".to_owned(),
            sha256: "34".repeat(32),
        },
        path: "models/alexnet-int8.onnx".into(),
    });
    let written = body(&job).expect("JSON");
    assert_eq!(record::<Job>(&written).expect("a record"), job);
}

#[test]
fn a_body_of_a_newer_version_is_refused_even_if_it_could_be_read() {
    let newer = body(&full_run()).expect("JSON").replacen(":6,", ":7,", 1);
    let refused = record::<Run>(&newer).expect_err("newer");
    assert!(matches!(refused, BodyError::Newer(7)), "{refused:?}");
    let refused = record::<Run>("{}").expect_err("no run");
    assert!(matches!(refused, BodyError::Unreadable(_)), "{refused:?}");
}

//! Records to keep.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use jiff::Timestamp;
use layerlab_profiles::Segment;
use layerlab_profiles::units::Nanos;
use layerlab_protocol::{Entry, Event as JournalEvent, RunId};

use crate::job::{AccuracySpec, JobSpec, ModelSpec, Selector};
use crate::record::{Device, Event, Job, JobState, Reservation, Run, Spent, What};

pub(in crate::store) fn time(second: i64) -> Timestamp {
    Timestamp::new(1_772_000_000 + second, 123_456_789).expect("a time")
}

pub(in crate::store) fn run_id(name: &str) -> RunId {
    RunId::new(name).expect("a name")
}

pub(in crate::store) fn job(id: i64) -> Job {
    let spec = JobSpec {
        name: format!("job {id}: \"Übung\""),
        models: vec![ModelSpec {
            name: "alexnet".to_owned(),
            sha256: "ab".repeat(32),
            source_sha256: "cd".repeat(32),
            external_weights: None,
            quantised: None,
            path: PathBuf::from("models/alexnet.onnx"),
        }],
        devices: vec![Selector {
            soc: Some("SM8550".to_owned()),
            each: true,
            ..Selector::default()
        }],
        repeats: 3,
        priority: -2,
        not_before: Some(time(10)),
        window: Some("20:00-06:00".parse().expect("a window")),
        every: Some("0 3 * * *".parse().expect("a recurrence")),
        profiles: Some(PathBuf::from("profiles")),
        accuracy: Some(AccuracySpec {
            set_sha256: "ef".repeat(32),
            path: PathBuf::from("set.llset"),
            processors: vec!["cpu".to_owned(), "npu".to_owned()],
            placements: 40,
            answers: None,
            stop_at_percent: Some(0.1),
            seed: u64::MAX,
        }),
        ..JobSpec::default()
    };
    Job {
        id,
        content_sha256: spec.content_sha256(),
        spec,
        submitted: time(0),
        occurrence_of: Some(7),
        state: JobState::Open,
    }
}

pub(in crate::store) fn run(number: i64) -> Run {
    Run {
        number,
        job: 1,
        attempt: 2,
        failed_on: vec!["PHONE9".to_owned()],
        started: Some(time(1)),
        reason: Some("it's hot".to_owned()),
        spent: Spent {
            wall_ms: 5,
            ..Spent::default()
        },
        ..Run::default()
    }
}

pub(in crate::store) fn device(name: &str) -> Device {
    Device {
        name: name.to_owned(),
        serial: name.to_owned(),
        description: "a phone".to_owned(),
        pools: vec!["night".to_owned()],
        android: Some(15),
        ..Device::default()
    }
}

pub(in crate::store) fn reservation(id: i64) -> Reservation {
    Reservation {
        id,
        device: "PHONE1".to_owned(),
        from: time(0),
        until: time(3600),
        note: "debugging".to_owned(),
    }
}

pub(in crate::store) fn event(number: i64) -> Event {
    Event {
        number,
        at: time(number),
        job: Some(1),
        run: None,
        device: Some("PHONE1".to_owned()),
        what: What::Quarantined {
            reason: "it vanished".to_owned(),
            until: time(60),
        },
    }
}

pub(in crate::store) fn entries(sequences: RangeInclusive<u64>) -> Vec<Entry> {
    let segment = Segment::new(1, 3).expect("a segment");
    sequences
        .map(|sequence| Entry {
            sequence,
            order: 4,
            event: JournalEvent::Sample {
                block: 1,
                index: sequence,
                segment,
                started_ns: Nanos::from_nanos(u64::MAX),
                duration_ns: Nanos::from_nanos(1_000_000 + sequence),
            },
        })
        .collect()
}

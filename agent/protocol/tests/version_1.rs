//! The bytes of protocol version 1. Phones in the field speak them.
//!
//! DO NOT CHANGE a line of this file: a message that must look different belongs to a new version.
//! New messages of version 1 may be added at the end of a table only if older agents never get them.

use layerlab_profiles::document::{Clock, Device, Numerics, Processor, ProcessorKind};
use layerlab_profiles::{Bytes, Nanos, Segment};
use layerlab_protocol::{
    Entry, Event, Failure, FailureKind, Order, Refusal, Request, Response, RunId, WarmUp, Work,
    decode, encode,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn assert_frozen<T>(message: &T, line: &str)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    assert_eq!(encode(message), format!("{line}\n"));
    assert_eq!(&decode::<T>(line).expect("a message of version 1"), message);
}

fn run() -> RunId {
    RunId::new("night-7").expect("a name")
}

fn order(work: Work) -> Order {
    Order {
        run: run(),
        number: 3,
        model_sha256: "ab".repeat(32),
        processor: "npu".to_owned(),
        work,
        samples_per_segment: 30,
        gap_ns: Nanos::from_micros(5),
        warm_up: WarmUp {
            min_runs: 3,
            max_runs: 30,
            agreement_percent: 4,
        },
        seed: 1,
    }
}

const SEGMENTS_ORDER: &str = r#"{"run":"night-7","number":3,"model_sha256":"abababababababababababababababababababababababababababababababab","processor":"npu","work":{"type":"time_segments","segments":[[1,1],[2,5]]},"samples_per_segment":30,"gap_ns":5000,"warm_up":{"min_runs":3,"max_runs":30,"agreement_percent":4},"seed":1}"#;

fn segments_order() -> Order {
    let segments = vec![Segment::single(1), Segment::new(2, 5).expect("a segment")];
    order(Work::TimeSegments { segments })
}

#[test]
fn requests() {
    assert_frozen(
        &Request::Hello {
            protocol: 1,
            token: "s3cret".to_owned(),
        },
        r#"{"type":"hello","protocol":1,"token":"s3cret"}"#,
    );
    assert_frozen(
        &Request::Submit {
            order: segments_order(),
        },
        &format!(r#"{{"type":"submit","order":{SEGMENTS_ORDER}}}"#),
    );
    assert_frozen(
        &Request::Follow {
            run: run(),
            after: 17,
        },
        r#"{"type":"follow","run":"night-7","after":17}"#,
    );
    assert_frozen(
        &Request::Forget { run: run() },
        r#"{"type":"forget","run":"night-7"}"#,
    );
    assert_frozen(&Request::Ping, r#"{"type":"ping"}"#);
    assert_frozen(&Request::Stop, r#"{"type":"stop"}"#);
}

#[test]
fn work() {
    assert_frozen(&Work::TimePasses, r#"{"type":"time_passes"}"#);
    assert_frozen(&segments_order(), SEGMENTS_ORDER);
}

#[test]
fn responses() {
    let hello = Response::Hello {
        protocol: 1,
        agent_version: "0.1.0".to_owned(),
        device: Device {
            name: "Mate".to_owned(),
            simulated: true,
            clock: Clock::SimulatedExact,
        },
        system: "Linux 6.1".to_owned(),
        processors: vec![
            Processor {
                name: "cpu".to_owned(),
                kind: ProcessorKind::Cpu,
                numerics: Numerics::F32,
                runtime: "tract".to_owned(),
                runtime_version: "0.23.9".to_owned(),
                memory_bytes: None,
            },
            Processor {
                name: "npu".to_owned(),
                kind: ProcessorKind::Accelerator,
                numerics: Numerics::F16,
                runtime: "simulated".to_owned(),
                runtime_version: "0.1.0".to_owned(),
                memory_bytes: Some(Bytes::from_bytes(4096)),
            },
        ],
    };
    assert_frozen(
        &hello,
        r#"{"type":"hello","protocol":1,"agent_version":"0.1.0","device":{"name":"Mate","simulated":true,"clock":"simulated-exact"},"system":"Linux 6.1","processors":[{"name":"cpu","kind":"cpu","numerics":"f32","runtime":"tract","runtime_version":"0.23.9","memory_bytes":null},{"name":"npu","kind":"accelerator","numerics":"f16","runtime":"simulated","runtime_version":"0.1.0","memory_bytes":4096}]}"#,
    );
    assert_frozen(
        &Response::Accepted {
            run: run(),
            order: 3,
        },
        r#"{"type":"accepted","run":"night-7","order":3}"#,
    );
    assert_frozen(
        &Response::Entry {
            run: run(),
            entry: Entry {
                sequence: 9,
                order: 3,
                event: Event::Finished,
            },
        },
        r#"{"type":"entry","run":"night-7","entry":{"sequence":9,"order":3,"event":{"type":"finished"}}}"#,
    );
    assert_frozen(
        &Response::Forgotten { run: run() },
        r#"{"type":"forgotten","run":"night-7"}"#,
    );
    assert_frozen(&Response::Pong, r#"{"type":"pong"}"#);
    for (refusal, name) in [
        (Refusal::Version, "version"),
        (Refusal::Token, "token"),
        (Refusal::Malformed, "malformed"),
        (Refusal::UnknownModel, "unknown_model"),
        (Refusal::Conflict, "conflict"),
        (Refusal::Storage, "storage"),
    ] {
        assert_frozen(
            &Response::Refused {
                refusal,
                message: "No.".to_owned(),
            },
            &format!(r#"{{"type":"refused","refusal":"{name}","message":"No."}}"#),
        );
    }
}

#[test]
fn journal_entries() {
    let entry = |event| Entry {
        sequence: 4,
        order: 3,
        event,
    };
    let framed = |event: &str| format!(r#"{{"sequence":4,"order":3,"event":{event}}}"#);
    assert_frozen(
        &entry(Event::Accepted {
            order: segments_order(),
        }),
        &framed(&format!(
            r#"{{"type":"accepted","order":{SEGMENTS_ORDER}}}"#
        )),
    );
    assert_frozen(
        &entry(Event::Loaded {
            segment: Segment::single(2),
            load_ns: Nanos::from_nanos(10),
            memory_bytes: Bytes::from_bytes(20),
        }),
        &framed(r#"{"type":"loaded","segment":[2,2],"load_ns":10,"memory_bytes":20}"#),
    );
    assert_frozen(
        &entry(Event::Warm {
            segment: Segment::single(2),
            runs: 5,
        }),
        &framed(r#"{"type":"warm","segment":[2,2],"runs":5}"#),
    );
    assert_frozen(
        &entry(Event::Sample {
            index: 31,
            segment: Segment::single(2),
            started_ns: Nanos::from_nanos(u64::MAX),
            duration_ns: Nanos::from_nanos(7),
        }),
        &framed(
            r#"{"type":"sample","index":31,"segment":[2,2],"started_ns":18446744073709551615,"duration_ns":7}"#,
        ),
    );
    assert_frozen(&entry(Event::Finished), &framed(r#"{"type":"finished"}"#));
    for (kind, name) in [
        (FailureKind::Model, "model"),
        (FailureKind::OutOfMemory, "out_of_memory"),
        (FailureKind::Order, "order"),
        (FailureKind::Device, "device"),
    ] {
        let failure = Failure {
            kind,
            message: "No.".to_owned(),
        };
        let event = format!(r#"{{"type":"failed","failure":{{"kind":"{name}","message":"No."}}}}"#);
        assert_frozen(&entry(Event::Failed { failure }), &framed(&event));
    }
}

//! The bytes of protocol version 3. Phones in the field speak them.
//!
//! DO NOT CHANGE a line of this file: a message that must look different belongs to a new version.
//! New messages of version 3 may be added at the end of a table only if older agents never get them.

use layerlab_profiles::accuracy::Tally;
use layerlab_profiles::{Bytes, MilliCelsius, Nanos, Segment};
use layerlab_protocol::{
    Carried, Clock, Conditions, Device, Disturbance, Entry, Event, ExchangeKind, Exchanged,
    Failure, FailureKind, Hygiene, Library, MeasureLink, Numerics, Order, Part, Processor,
    ProcessorKind, Refusal, Rejection, Request, RequestsOverLink, Response, RunId, ShapedLink,
    TimingSettings, TraceDirection, WarmUp, Work, decode, encode,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn assert_frozen<T>(message: &T, line: &str)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    assert_eq!(encode(message), format!("{line}\n"));
    assert_eq!(&decode::<T>(line).expect("a message of version 3"), message);
}

fn run() -> RunId {
    RunId::new("night-7").expect("a name")
}

fn order(work: Work) -> Order {
    Order {
        run: run(),
        number: 3,
        model_sha256: "ab".repeat(32),
        quantised_sha256: None,
        processor: "npu".to_owned(),
        work,
        seed: 1,
    }
}

fn timing() -> TimingSettings {
    TimingSettings {
        samples_per_segment: 30,
        gap_ns: Nanos::from_micros(5),
        warm_up: WarmUp {
            min_runs: 3,
            max_runs: 30,
            agreement_percent: 4,
        },
        hygiene: Hygiene {
            sentinel_tolerance_percent: 10,
            redos: 5,
            cool_down_poll_ns: Nanos::from_nanos(10),
            cool_down_deadline_ns: Nanos::from_nanos(20),
            throttling_counts: false,
            steady: false,
        },
    }
}

const TIMING: &str = r#"{"samples_per_segment":30,"gap_ns":5000,"warm_up":{"min_runs":3,"max_runs":30,"agreement_percent":4},"hygiene":{"sentinel_tolerance_percent":10,"redos":5,"cool_down_poll_ns":10,"cool_down_deadline_ns":20}}"#;

const SEGMENTS_ORDER: &str = r#"{"run":"night-7","number":3,"model_sha256":"abababababababababababababababababababababababababababababababab","processor":"npu","work":{"type":"time_segments","segments":[[1,1],[2,5]],"timing":{"samples_per_segment":30,"gap_ns":5000,"warm_up":{"min_runs":3,"max_runs":30,"agreement_percent":4},"hygiene":{"sentinel_tolerance_percent":10,"redos":5,"cool_down_poll_ns":10,"cool_down_deadline_ns":20}}},"seed":1}"#;

const UNKNOWN: &str = r#"{"thermal_status":null,"temperature_millicelsius":null,"battery_percent":null,"frequency_caps_khz":{}}"#;

fn segments_order() -> Order {
    let segments = vec![Segment::single(1), Segment::new(2, 5).expect("a segment")];
    order(Work::TimeSegments {
        segments,
        timing: timing(),
    })
}

#[test]
fn requests() {
    assert_frozen(
        &Request::Hello {
            protocol: 3,
            token: "s3cret".to_owned(),
        },
        r#"{"type":"hello","protocol":3,"token":"s3cret"}"#,
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
        &Request::Park { run: run() },
        r#"{"type":"park","run":"night-7"}"#,
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
    assert_frozen(
        &Work::TimePasses { timing: timing() },
        &format!(r#"{{"type":"time_passes","timing":{TIMING}}}"#),
    );
    assert_frozen(
        &Work::TimePlacement {
            parts: vec![Part {
                segment: Segment::single(1),
                processor: "cpu".to_owned(),
            }],
            timing: timing(),
            reload: false,
        },
        &format!(
            r#"{{"type":"time_placement","parts":[{{"segment":[1,1],"processor":"cpu"}}],"timing":{TIMING}}}"#
        ),
    );
    assert_frozen(
        &Work::Evaluate {
            set_sha256: "5e".repeat(32),
            processors: vec!["cpu".to_owned(), "gpu".to_owned(), "npu".to_owned()],
            combinations: vec!["021".parse().expect("digits")],
            answers: vec![7, 3],
            memory_bytes: Bytes::from_bytes(1 << 20),
            as_runs: false,
            keep_answers: false,
        },
        &format!(
            r#"{{"type":"evaluate","set_sha256":"{}","processors":["cpu","gpu","npu"],"combinations":["021"],"answers":[7,3],"memory_bytes":1048576}}"#,
            "5e".repeat(32)
        ),
    );
    // An agent that does not know it refuses it: it would answer as layers.
    assert_frozen(
        &Work::Evaluate {
            set_sha256: String::new(),
            processors: Vec::new(),
            combinations: Vec::new(),
            answers: Vec::new(),
            memory_bytes: Bytes::ZERO,
            as_runs: true,
            keep_answers: false,
        },
        r#"{"type":"evaluate","set_sha256":"","processors":[],"combinations":[],"answers":[],"memory_bytes":0,"as_runs":true}"#,
    );
    assert_frozen(&segments_order(), SEGMENTS_ORDER);
}

#[test]
fn responses() {
    let hello = Response::Hello {
        protocol: 3,
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
                emulated: false,
                runtime: "tract".to_owned(),
                runtime_version: "0.23.9".to_owned(),
                runtime_options: None,
                runtime_libraries: None,
                memory_bytes: None,
                threads: Some(2),
                pinned_to_cores: Some(vec![4, 5]),
            },
            Processor {
                name: "npu".to_owned(),
                kind: ProcessorKind::Accelerator,
                numerics: Numerics::F16,
                emulated: false,
                runtime: "simulated".to_owned(),
                runtime_version: "0.1.0".to_owned(),
                runtime_options: None,
                runtime_libraries: None,
                memory_bytes: Some(Bytes::from_bytes(4096)),
                threads: None,
                pinned_to_cores: None,
            },
        ],
    };
    assert_frozen(
        &hello,
        r#"{"type":"hello","protocol":3,"agent_version":"0.1.0","device":{"name":"Mate","simulated":true,"clock":"simulated-exact"},"system":"Linux 6.1","processors":[{"name":"cpu","kind":"cpu","numerics":"f32","emulated":false,"runtime":"tract","runtime_version":"0.23.9","memory_bytes":null,"threads":2,"pinned_to_cores":[4,5]},{"name":"npu","kind":"accelerator","numerics":"f16","emulated":false,"runtime":"simulated","runtime_version":"0.1.0","memory_bytes":4096,"threads":null,"pinned_to_cores":null}]}"#,
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
        &Response::Parked {
            run: run(),
            entries: 12,
        },
        r#"{"type":"parked","run":"night-7","entries":12}"#,
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
            processor: "npu".to_owned(),
            segment: Segment::single(2),
            load_ns: Nanos::from_nanos(10),
            memory_bytes: Bytes::from_bytes(20),
            compiled: None,
            placed: None,
        }),
        &framed(
            r#"{"type":"loaded","processor":"npu","segment":[2,2],"load_ns":10,"memory_bytes":20}"#,
        ),
    );
    assert_frozen(
        &entry(Event::Warm {
            segment: Segment::single(2),
            runs: 5,
        }),
        &framed(r#"{"type":"warm","segment":[2,2],"runs":5}"#),
    );
    assert_frozen(
        &entry(Event::BlockStarted {
            block: 2,
            segments: vec![Segment::single(2)],
            sentinel_ns: Nanos::from_nanos(10),
            conditions: Conditions::default(),
        }),
        &framed(&format!(
            r#"{{"type":"block_started","block":2,"segments":[[2,2]],"sentinel_ns":10,"conditions":{UNKNOWN}}}"#
        )),
    );
    assert_frozen(
        &entry(Event::Judged {
            answer: 7,
            tallies: vec![Tally {
                hits: 3,
                false_alarms: 1,
                misses: 2,
            }],
            flop: 4_600_000,
        }),
        &framed(r#"{"type":"judged","answer":7,"tallies":[[3,1,2]],"flop":4600000}"#),
    );
    assert_frozen(
        &entry(Event::Sample {
            block: 2,
            index: 31,
            segment: Segment::single(2),
            started_ns: Nanos::from_nanos(u64::MAX),
            duration_ns: Nanos::from_nanos(7),
        }),
        &framed(
            r#"{"type":"sample","block":2,"index":31,"segment":[2,2],"started_ns":18446744073709551615,"duration_ns":7}"#,
        ),
    );
    let ended = |rejection| {
        entry(Event::BlockEnded {
            block: 2,
            sentinel_ns: Nanos::from_nanos(10),
            conditions: Conditions::default(),
            rejection,
            disturbance: None,
        })
    };
    let moved = Rejection::SentinelMoved {
        baseline_ns: Nanos::from_nanos(8),
        sentinel_ns: Nanos::from_nanos(10),
    };
    let capped = Rejection::ClockCapChanged {
        group: "policy0".to_owned(),
    };
    for (rejection, text) in [
        (None, "null"),
        (
            Some(moved),
            r#"{"type":"sentinel_moved","baseline_ns":8,"sentinel_ns":10}"#,
        ),
        (
            Some(Rejection::Throttling { thermal_status: 2 }),
            r#"{"type":"throttling","thermal_status":2}"#,
        ),
        (
            Some(capped),
            r#"{"type":"clock_cap_changed","group":"policy0"}"#,
        ),
        (
            Some(Rejection::Disturbed {
                crowded_samples: 7,
                samples: 96,
                stolen_percent: 3,
            }),
            r#"{"type":"disturbed","crowded_samples":7,"samples":96,"stolen_percent":3}"#,
        ),
    ] {
        assert_frozen(
            &ended(rejection),
            &framed(&format!(
                r#"{{"type":"block_ended","block":2,"sentinel_ns":10,"conditions":{UNKNOWN},"rejection":{text}}}"#
            )),
        );
    }
    let told = entry(Event::BlockEnded {
        block: 2,
        sentinel_ns: Nanos::from_nanos(10),
        conditions: Conditions::default(),
        rejection: None,
        disturbance: Some(Disturbance {
            crowded_samples: 7,
            stolen_percent: 3,
        }),
    });
    assert_frozen(
        &told,
        &framed(&format!(
            r#"{{"type":"block_ended","block":2,"sentinel_ns":10,"conditions":{UNKNOWN},"rejection":null,"disturbance":{{"crowded_samples":7,"stolen_percent":3}}}}"#
        )),
    );
    let conditions = Conditions {
        thermal_status: Some(1),
        temperature_millicelsius: Some(MilliCelsius::from_millicelsius(41_500)),
        battery_percent: Some(80),
        frequency_caps_khz: [("policy0".to_owned(), 1_800_000)].into(),
        ..Conditions::default()
    };
    assert_frozen(
        &entry(Event::CooledDown {
            rested_ns: Nanos::from_nanos(10),
            conditions,
        }),
        &framed(
            r#"{"type":"cooled_down","rested_ns":10,"conditions":{"thermal_status":1,"temperature_millicelsius":41500,"battery_percent":80,"frequency_caps_khz":{"policy0":1800000}}}"#,
        ),
    );
    assert_frozen(&entry(Event::Finished), &framed(r#"{"type":"finished"}"#));
    for (kind, name) in [
        (FailureKind::Model, "model"),
        (FailureKind::OutOfMemory, "out_of_memory"),
        (FailureKind::Order, "order"),
        (FailureKind::Device, "device"),
        (FailureKind::Throttled, "throttled"),
    ] {
        let failure = Failure {
            kind,
            message: "No.".to_owned(),
        };
        let event = format!(r#"{{"type":"failed","failure":{{"kind":"{name}","message":"No."}}}}"#);
        assert_frozen(&entry(Event::Failed { failure }), &framed(&event));
    }
}

#[test]
fn an_agent_may_tell_how_its_runtimes_were_set_up() {
    let processor = Processor {
        name: "npu".to_owned(),
        kind: ProcessorKind::Accelerator,
        numerics: Numerics::I8,
        emulated: false,
        runtime: "onnxruntime".to_owned(),
        runtime_version: "1.20.0".to_owned(),
        runtime_options: Some([("provider".to_owned(), "nnapi".to_owned())].into()),
        runtime_libraries: Some(vec![Library {
            name: "libonnxruntime.so".to_owned(),
            sha256: "1b".repeat(32),
        }]),
        memory_bytes: None,
        threads: None,
        pinned_to_cores: None,
    };
    assert_frozen(
        &processor,
        r#"{"name":"npu","kind":"accelerator","numerics":"i8","emulated":false,"runtime":"onnxruntime","runtime_version":"1.20.0","runtime_options":{"provider":"nnapi"},"runtime_libraries":[{"name":"libonnxruntime.so","sha256":"1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b1b"}],"memory_bytes":null,"threads":null,"pinned_to_cores":null}"#,
    );
}

fn measure_link() -> MeasureLink {
    MeasureLink {
        server: "192.168.1.2:7377".to_owned(),
        token: "07".repeat(32),
        transfer_bytes: vec![Bytes::from_bytes(16 << 10), Bytes::from_bytes(1 << 20)],
        repeats: 10,
        echoes: 200,
        connections: None,
        gap_ns: None,
        seed: 3,
        reconnections: 10,
        trace_ns: None,
        shape: None,
        requests: None,
    }
}

/// An agent that does not know it refuses it as malformed.
#[test]
fn an_agent_may_be_asked_to_measure_a_link() {
    const ASKED: &str = r#"{"server":"192.168.1.2:7377","token":"0707070707070707070707070707070707070707070707070707070707070707","transfer_bytes":[16384,1048576],"repeats":10,"echoes":200"#;
    const REST: &str = r#""seed":3,"reconnections":10"#;
    assert_frozen(
        &Request::MeasureLink {
            link: measure_link(),
        },
        &format!(r#"{{"type":"measure_link","link":{ASKED},{REST}}}}}"#),
    );
    let shaped = MeasureLink {
        connections: Some(5),
        gap_ns: Some(Nanos::from_millis(20)),
        trace_ns: Some(Nanos::from_millis(10_000)),
        shape: Some(ShapedLink {
            bandwidth_bps: 5_000_000,
            round_trip_ns: Nanos::from_millis(75),
        }),
        ..measure_link()
    };
    assert_frozen(
        &Request::MeasureLink { link: shaped },
        &format!(
            r#"{{"type":"measure_link","link":{ASKED},"connections":5,"gap_ns":20000000,{REST},"trace_ns":10000000000,"shape":{{"bandwidth_bps":5000000,"round_trip_ns":75000000}}}}}}"#
        ),
    );
    let with_requests = MeasureLink {
        requests: Some(RequestsOverLink {
            count: 30,
            model_sha256: "ab".repeat(32),
            first_layer: 11,
            last_layer: 11,
            processor: "cpu:all".to_owned(),
            inputs: vec![vec![1, 128]],
            outputs: vec![vec![1, 20]],
        }),
        ..measure_link()
    };
    let model = "ab".repeat(32);
    assert_frozen(
        &Request::MeasureLink {
            link: with_requests,
        },
        &format!(
            r#"{{"type":"measure_link","link":{ASKED},{REST},"requests":{{"count":30,"model_sha256":"{model}","first_layer":11,"last_layer":11,"processor":"cpu:all","inputs":[[1,128]],"outputs":[[1,20]]}}}}}}"#
        ),
    );
    // What is printed for people is no secret.
    assert!(!format!("{:?}", measure_link()).contains("0707"));
}

#[test]
fn what_an_agent_says_of_a_link() {
    let sample = |exchange| Exchanged {
        exchange,
        index: 7,
        connection: 1,
        bytes: Bytes::from_bytes(64),
        started_ns: Nanos::from_nanos(1_000),
        duration_ns: Nanos::from_nanos(500),
        server_ns: [1, 2, 3, 4].map(Nanos::from_nanos),
    };
    let kinds = [
        (ExchangeKind::Echo, "echo"),
        (ExchangeKind::Upload, "upload"),
        (ExchangeKind::Download, "download"),
    ];
    for (kind, name) in kinds {
        assert_frozen(
            &Response::LinkSamples {
                samples: vec![sample(kind)],
            },
            &format!(
                r#"{{"type":"link_samples","samples":[{{"exchange":"{name}","index":7,"connection":1,"bytes":64,"started_ns":1000,"duration_ns":500,"server_ns":[1,2,3,4]}}]}}"#
            ),
        );
    }
    let directions = [
        (TraceDirection::Upload, "upload"),
        (TraceDirection::Download, "download"),
    ];
    for (direction, name) in directions {
        let interval = Carried {
            direction,
            start_ns: Nanos::from_millis(100),
            interval_ns: Nanos::from_millis(100),
            bytes: Bytes::from_bytes(12_500),
        };
        assert_frozen(
            &Response::LinkTraces {
                intervals: vec![interval],
            },
            &format!(
                r#"{{"type":"link_traces","intervals":[{{"direction":"{name}","start_ns":100000000,"interval_ns":100000000,"bytes":12500}}]}}"#
            ),
        );
    }
    assert_frozen(
        &Response::LinkReached { loopback: true },
        r#"{"type":"link_reached","loopback":true}"#,
    );
    assert_frozen(
        &Response::LinkProgress { done: 3, of: 300 },
        r#"{"type":"link_progress","done":3,"of":300}"#,
    );
    assert_frozen(
        &Response::LinkMeasured {
            samples: 300,
            intervals: 0,
            connections: 2,
            server_program: "layerlab 0.1.0".to_owned(),
        },
        r#"{"type":"link_measured","samples":300,"intervals":0,"connections":2,"server_program":"layerlab 0.1.0"}"#,
    );
    assert_frozen(
        &Response::LinkFailed {
            message: "No.".to_owned(),
        },
        r#"{"type":"link_failed","message":"No."}"#,
    );
    assert_frozen(
        &Response::Refused {
            refusal: Refusal::Busy,
            message: "No.".to_owned(),
        },
        r#"{"type":"refused","refusal":"busy","message":"No."}"#,
    );
}

//! The bytes of what version 3 of the protocol says of segments that memory does not hold, and of parts that are loaded when
//! they are needed.
//!
//! DO NOT CHANGE a line of this file: a message that must look different belongs to a new version.

use layerlab_profiles::Segment;
use layerlab_profiles::units::{Bytes, Nanos};
use layerlab_protocol::{Event, Hygiene, TimingSettings, WarmUp, Work, decode, encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn assert_frozen<T>(message: &T, line: &str)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    assert_eq!(encode(message), format!("{line}\n"));
    assert_eq!(&decode::<T>(line).expect("a message of version 3"), message);
}

#[test]
fn what_memory_does_not_hold_and_what_is_loaded_when_it_is_needed() {
    assert_frozen(
        &Event::Unsupported {
            processor: "npu".to_owned(),
            segment: Segment::whole(2),
            reason: "they need 5 B of its memory, which holds 4 B".to_owned(),
            needed_bytes: Some(Bytes::from_bytes(5)),
        },
        r#"{"type":"unsupported","processor":"npu","segment":[1,2],"reason":"they need 5 B of its memory, which holds 4 B","needed_bytes":5}"#,
    );
    assert_frozen(
        &Work::TimePlacement {
            parts: Vec::new(),
            timing: TimingSettings {
                samples_per_segment: 2,
                gap_ns: Nanos::ZERO,
                warm_up: WarmUp::default(),
                hygiene: Hygiene::default(),
            },
            reload: true,
        },
        r#"{"type":"time_placement","parts":[],"timing":{"samples_per_segment":2,"gap_ns":0,"warm_up":{"min_runs":3,"max_runs":30,"agreement_percent":4},"hygiene":{"sentinel_tolerance_percent":10,"redos":5,"cool_down_poll_ns":10000000000,"cool_down_deadline_ns":1200000000000}},"reload":true}"#,
    );
}

//! The bytes of what version 3 of the protocol says of raw answers that are kept.
//!
//! DO NOT CHANGE a line of this file: a message that must look different belongs to a new version.

use layerlab_profiles::units::Bytes;
use layerlab_protocol::{Event, Work, decode, encode};
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
fn answers_that_are_kept() {
    // An agent that does not know it refuses it: it would judge and keep nothing.
    assert_frozen(
        &Work::Evaluate {
            set_sha256: String::new(),
            processors: Vec::new(),
            combinations: Vec::new(),
            answers: Vec::new(),
            memory_bytes: Bytes::ZERO,
            as_runs: false,
            keep_answers: true,
        },
        r#"{"type":"evaluate","set_sha256":"","processors":[],"combinations":[],"answers":[],"memory_bytes":0,"keep_answers":true}"#,
    );
    assert_frozen(
        &Event::Answered {
            answer: 7,
            placement: 1,
            first: 65_536,
            value_bits: vec![0, f32::NAN.to_bits(), 1.5_f32.to_bits()],
        },
        r#"{"type":"answered","answer":7,"placement":1,"first":65536,"value_bits":[0,2143289344,1069547520]}"#,
    );
}

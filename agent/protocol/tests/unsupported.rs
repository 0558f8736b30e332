//! The bytes of what version 3 of the protocol says of segments that a processor cannot run.
//!
//! DO NOT CHANGE a line of this file: a message that must look different belongs to a new version.

use layerlab_profiles::Segment;
use layerlab_protocol::{Event, Failure, FailureKind, Work, decode, encode};
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
fn surveys_and_what_they_find() {
    assert_frozen(
        &Work::Survey {
            processors: vec!["cpu".to_owned(), "npu".to_owned()],
        },
        r#"{"type":"survey","processors":["cpu","npu"]}"#,
    );
    assert_frozen(
        &Event::Unsupported {
            processor: "npu".to_owned(),
            segment: Segment::single(2),
            reason: "it has no Elu".to_owned(),
            needed_bytes: None,
        },
        r#"{"type":"unsupported","processor":"npu","segment":[2,2],"reason":"it has no Elu"}"#,
    );
    assert_frozen(
        &Event::Sentinel {
            segment: Segment::whole(2),
        },
        r#"{"type":"sentinel","segment":[1,2]}"#,
    );
    assert_frozen(
        &Event::Failed {
            failure: Failure {
                kind: FailureKind::Unsupported,
                message: "No.".to_owned(),
            },
        },
        r#"{"type":"failed","failure":{"kind":"unsupported","message":"No."}}"#,
    );
}

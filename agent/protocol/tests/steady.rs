//! The bytes of what version 3 of the protocol says of processors that are kept busy until they are steady.
//!
//! DO NOT CHANGE a line of this file: a message that must look different belongs to a new version.

use layerlab_profiles::units::{MilliCelsius, Nanos};
use layerlab_protocol::{Conditions, Event, Hygiene, TimingSettings, WarmUp, Work, decode, encode};
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
fn a_processor_is_kept_busy_and_timed_while_it_is_hot() {
    assert_frozen(
        &Work::Soak {
            duration_ns: Nanos::from_millis(1_800_000),
            slice_ns: Nanos::from_millis(1_000),
            rest: true,
            passes: false,
            timing: TimingSettings {
                samples_per_segment: 2,
                gap_ns: Nanos::ZERO,
                warm_up: WarmUp::default(),
                hygiene: Hygiene {
                    steady: true,
                    ..Hygiene::default()
                },
            },
        },
        r#"{"type":"soak","duration_ns":1800000000000,"slice_ns":1000000000,"rest":true,"passes":false,"timing":{"samples_per_segment":2,"gap_ns":0,"warm_up":{"min_runs":3,"max_runs":30,"agreement_percent":4},"hygiene":{"sentinel_tolerance_percent":10,"redos":5,"cool_down_poll_ns":10000000000,"cool_down_deadline_ns":1200000000000,"steady":true}}}"#,
    );
    assert_frozen(&Event::SoakBegun, r#"{"type":"soak_begun"}"#);
    let slice = |rested, conditions| Event::SoakSlice {
        rested,
        started_ns: Nanos::from_nanos(7),
        runs: 1,
        median_ns: Nanos::from_nanos(5),
        conditions,
    };
    assert_frozen(
        &slice(false, None),
        r#"{"type":"soak_slice","started_ns":7,"runs":1,"median_ns":5}"#,
    );
    let conditions = Conditions {
        temperature_millicelsius: Some(MilliCelsius::from_millicelsius(31_000)),
        ..Conditions::default()
    };
    let line = encode(&slice(true, Some(conditions.clone())));
    assert!(line.contains(r#""rested":true,"started_ns":7"#), "{line}");
    assert_eq!(
        decode::<Event>(line.trim_end()).expect("a slice"),
        slice(true, Some(conditions))
    );
}

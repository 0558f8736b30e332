//! The bytes of what version 3 of the protocol says of a long segment that has few turns beside others.
//!
//! DO NOT CHANGE a line of this file: a message that must look different belongs to a new version.

use layerlab_profiles::Segment;
use layerlab_profiles::units::Nanos;
use layerlab_protocol::{Hygiene, TimingSettings, WarmUp, Work, decode, encode};

#[test]
fn a_long_segment_has_few_turns_beside_others() {
    let work = Work::TimeBesideLong {
        segments: vec![Segment::single(1), Segment::new(2, 3).expect("a segment")],
        long: Segment::whole(5),
        rounds: 8,
        timing: TimingSettings {
            samples_per_segment: 30,
            gap_ns: Nanos::ZERO,
            warm_up: WarmUp::default(),
            hygiene: Hygiene::default(),
        },
    };
    let line = r#"{"type":"time_beside_long","segments":[[1,1],[2,3]],"long":[1,5],"rounds":8,"timing":{"samples_per_segment":30,"gap_ns":0,"warm_up":{"min_runs":3,"max_runs":30,"agreement_percent":4},"hygiene":{"sentinel_tolerance_percent":10,"redos":5,"cool_down_poll_ns":10000000000,"cool_down_deadline_ns":1200000000000}}}"#;
    assert_eq!(encode(&work), format!("{line}\n"));
    assert_eq!(decode::<Work>(line).expect("a message of version 3"), work);
}

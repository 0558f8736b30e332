//! The bytes of what version 3 of the protocol says of energy.
//!
//! DO NOT CHANGE a line of this file: a message that must look different belongs to a new version.

use layerlab_profiles::Segment;
use layerlab_profiles::energy::{Meter, MeterSource};
use layerlab_profiles::units::{NanoJoules, Nanos};
use layerlab_protocol::{
    Event, Hygiene, MeterChoice, TimingSettings, WarmUp, Work, decode, encode,
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

#[test]
fn segments_are_run_while_a_meter_is_read() {
    assert_frozen(
        &Work::MeasureEnergy {
            segments: vec![Segment::single(1), Segment::whole(2)],
            meter: MeterChoice::Tcp("lab:9000".to_owned()),
            window_ns: Nanos::from_millis(30_000),
            timing: TimingSettings {
                samples_per_segment: 1,
                gap_ns: Nanos::ZERO,
                warm_up: WarmUp::default(),
                hygiene: Hygiene::default(),
            },
        },
        r#"{"type":"measure_energy","segments":[[1,1],[1,2]],"meter":"tcp:lab:9000","window_ns":30000000000,"timing":{"samples_per_segment":1,"gap_ns":0,"warm_up":{"min_runs":3,"max_runs":30,"agreement_percent":4},"hygiene":{"sentinel_tolerance_percent":10,"redos":5,"cool_down_poll_ns":10000000000,"cool_down_deadline_ns":1200000000000}}}"#,
    );
    assert_frozen(
        &Event::EnergyBegun {
            meter: Meter {
                source: MeterSource::FuelGauge,
                name: "battery".to_owned(),
                settle_ns: Nanos::from_millis(10_000),
            },
        },
        r#"{"type":"energy_begun","meter":{"source":"fuel-gauge","name":"battery","settle_ns":10000000000}}"#,
    );
    let window = |segment, step_uw| Event::EnergyWindow {
        segment,
        started_ns: Nanos::from_nanos(7),
        duration_ns: Nanos::from_nanos(9),
        runs: 3,
        energy_nj: NanoJoules::from_nanojoules(5),
        readings: 4,
        scatter_uw: 2,
        step_uw,
    };
    assert_frozen(
        &window(None, None),
        r#"{"type":"energy_window","started_ns":7,"duration_ns":9,"runs":3,"energy_nj":5,"readings":4,"scatter_uw":2}"#,
    );
    assert_frozen(
        &window(Some(Segment::single(2)), Some(1_000)),
        r#"{"type":"energy_window","segment":[2,2],"started_ns":7,"duration_ns":9,"runs":3,"energy_nj":5,"readings":4,"scatter_uw":2,"step_uw":1000}"#,
    );
}

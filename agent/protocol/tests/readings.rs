//! The bytes of what version 2 may tell of a device besides, and ask of one that is not fit: absent where there is nothing
//! to say, so that what was written before reads as it did.
//!
//! DO NOT CHANGE a line of this file.

use layerlab_profiles::{MilliCelsius, Nanos};
use layerlab_protocol::{Conditions, Hygiene, decode, encode};

#[test]
fn a_phone_tells_its_temperatures_its_power_and_its_clocks() {
    let degrees = |whole: i64| Some(MilliCelsius::from_millicelsius(whole * 1_000));
    let conditions = Conditions {
        thermal_status: Some(0),
        temperature_millicelsius: degrees(45),
        battery_percent: Some(85),
        frequency_caps_khz: [("policy0".to_owned(), 1_804_800)].into(),
        skin_temperature_millicelsius: degrees(29),
        soc_temperature_millicelsius: degrees(34),
        battery_temperature_millicelsius: degrees(27),
        charging: Some(false),
        frequencies_khz: [("policy0".to_owned(), 1_132_800), ("npu".to_owned(), 0)].into(),
    };
    let line = r#"{"thermal_status":0,"temperature_millicelsius":45000,"battery_percent":85,"frequency_caps_khz":{"policy0":1804800},"skin_temperature_millicelsius":29000,"soc_temperature_millicelsius":34000,"battery_temperature_millicelsius":27000,"charging":false,"frequencies_khz":{"npu":0,"policy0":1132800}}"#;
    assert_eq!(encode(&conditions), format!("{line}\n"));
    assert_eq!(decode::<Conditions>(line).expect("conditions"), conditions);
}

#[test]
fn an_order_may_ask_for_a_device_as_it_is() {
    let hygiene = Hygiene {
        sentinel_tolerance_percent: 10,
        redos: 5,
        cool_down_poll_ns: Nanos::from_nanos(10),
        cool_down_deadline_ns: Nanos::from_nanos(20),
        throttling_counts: true,
        steady: false,
    };
    let line = r#"{"sentinel_tolerance_percent":10,"redos":5,"cool_down_poll_ns":10,"cool_down_deadline_ns":20,"throttling_counts":true}"#;
    assert_eq!(encode(&hygiene), format!("{line}\n"));
    assert_eq!(decode::<Hygiene>(line).expect("hygiene"), hygiene);
}

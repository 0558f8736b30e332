//! A profile that says all that the newest version of the format can say.

use layerlab_profiles::design::Design;
use layerlab_profiles::document::{
    Conditions, Fitness, HashedFile, Measurement, Method, Numerics, Phone, Processor, Profile,
    Unsupported,
};
use layerlab_profiles::{MilliCelsius, Nanos, Segment};

use super::evaluated;
use super::probe_samples::{PLANTED, probe_samples};

const GPU: &str = "gpu";

/// All that version 5 can say: what version 4 could, which phone it was, that it was not fit to be measured, and all that the
/// phone told at the end of a block.
pub(crate) fn everything() -> Profile {
    let mut profile = everything_of_version_4();
    let provenance = &mut profile.header.provenance;
    provenance.phone = Some(Phone {
        serial: "R58M12ABCDE".to_owned(),
        manufacturer: Some("HUAWEI".to_owned()),
        model: Some("BLA-L29".to_owned()),
        soc: Some("kirin970".to_owned()),
        android: Some("10".to_owned()),
        build: Some(
            "HUAWEI/BLA-L29/HWBLA:10/HUAWEIBLA-L29/10.0.0.175:user/release-keys".to_owned(),
        ),
        security_patch: Some("2020-08-01".to_owned()),
        abi: Some("arm64-v8a".to_owned()),
        battery_health: None,
    });
    provenance.fitness = Some(Fitness {
        overridden: true,
        not_fit: vec!["battery 51 °C > 37 °C".to_owned()],
        not_told: vec!["screen".to_owned()],
    });
    let degrees = |whole: i64| Some(MilliCelsius::from_millicelsius(whole * 1_000));
    let conditions = &mut profile.blocks[0].after.conditions;
    *conditions = Conditions {
        thermal_status: Some(4),
        temperature_millicelsius: degrees(71),
        skin_temperature_millicelsius: degrees(44),
        soc_temperature_millicelsius: degrees(69),
        battery_temperature_millicelsius: degrees(51),
        battery_percent: Some(64),
        charging: Some(false),
        frequency_caps_khz: conditions.frequency_caps_khz.clone(),
        frequencies_khz: [("policy0".to_owned(), 1_844_000), ("npu".to_owned(), 0)].into(),
    };
    profile
}

/// All that version 4 could say: three processors, of which one is emulated, runs a quantised twin and cannot run a layer, a
/// design that chooses as it goes, probes, and accuracy.
pub(crate) fn everything_of_version_4() -> Profile {
    let mut header = super::header();
    header.processors.push(Processor {
        name: GPU.to_owned(),
        numerics: Numerics::I8,
        emulated: true,
        ..header.processors[1].clone()
    });
    header.emulated = true;
    header.model.quantised = Some(HashedFile {
        name: "three-layers-int8".to_owned(),
        sha256: "18".repeat(32),
    });
    header.measurements.push(Measurement {
        processor: GPU.to_owned(),
        ..header.measurements[1].clone()
    });
    for measurement in &mut header.measurements[1..] {
        measurement.design = Design::Adaptive;
        measurement.method = Method::Graph;
        measurement.target = Some(0.02);
        measurement.budget_ns = Some(Nanos::from_millis(600_000));
    }
    header.measurements[2].sentinel = Some(Segment::new(2, 3).expect("ascending"));
    let mut samples = super::samples(&header);
    samples.retain(|sample| sample.processor != GPU || sample.segment.first() > 1);
    header.measurements[1].method = Method::Probed;
    let mut measured = super::measured(samples);
    measured.probes = probe_samples(PLANTED);
    measured.unsupported.push(Unsupported {
        processor: GPU.to_owned(),
        segment: Segment::single(1),
        reason: "\"Conv\" of 11 × 11, which it lacks".to_owned(),
        needed: None,
    });
    let profile = Profile::build(header, super::layers(), measured);
    evaluated(profile.expect("every segment that can run has samples"))
}

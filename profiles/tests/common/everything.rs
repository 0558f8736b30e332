//! A profile that says all that the newest version of the format can say.

use layerlab_profiles::design::Design;
use layerlab_profiles::document::{
    HashedFile, Measurement, Method, Numerics, Processor, Profile, Unsupported,
};
use layerlab_profiles::{Nanos, Segment};

use super::evaluated;
use super::probe_samples::{PLANTED, probe_samples};

const GPU: &str = "gpu";

/// All that version 4 can say: three processors, of which one is emulated, runs a quantised twin and cannot run a layer, a
/// design that chooses as it goes, probes, and accuracy.
pub(crate) fn everything() -> Profile {
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
    });
    let profile = Profile::build(header, super::layers(), measured);
    evaluated(profile.expect("every segment that can run has samples"))
}

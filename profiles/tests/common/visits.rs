//! Profiles of measurements in several visits.

use layerlab_profiles::design::Design;
use layerlab_profiles::document::{
    BuildError, Header, Measured, Method, ProbeSample, Profile, Sample,
};
use layerlab_profiles::{Nanos, Segment};

use super::{NPU, header, layers, measured, planted};

/// Samples of each segment in each visit.
pub(crate) const SAMPLES_OF_VISIT: u64 = 4;

/// A profile of visits at these speeds, on whose accelerator the whole takes `whole` times as long as its parts say.
pub(crate) fn profile_of_visits(
    speeds: &[f64],
    whole: f64,
    method: Method,
    probes: Vec<ProbeSample>,
) -> Result<Profile, BuildError> {
    let (mut header, mut measured) = run_of_visits(speeds, whole);
    header.measurements[1].method = method;
    measured.probes = probes;
    Profile::build(header, layers(), measured)
}

/// What is measured in such visits.
pub(crate) fn run_of_visits(speeds: &[f64], whole: f64) -> (Header, Measured) {
    let mut header = header();
    let visits = speeds.len() as u64;
    for measurement in &mut header.measurements {
        measurement.visits = Some(visits);
        measurement.samples_per_segment = visits * SAMPLES_OF_VISIT;
    }
    header.measurements[0].method = Method::Robust;
    (header.measurements[1].design, header.measurements[1].method) = (Design::Local, Method::Graph);
    let time = |processor: &str, segment: Segment, speed: f64, turn: u64| {
        let is_odd = processor == NPU && segment == Segment::whole(3);
        let jitter = 1.0 + 0.002 * ((turn * 7_919) % 11) as f64 / 11.0;
        let factor = if is_odd { whole } else { 1.0 };
        let time_ns = planted(processor, segment) as f64 * speed * jitter * factor;
        Nanos::from_nanos(time_ns.round() as u64)
    };
    let (mut samples, mut turn) = (Vec::new(), 0);
    let mut order = 0;
    let mut ends = Vec::new();
    for &speed in speeds {
        for measurement in &header.measurements {
            order += 1;
            let processor = &measurement.processor;
            let mut index = 0;
            for segment in measurement.design.segments(3) {
                for _ in 0..SAMPLES_OF_VISIT {
                    turn += 1;
                    samples.push(Sample {
                        processor: processor.clone(),
                        segment,
                        order,
                        block: 0,
                        index,
                        started: Nanos::from_millis(100 * turn),
                        duration: time(processor, segment, speed, turn),
                    });
                    index += 1;
                }
            }
            let end = |turn| time(processor, Segment::whole(3), speed, turn);
            ends.push([end(turn + 3), end(turn + 5)]);
        }
    }
    let mut measured = measured(samples);
    for (block, [before, after]) in measured.blocks.iter_mut().zip(ends) {
        (block.before.sentinel, block.after.sentinel) = (before, after);
    }
    (header, measured)
}

//! Samples of probes whose costs are planted.

use layerlab_profiles::document::ProbeSample;
use layerlab_profiles::probe::frontiers;
use layerlab_profiles::{Nanos, Probe};

use super::{NPU, layers};

/// What is planted: a fixed cost, ns for each byte in, out and operation, and a bend in ns for each byte squared.
#[derive(Clone, Copy)]
pub(crate) struct PlantedMoving {
    pub(crate) fixed: f64,
    pub(crate) inward: f64,
    pub(crate) outward: f64,
    pub(crate) operation: f64,
    pub(crate) bend: f64,
}

pub(crate) const PLANTED: PlantedMoving = PlantedMoving {
    fixed: 100_000.0,
    inward: 3.0,
    outward: 1.0,
    operation: 0.05,
    bend: 0.0,
};

/// Nine samples of each layer of the probes of the common layers, within half a per cent of what is planted.
pub(crate) fn probe_samples(planted: PlantedMoving) -> Vec<ProbeSample> {
    let mut found = Vec::new();
    for (size, probe) in (0..).zip(Probe::around(frontiers(&layers()))) {
        for layer in 1..=3 {
            let work = probe.layer(layer).expect("three layers");
            let (input, output) = (work.input.as_bytes() as f64, work.output.as_bytes() as f64);
            let time = planted.fixed
                + planted.inward * input
                + planted.outward * output
                + planted.operation * work.operations as f64
                + planted.bend * input * input;
            for index in 0..9_u64 {
                let jitter =
                    1.0 + 0.005 * ((index * 7 + u64::from(layer)) % 9) as f64 / 9.0 - 0.0022;
                found.push(ProbeSample {
                    processor: NPU.to_owned(),
                    probe,
                    layer,
                    order: 100 + size,
                    block: 0,
                    index: u64::from(layer) * 9 + index,
                    started: Nanos::from_nanos(index),
                    duration: Nanos::from_nanos((time * jitter).round() as u64),
                    rejection: None,
                });
            }
        }
    }
    found
}

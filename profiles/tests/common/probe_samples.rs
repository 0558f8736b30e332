//! Samples of probes whose costs are planted.

use layerlab_profiles::document::ProbeSample;
use layerlab_profiles::probe::frontiers;
use layerlab_profiles::{Nanos, Probe};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

use super::{NPU, layers};

/// What is planted: a fixed cost, ns for each byte in, out and operation, and a bend in ns for each byte squared; and how
/// far visits and loadings differ, as standard deviations of shares.
#[derive(Clone, Copy)]
pub(crate) struct PlantedMoving {
    pub(crate) fixed: f64,
    pub(crate) inward: f64,
    pub(crate) outward: f64,
    pub(crate) operation: f64,
    pub(crate) bend: f64,
    pub(crate) visit: f64,
    pub(crate) load: f64,
    pub(crate) seed: u64,
}

pub(crate) const PLANTED: PlantedMoving = PlantedMoving {
    fixed: 100_000.0,
    inward: 3.0,
    outward: 1.0,
    operation: 0.05,
    bend: 0.0,
    visit: 0.0,
    load: 0.0,
    seed: 1,
};

/// In how many visits each probe is timed.
const VISITS: u32 = 3;
/// Samples of each layer in a visit.
const SAMPLES_OF_VISIT: u64 = 3;

/// Three visits of the probes of the common layers, each probe in an order of its own, within half a per cent of what is
/// planted.
pub(crate) fn probe_samples(planted: PlantedMoving) -> Vec<ProbeSample> {
    let mut random = ChaCha8Rng::seed_from_u64(planted.seed);
    let mut factor = |deviation: f64| {
        1.0 + deviation * Normal::standard().inverse_cdf(random.random_range(1e-12..1.0))
    };
    let probes = Probe::around(frontiers(&layers()));
    let speeds: Vec<f64> = (0..VISITS as usize * probes.len())
        .map(|_| factor(planted.visit))
        .collect();
    let mut found = Vec::new();
    for (size, &probe) in probes.iter().enumerate() {
        for layer in 1..=3 {
            let work = probe.layer(layer).expect("three layers");
            let (input, output) = (work.input.as_bytes() as f64, work.output.as_bytes() as f64);
            let time = planted.fixed
                + planted.inward * input
                + planted.outward * output
                + planted.operation * work.operations as f64
                + planted.bend * input * input;
            for visit in 0..VISITS {
                let order = probes.len() * visit as usize + size;
                let slower = speeds[order] * factor(planted.load);
                for sample in 0..SAMPLES_OF_VISIT {
                    let turn = u64::from(visit) * SAMPLES_OF_VISIT + sample;
                    let jitter =
                        1.0 + 0.005 * ((turn * 7 + u64::from(layer)) % 9) as f64 / 9.0 - 0.0022;
                    let index = u64::from(layer - 1) * SAMPLES_OF_VISIT + sample;
                    found.push(ProbeSample {
                        processor: NPU.to_owned(),
                        probe,
                        layer,
                        order: 100 + order as u32,
                        block: 0,
                        index,
                        started: Nanos::from_nanos(index),
                        duration: Nanos::from_nanos((time * slower * jitter).round() as u64),
                        rejection: None,
                    });
                }
            }
        }
    }
    found
}

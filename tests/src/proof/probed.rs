//! Runs with probes against the planted truth: how far off what tells moving in from moving out is, and how often its
//! intervals hold.

use std::collections::{BTreeMap, BTreeSet};

use layerlab_agent::runtime::simulated::LayerWork;
use layerlab_model::probe_network;
use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::derive::graph::{Fit, InShares, MovingModel, Observations, observe};
use layerlab_profiles::design::Design;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Bytes, Placement, Probe, Segment};

use super::{Measured, SimulatedProcessor};

/// The devices on which moving in and moving out differ. The last three were written after the method was.
pub const DEVICES: [&str; 5] = [
    "asymmetric-fusion",
    "worst-case",
    "slow-return",
    "large-fixed-cost",
    "slow-intake",
];

/// Samples of each segment, and of each layer of a probe: as `layerlab profile` takes them.
const SAMPLES: u64 = 30;

/// How estimates of one quantity compare with the planted values.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Of each estimate, how far off it is, as a share of the planted value.
    pub errors: Vec<f64>,
    /// How many intervals hold the planted value.
    pub held: usize,
}

/// What many runs gave, by quantity.
#[derive(Clone, Debug, Default)]
pub struct ProbedRuns {
    /// By what was estimated.
    pub quantities: BTreeMap<&'static str, Comparison>,
    /// Compute times below zero by more than their interval where the planted one is not.
    pub negative: usize,
    /// Likewise of the same runs under the papers' assumption.
    pub negative_if_symmetric: usize,
    /// Placements whose time by the layers' times is not that of the fit, give or take rounding.
    pub placements_changed: usize,
    /// Runs whose probes did not say how cuts divide.
    pub refused: usize,
    /// All runs.
    pub runs: usize,
}

impl Comparison {
    /// How many estimates there are.
    pub fn count(&self) -> usize {
        self.errors.len()
    }

    /// The share of the intervals that hold the planted value.
    pub fn coverage(&self) -> f64 {
        self.held as f64 / self.count() as f64
    }

    /// The error that so large a share of the estimates does not exceed.
    ///
    /// # Panics
    /// Without estimates.
    pub fn error_quantile(&self, share: f64) -> f64 {
        let mut errors = self.errors.clone();
        errors.sort_by(f64::total_cmp);
        errors[((errors.len() - 1) as f64 * share).round() as usize]
    }

    /// The share of estimates off by more than this.
    pub fn share_beyond(&self, error: f64) -> f64 {
        self.errors.iter().filter(|one| **one > error).count() as f64 / self.count() as f64
    }
}

impl ProbedRuns {
    fn compare(&mut self, quantity: &'static str, estimate: Estimate, planted: f64) {
        let comparison = self.quantities.entry(quantity).or_default();
        let found = estimate.value.as_nanos() as f64;
        comparison
            .errors
            .push((found - planted).abs() / planted.abs());
        let held = estimate.ci95.is_some_and(|(low, high)| {
            (low.as_nanos() as f64..=high.as_nanos() as f64).contains(&planted)
        });
        comparison.held += usize::from(held);
    }

    /// Adds a run of this seed on the accelerator of a device with a network of this work.
    ///
    /// # Panics
    /// When the device is not there, or the planted times make no profile: both are part of this repository.
    pub fn run(&mut self, device: &str, work: &[LayerWork], seed: u64) {
        self.runs += 1;
        let npu = SimulatedProcessor::open(device, "npu", work);
        let layers = npu.layers();
        let mut measured = Measured::new();
        npu.measure(&mut measured, Design::Local.iter(layers), SAMPLES, seed);
        let fit = Fit::new(layers, &observe(&measured), &BTreeSet::new()).expect("connected");
        let frontiers: Vec<Bytes> = work[..work.len() - 1]
            .iter()
            .map(|one| one.output)
            .collect();
        let Some((model, shares)) = probe(device, &frontiers, seed) else {
            self.refused += 1;
            return;
        };
        let times = fit.layer_times_with(&shares);
        let planted = PlantedSplit::of(&npu);
        for (place, &bytes) in frontiers.iter().enumerate() {
            let [into, out] = model.moving(bytes);
            self.compare("moving in (`moving`)", into, planted.pure_in[place + 1]);
            self.compare("moving out (`moving`)", out, planted.pure_out[place]);
            let (next, this) = (times[place + 1].to_processor, times[place].from_processor);
            self.compare(
                "to_processor",
                next.expect("a cut"),
                planted.entering[place + 1],
            );
            self.compare(
                "from_processor",
                this.expect("a cut"),
                planted.leaving[place],
            );
        }
        for (time, planted) in times.iter().zip(&planted.compute) {
            self.compare("compute", time.compute, *planted);
            self.negative += usize::from(is_negative(time) && *planted >= 0.0);
        }
        let symmetric = fit.layer_times();
        let negative = symmetric.iter().zip(&planted.compute);
        self.negative_if_symmetric += negative
            .filter(|(time, planted)| is_negative(time) && **planted >= 0.0)
            .count();
        self.compare_placements(&fit, &times);
    }

    /// T(L) of runs of layers is what the fit says, whatever the shares are.
    fn compare_placements(&mut self, fit: &Fit, times: &[LayerTime]) {
        let layers = times.len();
        for first in 0..layers {
            for last in first..layers {
                let on_npu = (0..layers).map(|place| (first..=last).contains(&place));
                let placement = Placement::new(on_npu.collect());
                let run = placement.runs().find(|(_, on)| *on == 1).expect("a run").0;
                let by_fit = fit.segment(run).value.as_nanos();
                let value = |one: Option<Estimate>| one.map_or(0, |one| one.value.as_nanos());
                let compute = times[first..=last]
                    .iter()
                    .map(|time| time.compute.value.as_nanos());
                let by_times = value(times[first].to_processor)
                    + compute.sum::<i64>()
                    + value(times[last].from_processor);
                // Each number is rounded to the nanosecond.
                let rounding = (last - first + 4) as i64;
                self.placements_changed += usize::from((by_fit - by_times).abs() > rounding);
            }
        }
    }
}

fn is_negative(time: &LayerTime) -> bool {
    time.compute
        .ci95
        .is_some_and(|(_, high)| high.as_nanos() < 0)
}

/// What probes on the accelerator of a device say, unless they say nothing.
fn probe(device: &str, frontiers: &[Bytes], seed: u64) -> Option<(MovingModel, InShares)> {
    let probes = Probe::around(frontiers.iter().copied());
    let mut measured = Measured::new();
    let place = |size: usize, layer: u32| Segment::single(3 * size as u32 + layer);
    for (size, &probe) in probes.iter().enumerate() {
        let network = probe_network(probe).expect("a probe");
        let npu = SimulatedProcessor::open(device, "npu", &LayerWork::of(&network));
        let mut of_probe = Measured::new();
        // Each order of a run has a seed of its own.
        let seed = seed ^ ((size as u64 + 1) << 32);
        npu.measure(&mut of_probe, Probe::segments(), SAMPLES, seed);
        for (segment, samples) in of_probe {
            measured.insert(place(size, segment.first()), samples);
        }
    }
    let layer_of = |segment: Segment| {
        let number = segment.first() - 1;
        probes.get(number as usize / 3)?.layer(number % 3 + 1)
    };
    let observations: Observations = observe(&measured);
    let model = MovingModel::fit(&observations, layer_of).filter(|model| !model.bends())?;
    let shares = InShares::probed(&model, frontiers).ok()?;
    Some((model, shares))
}

/// What was planted: pure transfers, and the layers' times where what neighbours save is part of the transfers, as
/// docs/method.md §10 says.
struct PlantedSplit {
    pure_in: Vec<f64>,
    pure_out: Vec<f64>,
    entering: Vec<f64>,
    leaving: Vec<f64>,
    compute: Vec<f64>,
}

impl PlantedSplit {
    fn of(npu: &SimulatedProcessor) -> PlantedSplit {
        let times = &npu.times;
        let floats = |of: Option<&[layerlab_profiles::Nanos]>| -> Vec<f64> {
            let of = of.expect("an accelerator").iter();
            of.map(|one| one.as_nanos() as f64).collect()
        };
        let (pure_in, pure_out) = (floats(times.entering()), floats(times.leaving()));
        let fusion = floats(times.fusion());
        let (mut entering, mut leaving) = (pure_in.clone(), pure_out.clone());
        let mut compute = floats(Some(times.compute()));
        let last = compute.len() - 1;
        for (cut, saved) in fusion.iter().enumerate() {
            let both = pure_out[cut] + pure_in[cut + 1];
            let inward = saved * pure_in[cut + 1] / both;
            let outward = saved - inward;
            entering[cut + 1] += inward;
            leaving[cut] += outward;
            compute[cut + 1] -= inward;
            compute[cut] -= outward;
        }
        // The ends of the network stay in the compute times.
        compute[0] += pure_in[0];
        compute[last] += pure_out[last];
        PlantedSplit {
            pure_in,
            pure_out,
            entering,
            leaving,
            compute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use layerlab_model::Network;

    /// The same seeds give the same numbers, so that this cannot fail by chance.
    #[test]
    fn probes_tell_moving_in_from_moving_out_on_every_device() {
        let network = Network::open(&file("models/alexnet.onnx"), &BTreeMap::new());
        let work = LayerWork::of(&network.expect("a model of this repository"));
        for device in DEVICES {
            let mut runs = ProbedRuns::default();
            for seed in 0..10 {
                runs.run(device, &work, 100 + seed);
            }
            assert_eq!((runs.refused, runs.placements_changed), (0, 0), "{device}");
            assert_eq!(runs.negative, 0, "{device}");
            for (quantity, found) in &runs.quantities {
                if quantity.starts_with("moving") {
                    let worst = found.error_quantile(1.0);
                    assert!(worst < 0.05, "{device} {quantity}: off by {worst}");
                }
            }
        }
    }

    #[test]
    fn on_devices_on_which_moving_differs_the_papers_assumption_gives_negative_times() {
        let network = Network::open(&file("models/alexnet.onnx"), &BTreeMap::new());
        let work = LayerWork::of(&network.expect("a model of this repository"));
        let mut runs = ProbedRuns::default();
        runs.run("slow-return", &work, 1);
        assert!(runs.negative_if_symmetric > 0, "{runs:?}");
    }
}

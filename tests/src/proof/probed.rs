//! Runs with probes against the planted truth: how far off what tells moving in from moving out is, and how often its
//! intervals hold.

use std::collections::{BTreeMap, BTreeSet};

use layerlab_agent::device::Invocation;
use layerlab_agent::device::simulated::Noise;
use layerlab_agent::runtime::simulated::LayerWork;
use layerlab_model::probe_network;
use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::derive::graph::{
    Fit, InShares, MovingModel, Visit, VisitSamples, observe_probes, observe_visits,
};
use layerlab_profiles::design::Design;
use layerlab_profiles::probe::PROBE_LAYERS;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Bytes, Nanos, Placement, Probe, Segment};

use super::SimulatedProcessor;

/// The devices on which moving in and moving out differ. The last three were written after the method was.
pub const DEVICES: [&str; 5] = [
    "asymmetric-fusion",
    "worst-case",
    "slow-return",
    "large-fixed-cost",
    "slow-intake",
];

/// In how many visits each segment and each layer of a probe is timed, and how often in each: as `layerlab profile` does.
const VISITS: u32 = 3;
const SAMPLES_OF_VISIT: u64 = 10;

/// What visits and loadings do to times, beside the noise of inferences: standard deviations of logarithms.
#[derive(Clone, Copy, Debug, Default)]
pub struct VisitNoise {
    /// Of the factor that all times of a visit have.
    pub visit_sigma: f64,
    /// Of the factor that all times of a segment have until it is unloaded.
    pub loading_sigma: f64,
}

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
    /// What is planted beside the noise of the devices' files.
    pub noise: VisitNoise,
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
        let mut measured = VisitSamples::default();
        for order in 0..VISITS {
            for segment in Design::Local.iter(layers) {
                let times = self.noise.visit(&npu, segment, segment, order, seed);
                add(&mut measured, segment, order, times);
            }
        }
        let observations = observe_visits(&measured);
        let fit = Fit::new(layers, &observations, &BTreeSet::new()).expect("connected");
        let frontiers: Vec<Bytes> = work[..work.len() - 1]
            .iter()
            .map(|one| one.output)
            .collect();
        let Some((model, shares)) = self.probe(device, &frontiers, seed) else {
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

    /// What probes on the accelerator of a device say, unless they say nothing.
    fn probe(
        &self,
        device: &str,
        frontiers: &[Bytes],
        seed: u64,
    ) -> Option<(MovingModel, InShares)> {
        let probes = Probe::around(frontiers.iter().copied());
        let work = probes.iter().map(|&probe| {
            let network = probe_network(probe).expect("a probe");
            SimulatedProcessor::open(device, "npu", &LayerWork::of(&network))
        });
        let processors: Vec<SimulatedProcessor> = work.collect();
        let mut measured = VisitSamples::default();
        // The model's own visits come first. Each order is another visit, and has one probe.
        let mut orders = VISITS..;
        for _ in 0..VISITS {
            for ((size, npu), order) in (0..).zip(&processors).zip(&mut orders) {
                for segment in Probe::segments() {
                    let place = Segment::single(PROBE_LAYERS * size + segment.first());
                    let times = self.noise.visit(npu, segment, place, order, seed);
                    add(&mut measured, place, order, times);
                }
            }
        }
        let layer_of = |place: Segment| {
            let number = place.first() - 1;
            let probe = probes.get((number / PROBE_LAYERS) as usize)?;
            Some((*probe, number % PROBE_LAYERS + 1))
        };
        let model = MovingModel::fit(&observe_probes(&measured), layer_of)
            .filter(|model| !model.bends())?;
        let shares = InShares::probed(&model, frontiers).ok()?;
        Some((model, shares))
    }
}

impl VisitNoise {
    /// The times of `segment` in one visit, loaded for it anew. `place` is what tells it from all else that the visit loads.
    fn visit(
        self,
        npu: &SimulatedProcessor,
        segment: Segment,
        place: Segment,
        order: u32,
        seed: u64,
    ) -> Vec<Nanos> {
        let order = u64::from(order);
        let factor = |what: &str, of: Segment, sigma| {
            let noise = Noise {
                proportional_sigma: sigma,
                spike_factor: 1.0,
                ..Noise::default()
            };
            let second = Nanos::from_millis(1_000);
            let scattered = noise.scatter(second, what, of, Invocation::sample(seed, order));
            scattered.as_nanos() as f64 / second.as_nanos() as f64
        };
        let of_visit = factor("visit", Segment::single(1), self.visit_sigma);
        let slower = of_visit * factor("loading", place, self.loading_sigma);
        let indices = SAMPLES_OF_VISIT * order..SAMPLES_OF_VISIT * (order + 1);
        let times = indices.map(|index| npu.sample(segment, seed, index));
        times
            .map(|time| Nanos::from_nanos((time.as_nanos() as f64 * slower).round() as u64))
            .collect()
    }
}

fn add(measured: &mut VisitSamples, segment: Segment, order: u32, times: Vec<Nanos>) {
    for time in times {
        measured.push(segment, Visit { order, block: 0 }, time);
    }
}

fn is_negative(time: &LayerTime) -> bool {
    time.compute
        .ci95
        .is_some_and(|(_, high)| high.as_nanos() < 0)
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

    /// Likewise. Where visits or loadings differ, the straight line is still one, and intervals hold what they do to it.
    #[test]
    fn where_visits_and_loadings_differ_intervals_hold_the_truth_and_lines_are_not_refused() {
        let network = Network::open(&file("models/alexnet.onnx"), &BTreeMap::new());
        let work = LayerWork::of(&network.expect("a model of this repository"));
        for (visit_sigma, loading_sigma) in [(0.05, 0.0), (0.05, 0.01), (0.0, 0.04), (0.04, 0.03)] {
            let noise = VisitNoise {
                visit_sigma,
                loading_sigma,
            };
            let mut runs = ProbedRuns {
                noise,
                ..ProbedRuns::default()
            };
            for (place, device) in (0..).zip(DEVICES) {
                for seed in 0..40 {
                    runs.run(device, &work, 1_000 * place + seed);
                }
            }
            assert!(
                runs.refused * 100 <= runs.runs,
                "{noise:?}: {}",
                runs.refused
            );
            assert_eq!(runs.placements_changed, 0);
            for (quantity, found) in &runs.quantities {
                let share = found.coverage();
                // Variances are never estimated below zero, and a misfit widens intervals without a small one narrowing them.
                assert!(
                    (0.92..=0.995).contains(&share),
                    "{noise:?}: {share} of {quantity}"
                );
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

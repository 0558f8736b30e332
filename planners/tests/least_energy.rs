//! The placement that draws least against every placement there is, on simulated networks of up to 14 layers. What a placement
//! draws and takes is summed up here from the raw tables.

use crate::planted;

use layerlab_planners::confidence::Confidence;
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::sweep::{accuracy_limits, time_limits};
use layerlab_planners::{EnergyLimit, EnergyPlan, Goal, Problem, TimeTable, least_energy};
use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Nanos, Placement, SignedNanos};
use planted::Planted;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

fn layers(seed: u64) -> usize {
    3 + seed as usize % 12
}

/// Layer costs with these powers in W in the place of each, whose energy is in nJ.
fn drawn(times: &[LayerTime], random: &mut ChaCha8Rng, watts: f64) -> Vec<LayerTime> {
    times
        .iter()
        .map(|time| {
            // Layers do not all draw the same.
            let mut scaled = |estimate: Estimate| {
                let factor = watts * random.random_range(0.3..3.0);
                Estimate {
                    value: SignedNanos::from_nanos(
                        (estimate.value.as_nanos() as f64 * factor).round() as i64,
                    ),
                    ci95: None,
                }
            };
            LayerTime {
                compute: scaled(time.compute),
                to_processor: time.to_processor.map(&mut scaled),
                from_processor: time.from_processor.map(&mut scaled),
                ..*time
            }
        })
        .collect()
}

/// A network with what its layers draw.
struct Metered {
    planted: Planted,
    cpu: Vec<LayerTime>,
    npu: Vec<LayerTime>,
}

impl Metered {
    fn new(seed: u64) -> Metered {
        let planted = Planted::new(layers(seed), seed);
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0xe0e0);
        // An accelerator that draws much is not always the better choice.
        let npu_watts = [0.5, 3.0, 30.0][seed as usize % 3];
        let cpu = drawn(&planted.cpu, &mut random, 3.0);
        let npu = drawn(&planted.npu, &mut random, npu_watts);
        Metered { planted, cpu, npu }
    }

    fn energies(&self) -> TimeTable {
        TimeTable::new(self.cpu.clone(), self.npu.clone(), None).expect("all transfers are there")
    }
}

/// What a placement costs by these tables, layer by layer.
fn sum(cpu: &[LayerTime], npu: &[LayerTime], on_npu: &[bool]) -> i64 {
    let nanos = |one: Option<Estimate>| one.map_or(0, |one| one.value.as_nanos());
    let mut sum = 0;
    for (index, &here) in on_npu.iter().enumerate() {
        if !here {
            sum += cpu[index].compute.value.as_nanos();
            continue;
        }
        sum += npu[index].compute.value.as_nanos();
        if index == 0 || !on_npu[index - 1] {
            sum += nanos(npu[index].to_processor);
        }
        if index + 1 == on_npu.len() || !on_npu[index + 1] {
            sum += nanos(npu[index].from_processor);
        }
    }
    sum
}

/// The least energy of all placements that keep a limit, by estimates.
fn brute_force(metered: &Metered, problem: &Problem, limit: EnergyLimit) -> Option<i64> {
    let planted = &metered.planted;
    let layers = planted.cpu.len();
    let mut least = None;
    for bits in 0_u32..1 << layers {
        let on_npu: Vec<bool> = (0..layers).map(|index| bits >> index & 1 == 1).collect();
        let kept = match limit {
            EnergyLimit::Time { within } => {
                sum(&planted.cpu, &planted.npu, &on_npu) <= within.signed().as_nanos()
            }
            EnergyLimit::Accuracy { at_least } => {
                let loss = planted.loss(&Placement::new(on_npu.clone()));
                let accuracy = match bits {
                    0 => problem.baseline(),
                    _ => {
                        let packed = PackedPlacement::of(&Placement::new(on_npu.clone()));
                        let measured = packed.ok().and_then(|one| problem.measured_accuracy(&one));
                        measured
                            .unwrap_or((problem.baseline() - loss).clamp(0.0, problem.baseline()))
                    }
                };
                accuracy >= at_least
            }
            EnergyLimit::Unlimited => true,
        };
        let energy = sum(&metered.cpu, &metered.npu, &on_npu);
        if kept && least.is_none_or(|least| energy < least) {
            least = Some(energy);
        }
    }
    least
}

fn limits(problem: &Problem) -> Vec<EnergyLimit> {
    let goals = time_limits(problem, 4).into_iter();
    goals
        .chain(accuracy_limits(problem, 4))
        .map(|goal| match goal {
            Goal::MaxAccuracy { within } => EnergyLimit::Time { within },
            Goal::MinTime { at_least } => EnergyLimit::Accuracy { at_least },
        })
        .chain([EnergyLimit::Unlimited])
        .collect()
}

/// Which layers are on the accelerator.
fn on_npu(plan: &EnergyPlan) -> Vec<bool> {
    let processors = plan.combination.processors().iter();
    processors.map(|&processor| processor == 1).collect()
}

fn planned(problem: &Problem, energies: &TimeTable, limit: EnergyLimit) -> Option<EnergyPlan> {
    least_energy(problem, energies, limit).expect("a sensible limit")
}

fn assert_optimal(instances: u64) {
    (0..instances).into_par_iter().for_each(|seed| {
        let metered = Metered::new(seed);
        let (problem, energies) = (metered.planted.known(), metered.energies());
        for limit in limits(&problem) {
            let plan = planned(&problem, &energies, limit).expect("the limits are possible");
            let expected = brute_force(&metered, &problem, limit);
            assert_eq!(Some(plan.energy_nj), expected, "seed {seed}, {limit}");
            assert!(plan.is_optimum && plan.keeps_limit);
            let on_npu = on_npu(&plan);
            let time = sum(&metered.planted.cpu, &metered.planted.npu, &on_npu);
            assert_eq!(plan.time.as_nanos(), time);
            assert_eq!(plan.energy_nj, sum(&metered.cpu, &metered.npu, &on_npu));
        }
        let too_short = EnergyLimit::Time {
            within: Nanos::from_nanos(1),
        };
        assert_eq!(planned(&problem, &energies, too_short), None);
    });
}

#[test]
fn the_optimum_is_found() {
    assert_optimal(36);
}

#[test]
#[ignore = "takes a quarter of a minute: make slow-test"]
fn the_optimum_is_found_in_300_instances() {
    assert_optimal(300);
}

fn assert_no_layer_is_better_moved(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let planted = Planted::new(26, seed);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let cpu = drawn(&planted.cpu, &mut random, 3.0);
        let npu = drawn(&planted.npu, &mut random, 3.0);
        let energies = TimeTable::new(cpu.clone(), npu.clone(), None).expect("all transfers");
        let problem = planted.known();
        for limit in limits(&problem) {
            let plan = planned(&problem, &energies, limit).expect("the limits are possible");
            assert_eq!(plan.is_optimum, limit == EnergyLimit::Unlimited);
            let on_npu = on_npu(&plan);
            for index in 0..on_npu.len() {
                let mut moved = on_npu.clone();
                moved[index] = !moved[index];
                let kept = match limit {
                    EnergyLimit::Time { within } => {
                        sum(&planted.cpu, &planted.npu, &moved) <= within.signed().as_nanos()
                    }
                    EnergyLimit::Accuracy { at_least } => {
                        let placement = Placement::new(moved.clone());
                        let packed = PackedPlacement::of(&placement).expect("few layers");
                        problem.accuracies(&[packed])[0].value >= at_least
                    }
                    EnergyLimit::Unlimited => true,
                };
                if kept {
                    let energy = sum(&cpu, &npu, &moved);
                    assert!(
                        energy >= plan.energy_nj,
                        "seed {seed}, {limit}, layer {index}"
                    );
                }
            }
        }
    }
}

#[test]
fn more_layers_than_can_all_be_tried_are_planned_no_worse_than_by_moving_a_layer() {
    assert_no_layer_is_better_moved(0..1);
}

#[test]
#[ignore = "takes half a minute: make slow-test"]
fn more_networks_of_more_layers_are_planned_no_worse_than_by_moving_a_layer() {
    assert_no_layer_is_better_moved(1..4);
}

#[test]
fn a_limit_is_kept_with_the_confidence_that_is_asked_for_or_it_is_said_that_it_is_not() {
    let metered = Metered::new(5);
    let energies = metered.energies();
    let known = metered
        .planted
        .known()
        .with_confidence(Some(Confidence::USUAL));
    // Nothing is known of the error of times here, and a model that knows the truth does not err.
    let at_least = 0.5 * known.baseline();
    let plan = planned(&known, &energies, EnergyLimit::Accuracy { at_least });
    assert!(plan.expect("all on the CPU keeps it").keeps_limit);
    let beyond = EnergyLimit::Accuracy { at_least: 2.0 };
    let refused = least_energy(&known, &energies, beyond).expect_err("no fraction");
    assert!(
        refused.to_string().contains("must be a fraction"),
        "{refused}"
    );
    let other = Metered::new(6).energies();
    let refused = least_energy(&known, &other, EnergyLimit::Accuracy { at_least });
    assert!(
        refused
            .expect_err("another model")
            .to_string()
            .contains("must be of the same")
    );
}

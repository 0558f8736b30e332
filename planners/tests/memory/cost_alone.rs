//! Plans by time or energy alone are the best that there are, by trying every placement: on two and three processors, with what
//! they cannot run and what their memories do not hold.

use layerlab_planners::cost_alone::ACCURACY_UNKNOWN;
use layerlab_planners::export::{energy_plan_json, time_plan_json};
use layerlab_planners::least_energy::EnergyPlanError;
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::reason::{Reason, Verdict};
use layerlab_planners::{
    Confidence, EnergyLimit, EnergyPlan, MemoryMode, TimePlan, fastest_plan, least_energy_alone,
};
use layerlab_profiles::{Nanos, Placement};
use rayon::prelude::*;

use super::several::Several;
use super::{Instance, MODES, source};

/// An instance, some of which have layers that the accelerator cannot run, alone or as one unit.
fn instance(layers: usize, accelerators: usize, seed: u64, mode: MemoryMode) -> Instance {
    let mut instance = Instance::new(layers, accelerators, seed, mode);
    let layer = 1 + (seed / 3) as u32 % layers as u32;
    let last = (layer + 1).min(layers as u32);
    instance.several = match seed % 3 {
        0 => instance.several,
        1 => instance.several.without(1, &[(layer, layer)]),
        _ => instance.several.without(1, &[(layer, last)]),
    };
    instance
}

/// Every possible placement with its time.
fn every(instance: &Instance) -> Vec<(Vec<usize>, i64)> {
    let all = instance.every().into_iter();
    all.filter(|(digits, _, _)| instance.several.can_run(digits))
        .map(|(digits, time, _)| (digits, time))
        .collect()
}

/// The same network's layers on the same processors with other costs, which are energies.
fn drawing(instance: &Instance, seed: u64) -> Several {
    let (layers, processors) = (instance.several.layers.len(), instance.memories.len() + 1);
    let energies = Several::new(layers, processors, seed ^ 0xe0e0);
    let energies = (1..)
        .zip(&instance.memories)
        .fold(energies, |energies, (on, memory)| {
            energies.in_memory(on, memory.told(instance.mode))
        });
    let lacked = instance.several.times();
    let lacked = lacked.unsupported(1).iter();
    let lacked: Vec<(u32, u32)> = lacked.map(|one| one.segment.into()).collect();
    energies.without(1, &lacked)
}

fn digits(placement: &Placement) -> Vec<usize> {
    let digits = placement.processors().iter();
    digits.map(|&on| usize::from(on)).collect()
}

fn fastest(several: &Several) -> TimePlan {
    fastest_plan(&several.layers, &several.times()).expect("few layers")
}

#[test]
fn the_fastest_of_all_is_found_in_500_instances() {
    for mode in MODES {
        (0..500_u64).into_par_iter().for_each(|seed| {
            let (layers, accelerators) = match seed % 5 {
                4 => (2 + seed as usize % 6, 2),
                _ => (2 + seed as usize % 13, 1),
            };
            let instance = instance(layers, accelerators, seed, mode);
            let every = every(&instance);
            let plan = fastest(&instance.several);
            let found = digits(&plan.combination);
            let known = every.iter().find(|(digits, _)| *digits == found);
            let (_, time) = known.expect("a possible placement");
            assert_eq!(plan.time.total().as_nanos(), *time, "seed {seed}");
            let least = every.iter().map(|(_, time)| time).min();
            assert_eq!(Some(time), least, "seed {seed}, {mode}");
            assert!(plan.memory.iter().all(|used| used.fits()));
            // A reason for each layer and each other processor: no move is better.
            assert_eq!(plan.reasons.len(), layers * accelerators);
            for reason in &plan.reasons {
                if let Reason::Layer(layer) = reason {
                    assert!(layer.verdict != Verdict::Better, "{reason}");
                    assert_eq!(layer.accuracy_change, None);
                    assert!(!reason.to_string().contains("accuracy"), "{reason}");
                }
            }
        });
    }
}

/// What is known of every possible placement: its energy, its time, and what its time may be at most.
fn costs(several: &Several, energies: &Several, every: &[(Vec<usize>, i64)]) -> Vec<[i64; 3]> {
    let times = several.times();
    let cost = |(digits, time): &(Vec<usize>, i64)| {
        let placement = Placement::new(digits.iter().map(|&on| on as u8).collect());
        let packed = PackedPlacement::of(&placement).expect("few layers");
        let longest = times.interval(&packed).expect("all times have intervals").1;
        [energies.time(digits), *time, longest.as_nanos()]
    };
    every.iter().map(cost).collect()
}

fn least(costs: &[[i64; 3]], is_kept: impl Fn(&[i64; 3]) -> bool) -> Option<i64> {
    let kept = costs.iter().filter(|cost| is_kept(cost));
    kept.map(|[energy, ..]| *energy).min()
}

/// Plans within some times, and compares with every placement there is. `is_proven` is whether all are tried.
fn assert_least_energy(instance: &Instance, seed: u64, is_proven: bool) {
    let (several, energies) = (&instance.several, drawing(instance, seed));
    let (times, table) = (several.times(), energies.times());
    let plan = |within, confidence| -> Option<EnergyPlan> {
        least_energy_alone(&times, &table, within, confidence).expect("of one model")
    };
    let costs = costs(several, &energies, &every(instance));
    let unlimited = plan(None, Some(Confidence::USUAL)).expect("a placement");
    assert!(unlimited.is_optimum && unlimited.keeps_limit && unlimited.accuracy.is_none());
    assert_eq!(
        Some(unlimited.energy_nj),
        least(&costs, |_| true),
        "seed {seed}"
    );

    let mut all_times: Vec<i64> = costs.iter().map(|[_, time, _]| *time).collect();
    all_times.sort_unstable();
    let most = all_times.len() - 1;
    let too_short = Nanos::from_nanos(all_times[0] as u64 - 1);
    assert_eq!(plan(Some(too_short), None), None);
    for place in [0, most / 50, most / 9, most / 2, most] {
        let limit = all_times[place];
        let within = Some(Nanos::from_nanos(limit as u64));
        let estimated = plan(within, None).expect("one is fast enough");
        let by_estimates = least(&costs, |[_, time, _]| *time <= limit);
        assert_eq!(
            Some(estimated.energy_nj),
            by_estimates,
            "seed {seed}, {limit}"
        );
        assert!(estimated.is_optimum && estimated.keeps_limit);

        let sure = plan(within, Some(Confidence::USUAL)).expect("one is fast enough");
        let surely = least(&costs, |[_, _, longest]| *longest <= limit);
        assert_eq!(
            sure.keeps_limit || !is_proven,
            surely.is_some() || !is_proven
        );
        if is_proven || !sure.keeps_limit {
            let expected = surely.or(by_estimates);
            assert_eq!(Some(sure.energy_nj), expected, "seed {seed}, {limit}");
        }
        if sure.is_optimum && sure.keeps_limit {
            assert_eq!(Some(sure.energy_nj), surely, "seed {seed}, {limit}");
        }
        assert!(!is_proven || sure.is_optimum);
        let found = digits(&sure.combination);
        assert_eq!(sure.energy_nj, energies.time(&found));
        assert_eq!(sure.time.as_nanos(), several.time(&found));
    }
}

#[test]
fn the_least_energy_within_a_time_is_found_in_500_instances() {
    (0..500_u64).into_par_iter().for_each(|seed| {
        let (layers, accelerators) = match seed % 5 {
            4 => (2 + seed as usize % 6, 2),
            _ => (2 + seed as usize % 13, 1),
        };
        let instance = instance(layers, accelerators, seed, MemoryMode::Resident);
        assert_least_energy(&instance, seed, true);
    });
}

#[test]
fn more_placements_than_can_all_be_tried_are_planned_as_well_by_estimates() {
    // Three processors: 12 layers are the most of which all placements are tried.
    (0..3_u64).into_par_iter().for_each(|seed| {
        let instance = instance(13, 2, seed, MemoryMode::Resident);
        assert_least_energy(&instance, seed, false);
    });
}

#[test]
fn limits_and_tables_that_make_no_sense_are_refused() {
    let [one, other] = [3, 4].map(|layers| Several::new(layers, 2, 1).times());
    let refused = least_energy_alone(&one, &one, Some(Nanos::ZERO), None).expect_err("no time");
    assert!(
        refused.to_string().contains("the time limit is 0"),
        "{refused}"
    );
    let refused = least_energy_alone(&one, &other, None, None).expect_err("two models");
    assert!(
        matches!(refused, EnergyPlanError::Different { .. }),
        "{refused}"
    );
}

#[test]
fn documents_have_no_accuracy_and_say_why() {
    let several = Several::new(5, 2, 3);
    let plan = fastest(&several);
    let json = time_plan_json(&source(), &plan).expect("JSON");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let outcome = &json["outcomes"][0];
    assert_eq!(outcome["goal"], "min-time");
    assert_eq!(outcome["algorithm"], "fastest");
    let said = &outcome["plan"];
    assert_eq!(said["combination"], plan.combination.to_string());
    assert_eq!(said["time_ns"], plan.time.total().as_nanos());
    let unknown = [
        "accuracy",
        "accuracy_interval",
        "predicted_loss",
        "accuracy_clamped",
        "measured_accuracy",
        "keeps_limit",
        "confidence",
        "evaluated",
    ];
    for field in unknown {
        assert!(
            said[field].is_null() && said.get(field).is_some(),
            "{field}: {said}"
        );
    }
    assert_eq!(said["is_measured"], false);
    assert_eq!(said["notes"], serde_json::json!([ACCURACY_UNKNOWN]));
    let layers = said["layers"].as_array().expect("layers");
    assert_eq!(layers.len(), 5);
    for layer in layers {
        assert!(layer["moving_changes_accuracy"].is_null(), "{layer}");
        assert!(layer["moving_changes_time_ns"].is_i64(), "{layer}");
    }

    let times = several.times();
    let least = least_energy_alone(&times, &times, None, None).expect("of one model");
    let json = energy_plan_json(&source(), EnergyLimit::Unlimited, None, least.as_ref());
    let json: serde_json::Value = serde_json::from_str(&json.expect("JSON")).expect("JSON");
    assert!(json["limit_time_ns"].is_null() && json["limit_accuracy"].is_null());
    let said = &json["plan"];
    assert!(said["accuracy"].is_null() && said["accuracy_interval"].is_null());
    assert_eq!(said["notes"], serde_json::json!([ACCURACY_UNKNOWN]));
    assert!(said["energy_nj"].is_i64() && said["time_ns"].is_i64());
}

//! Splits that keep an accuracy against every placement and every split there is.

use std::collections::BTreeMap;

use layerlab_planners::edge::{
    AccuracyLimit, AccurateOutcome, PlacedProblem, SplitAlgorithm, SplitError, SplitGoal,
    SplitLimits, split_accurately,
};
use layerlab_profiles::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::brute_force;
use crate::optimum::{costs, goal};
use crate::placed::Placed;
use crate::planted::Planted;

const INSTANCES: u64 = 400;

/// Mostly short networks; every hundredth as long as brute force goes.
fn instance(seed: u64) -> Placed {
    let processors = 2 + usize::from(seed % 5 == 2);
    let layers = match (seed % 100, processors) {
        (0, _) => 10,
        (_, 3) => 1 + (seed % 6) as u32,
        _ => 1 + (seed % 8) as u32,
    };
    Placed::new(layers, processors, seed)
}

/// An accuracy that some placements have and others do not, as a rule.
fn required(placed: &Placed, seed: u64) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0xacc);
    let mut all = placed.all_least();
    all.sort_unstable_by(f64::total_cmp);
    let exact = all[random.random_range(0..all.len())];
    match random.random_range(0..4) {
        // To the last digit what some placement has.
        0 => exact,
        1 => (exact + 0.02).min(1.0),
        _ => 0.5 * (exact + all[all.len() - 1]),
    }
}

#[test]
fn accurate_splits_are_the_best_of_all_placements_and_splits() {
    let (mut bound, mut limited, mut inaccurate, mut measured) = (0, 0, 0, 0);
    for seed in 0..INSTANCES {
        let placed = instance(seed);
        let at_least = required(&placed, seed);
        let keeps = |digits: &[u8]| placed.least(digits) >= at_least;
        let all = brute_force::all_placed_costs(&placed.networks, |_| true, |_| true);
        let kept = brute_force::all_placed_costs(&placed.networks, |_| true, keeps);
        let problem = placed.placed_problem();
        let limit = placed.limit(at_least);
        let mut goals = Vec::new();
        if !all.is_empty() {
            goals.push(goal(&all, seed));
        }
        if !kept.is_empty() {
            goals.push(goal(&kept, seed));
        }
        for goal in [
            goals
                .iter()
                .map(|goal| SplitGoal {
                    limits: SplitLimits::default(),
                    ..*goal
                })
                .collect(),
            goals,
        ]
        .concat()
        {
            let outcome = split_accurately(&problem, &limit, goal, SplitAlgorithm::Joint);
            let outcome = outcome.expect("sensible");
            if let Some(split) = outcome.split() {
                placed.assert_sound(split);
                assert!(split.is_best());
                measured += usize::from(split.accuracy().is_measured);
            }
            let found = outcome.split().map(|split| costs(&split.plan().cost()));
            let optimum = brute_force::optimum(&kept, goal);
            assert_eq!(found, optimum, "seed {seed}, {at_least}, {goal:?}");
            let free = brute_force::optimum(&all, goal);
            bound += usize::from(optimum.is_some() && optimum != free);
            let has_limits = goal.limits.limited().next().is_some();
            limited += usize::from(has_limits && optimum.is_some() && optimum != free);
            inaccurate += usize::from(matches!(outcome, AccurateOutcome::TooInaccurate(_)));
        }
    }
    assert!(bound > 300, "accuracies that change the optimum: {bound}");
    assert!(limited > 100, "among other limits: {limited}");
    assert!(inaccurate > 50, "that nothing keeps: {inaccurate}");
    assert!(measured > 100, "plans that were measured: {measured}");
}

#[test]
fn tensors_are_packed_where_an_accuracy_is_to_be_kept() {
    let mut packed = 0;
    for seed in (0..INSTANCES).filter(|seed| seed % 4 == 2) {
        let mut placed = instance(seed);
        let at_least = required(&placed, seed);
        let networks = placed.networks.into_iter();
        placed.networks = networks.map(|one| one.with_packings(seed)).collect();
        let keeps = |digits: &[u8]| placed.least(digits) >= at_least;
        let kept = brute_force::all_placed_costs(&placed.networks, |_| true, keeps);
        let fastest = SplitGoal::FASTEST;
        let (problem, limit) = (placed.placed_problem(), placed.limit(at_least));
        let outcome = split_accurately(&problem, &limit, fastest, SplitAlgorithm::Joint);
        let outcome = outcome.expect("sensible");
        if let Some(split) = outcome.split() {
            placed.assert_sound(split);
            let transfers = split.plan().transfers().iter();
            packed += transfers.filter(|one| one.codec.is_some()).count();
        }
        let found = outcome.split().map(|split| costs(&split.plan().cost()));
        let optimum = brute_force::optimum(&kept, fastest);
        assert_eq!(found, optimum, "seed {seed}, {at_least}");
    }
    assert!(packed > 20, "{packed}");
    let packed = Planted::new(4, 1).with_packings(1);
    let others = BTreeMap::from([(1, Planted::new(4, 1).network)]);
    let refused = PlacedProblem::new(packed.network, others, &packed.link, packed.idle);
    assert_eq!(refused.err(), Some(SplitError::OtherNetwork { digit: 1 }));
}

#[test]
fn what_accurate_splits_are_compared_with_is_the_best_of_its_kind() {
    for seed in (0..INSTANCES).filter(|seed| seed % 4 == 1) {
        let placed = instance(seed);
        let at_least = required(&placed, seed);
        let keeps = |digits: &[u8]| placed.least(digits) >= at_least;
        let layers = placed.networks[0].network.layers();
        let (problem, limit) = (placed.placed_problem(), placed.limit(at_least));
        let all_bits = (1_u32 << layers) - 1;
        let is_one_cut = |server: u32| (0..=layers).any(|cut| server == all_bits >> cut << cut);
        let kinds: [(SplitAlgorithm, &dyn Fn(u32) -> bool); 3] = [
            (SplitAlgorithm::PhoneOnly, &|server| server == 0),
            (SplitAlgorithm::ServerOnly, &|server| server == all_bits),
            (SplitAlgorithm::Neurosurgeon, &is_one_cut),
        ];
        for (algorithm, allowed) in kinds {
            let kept = brute_force::all_placed_costs(&placed.networks, allowed, keeps);
            let goal = SplitGoal {
                minimise: layerlab_planners::edge::Quantity::ALL[seed as usize % 3],
                limits: SplitLimits::default(),
            };
            let outcome = split_accurately(&problem, &limit, goal, algorithm).expect("sensible");
            let found = outcome.split().map(|split| costs(&split.plan().cost()));
            let optimum = brute_force::optimum(&kept, goal);
            assert_eq!(found, optimum, "seed {seed}, {algorithm}");
        }
    }
}

#[test]
fn the_best_accuracy_that_is_reachable_is_said_and_true() {
    let mut found = 0;
    for seed in (0..INSTANCES).filter(|seed| seed % 2 == 0) {
        let placed = instance(seed);
        let all = brute_force::all_placed_costs(&placed.networks, |_| true, |_| true);
        if all.is_empty() {
            continue;
        }
        let goal = goal(&all, seed);
        let outcome = split_accurately(
            &placed.placed_problem(),
            &placed.limit(1.0),
            goal,
            SplitAlgorithm::Joint,
        );
        let AccurateOutcome::TooInaccurate(why) = outcome.expect("sensible") else {
            continue;
        };
        let is_reached = |at_least: f64| {
            let keeps = |digits: &[u8]| placed.least(digits) >= at_least;
            let kept = brute_force::all_placed_costs(&placed.networks, |_| true, keeps);
            brute_force::optimum(&kept, goal).is_some()
        };
        let reachable = why.reachable();
        assert!(is_reached(reachable), "seed {seed}");
        let higher = placed
            .all_least()
            .into_iter()
            .filter(|&least| least > reachable);
        let next = higher.min_by(f64::total_cmp);
        assert!(!next.is_some_and(is_reached), "seed {seed}");
        let text = why.to_string();
        // Four digits that are reachable, too.
        let said = format!("is {:.4}", (reachable * 1e4).floor() / 1e4);
        assert!(
            text.starts_with("joint has no plan: no placement keeps accuracy 1")
                && text.contains(&said)
                && text.contains("within the other limits")
                    == goal.limits.limited().next().is_some(),
            "{text}"
        );
        found += 1;
    }
    assert!(found > 50, "{found}");
}

/// The search that stands in where there are too many placements, where all can be tried.
#[test]
fn the_search_finds_most_of_the_best_accurate_splits() {
    let (mut compared, mut missed, mut worst) = (0, 0, 1.0_f64);
    for seed in 0..120 {
        let processors = 2 + usize::from(seed % 3 == 2);
        let layers = if processors == 2 { 12 } else { 8 };
        let placed = Placed::new(layers, processors, seed);
        let at_least = required(&placed, seed);
        let problem = placed.placed_problem();
        let searched = AccuracyLimit::without_all(&placed.problem, &placed.digits(), at_least);
        let searched = searched.expect("a fraction");
        let goal = SplitGoal {
            minimise: layerlab_planners::edge::Quantity::Latency,
            limits: SplitLimits::default(),
        };
        let answer = |limit: &AccuracyLimit| {
            let outcome = split_accurately(&problem, limit, goal, SplitAlgorithm::Joint);
            outcome.expect("sensible")
        };
        let (best, found) = (answer(&placed.limit(at_least)), answer(&searched));
        let Some(best) = best.split() else {
            assert!(found.split().is_none(), "seed {seed}");
            continue;
        };
        let found = found.split().expect("the CPU is as accurate as anything");
        placed.assert_sound(found);
        assert!(!found.is_best());
        let latencies = [found, best].map(|one| one.plan().cost().latency.as_nanos() as f64);
        assert!(latencies[0] >= latencies[1], "seed {seed}");
        compared += 1;
        missed += usize::from(latencies[0] > latencies[1]);
        worst = worst.max(latencies[0] / latencies[1]);
    }
    assert!(
        compared > 100 && missed * 50 <= compared,
        "{missed} of {compared}"
    );
    assert!(worst < 1.05, "{worst}");
}

/// Thirty layers have a billion placements: what is found keeps the accuracy, and asking for less never costs more.
#[test]
fn a_long_network_costs_no_more_where_less_accuracy_is_required() {
    let placed = Placed::chain(30, 2, 3);
    let problem = placed.placed_problem();
    let goal = SplitGoal {
        minimise: layerlab_planners::edge::Quantity::Latency,
        limits: SplitLimits {
            server_time: Some(Nanos::from_millis(30)),
            ..SplitLimits::default()
        },
    };
    let mut before = 0;
    for at_least in [0.0, 0.3, 0.5, 0.6, 0.7, 0.75, 0.79] {
        let limit = placed.limit(at_least);
        let outcome = split_accurately(&problem, &limit, goal, SplitAlgorithm::Joint);
        let outcome = outcome.expect("sensible");
        let split = outcome.split().expect("the CPU is as accurate as anything");
        placed.assert_sound(split);
        let latency = split.plan().cost().latency.as_nanos();
        assert!(latency >= before, "{at_least}");
        before = latency;
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let placed = Placed::new(4, 2, 1);
    let problem = placed.placed_problem();
    let goal = SplitGoal {
        minimise: layerlab_planners::edge::Quantity::Latency,
        limits: SplitLimits::default(),
    };
    let limit = placed.limit(0.5);
    let larac = split_accurately(&problem, &limit, goal, SplitAlgorithm::Larac);
    assert_eq!(larac.err(), Some(SplitError::LaracAccuracy));
    let longer = Placed::new(5, 2, 1);
    let other = split_accurately(&problem, &longer.limit(0.5), goal, SplitAlgorithm::Joint);
    let (given, layers) = (5, 4);
    assert_eq!(
        other.err(),
        Some(SplitError::OtherAccuracies { given, layers })
    );
    let alone = AccuracyLimit::new(&placed.problem, &[0], 0.5).expect("a fraction");
    let other = split_accurately(&problem, &alone, goal, SplitAlgorithm::Joint);
    assert_eq!(other.err(), Some(SplitError::OtherDigits));
    for wrong in [-0.1, 1.1, 60.0, f64::NAN] {
        let error = AccuracyLimit::new(&placed.problem, &[0, 1], wrong).err();
        let error = error.expect("no fraction").to_string();
        assert!(error.contains("a fraction between 0 and 1"), "{error}");
    }
}

//! Joint plans against every split there is, on networks of up to 12 layers.

use layerlab_planners::edge::{
    Energy, Quantity, SplitAlgorithm, SplitCost, SplitGoal, SplitLimits, WhyNoSplit, split,
    split_front,
};
use layerlab_profiles::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::brute_force::{self, Costs};
use crate::planted::Planted;

const INSTANCES: u64 = 1_000;

/// Mostly short networks, whose splits are tried in no time; every fiftieth as long as brute force goes.
pub(crate) fn layers(seed: u64) -> u32 {
    match seed % 50 {
        0 => 12,
        rest => 1 + (rest % 9) as u32,
    }
}

pub(crate) fn costs(cost: &SplitCost) -> Costs {
    Quantity::ALL.map(|quantity| cost.of(quantity))
}

/// A goal with limits on a random subset of the three costs, most of them between the least and what the optimum
/// without limits costs, so that they change it.
pub(crate) fn goal(all: &[Costs], seed: u64) -> SplitGoal {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x60a1);
    let minimise = Quantity::ALL[random.random_range(0..2)];
    let limits = SplitLimits::default();
    let free = brute_force::optimum(all, SplitGoal { minimise, limits });
    let free = free.expect("there are splits");
    let mut limit = |quantity| {
        let least = brute_force::least(all, quantity);
        let most = brute_force::of(&free, quantity).max(least + least / 20 + 1);
        let limit = random.random_range(least.max(1)..=most + (most - least) / 2);
        let share = if quantity == minimise { 0.2 } else { 0.6 };
        random.random_bool(share).then_some(limit)
    };
    let limits = SplitLimits {
        latency: limit(Quantity::Latency).map(Nanos::from_nanos),
        energy: limit(Quantity::Energy).map(Energy::from_nanojoules),
        server_time: limit(Quantity::ServerTime).map(Nanos::from_nanos),
    };
    SplitGoal { minimise, limits }
}

#[test]
fn joint_plans_are_the_optimum_of_all_splits_with_and_without_limits() {
    let (mut bound, mut infeasible) = (0, 0);
    for seed in 0..INSTANCES {
        let planted = Planted::new(layers(seed), seed);
        let problem = planted.problem();
        let all = brute_force::all_costs(&planted, |_| true);
        let answer = |goal| split(&problem, goal, SplitAlgorithm::Joint).expect("sensible");
        for minimise in Quantity::ALL {
            let limits = SplitLimits::default();
            let goal = SplitGoal { minimise, limits };
            let outcome = answer(goal);
            let found = planted.checked(&outcome).map(|plan| costs(&plan.cost()));
            assert_eq!(
                found,
                brute_force::optimum(&all, goal),
                "seed {seed}, {goal:?}"
            );
        }
        if all.is_empty() {
            continue;
        }
        let goal = goal(&all, seed);
        let outcome = answer(goal);
        let found = planted.checked(&outcome).map(|plan| costs(&plan.cost()));
        let optimum = brute_force::optimum(&all, goal);
        assert_eq!(found, optimum, "seed {seed}, {goal:?}");
        let limits = SplitLimits::default();
        let free = brute_force::optimum(&all, SplitGoal { limits, ..goal });
        bound += usize::from(optimum.is_some() && optimum != free);
        infeasible += usize::from(optimum.is_none());
    }
    assert!(bound > 200, "limits that change the optimum: {bound}");
    assert!(infeasible > 50, "limits that nothing keeps: {infeasible}");
}

/// Both other costs limited to those of a split that no other beats: it is all that is left, or something faster or
/// more frugal.
#[test]
fn joint_plans_are_the_optimum_where_two_limits_leave_no_room() {
    for seed in (0..INSTANCES).filter(|seed| seed % 50 > 4) {
        let planted = Planted::new(layers(seed), seed);
        let all = brute_force::all_costs(&planted, |_| true);
        let front = brute_force::front(&all, &SplitLimits::default());
        let Some(costs_of_one) = front.get(seed as usize % front.len().max(1)) else {
            continue;
        };
        let [latency, energy, server_time] = *costs_of_one;
        let mut limits = SplitLimits {
            latency: Some(Nanos::from_nanos(latency)),
            energy: Some(Energy::from_nanojoules(energy)),
            server_time: Some(Nanos::from_nanos(server_time)),
        };
        let minimise = Quantity::ALL[seed as usize / 7 % 2];
        match minimise {
            Quantity::Latency => limits.latency = None,
            _ => limits.energy = None,
        }
        let goal = SplitGoal { minimise, limits };
        let outcome = split(&planted.problem(), goal, SplitAlgorithm::Joint).expect("sensible");
        let found = planted.checked(&outcome).map(|plan| costs(&plan.cost()));
        assert_eq!(
            found,
            brute_force::optimum(&all, goal),
            "seed {seed}, {goal:?}"
        );
    }
}

#[test]
fn the_front_is_that_of_all_splits() {
    for seed in (0..INSTANCES).filter(|seed| seed % 5 == 1) {
        let planted = Planted::new(layers(seed), seed);
        let all = brute_force::all_costs(&planted, |_| true);
        if all.is_empty() {
            continue;
        }
        for limits in [SplitLimits::default(), goal(&all, seed).limits] {
            let front = split_front(&planted.problem(), limits).expect("sensible");
            front.iter().for_each(|plan| planted.assert_sound(plan));
            let found: Vec<Costs> = front.iter().map(|plan| costs(&plan.cost())).collect();
            assert_eq!(found, brute_force::front(&all, &limits), "seed {seed}");
        }
    }
}

#[test]
fn why_nothing_keeps_the_limits_is_said_and_true() {
    let (mut alone, mut together) = (0, 0);
    for seed in 0..300 {
        let planted = Planted::new(layers(seed), seed);
        let all = brute_force::all_costs(&planted, |_| true);
        if all.is_empty() {
            continue;
        }
        let mut goal = goal(&all, seed);
        if seed % 3 == 0 {
            let least = brute_force::least(&all, Quantity::Energy);
            goal.limits.energy = Some(Energy::from_nanojoules(least - 1));
        }
        let outcome = split(&planted.problem(), goal, SplitAlgorithm::Joint).expect("sensible");
        let layerlab_planners::edge::SplitOutcome::Infeasible(infeasible) = outcome else {
            continue;
        };
        let least = |quantity| brute_force::least(&all, quantity);
        match infeasible.why() {
            WhyNoSplit::Unreachable {
                quantity,
                limit,
                least: said,
            } => {
                assert_eq!(said, least(quantity));
                assert_eq!(goal.limits.of(quantity), Some(limit));
                assert!(said > limit);
                alone += 1;
            }
            WhyNoSplit::NotTogether => {
                assert!(
                    goal.limits
                        .limited()
                        .all(|(quantity, limit)| least(quantity) <= limit)
                );
                together += 1;
            }
            WhyNoSplit::NoGroups => panic!("seed {seed}: there are {} splits", all.len()),
        }
    }
    assert!(alone > 50 && together > 10, "{alone}, {together}");
}

//! The baselines against every split of their kind.

use layerlab_planners::edge::{Energy, Quantity, SplitAlgorithm, SplitGoal, SplitLimits, split};
use layerlab_profiles::Nanos;

use crate::brute_force::{self, Costs, of};
use crate::optimum::{costs, goal, layers};
use crate::planted::Planted;

#[test]
fn phone_only_server_only_and_one_cut_are_the_best_of_their_kind() {
    for seed in 0..300 {
        let planted = Planted::new(layers(seed), seed);
        let problem = planted.problem();
        let everything = (1_u32 << planted.network.layers()) - 1;
        // Of one cut, the layers on the server are the last ones, or none.
        let is_suffix = move |server: u32| {
            let before = everything & !server;
            before & (before + 1) == 0
        };
        let is_kind = |algorithm| {
            move |server: u32| match algorithm {
                SplitAlgorithm::PhoneOnly => server == 0,
                SplitAlgorithm::ServerOnly => server == everything,
                _ => is_suffix(server),
            }
        };
        for algorithm in [
            SplitAlgorithm::PhoneOnly,
            SplitAlgorithm::ServerOnly,
            SplitAlgorithm::Neurosurgeon,
        ] {
            let all = brute_force::all_costs(&planted, is_kind(algorithm));
            let mut goals = vec![SplitGoal {
                minimise: Quantity::Energy,
                limits: SplitLimits::default(),
            }];
            if !all.is_empty() {
                goals.push(goal(&all, seed));
            }
            for goal in goals {
                let outcome = split(&problem, goal, algorithm).expect("sensible");
                let found = planted.checked(&outcome).map(|plan| costs(&plan.cost()));
                let optimum = brute_force::optimum(&all, goal);
                assert_eq!(found, optimum, "seed {seed}, {algorithm}, {goal:?}");
            }
        }
    }
}

/// The costs of minimised and limited quantity of the corners of the lower convex hull, by trying for each split
/// whether some pair of others has a mixture below it.
fn hull(all: &[Costs], minimise: Quantity, limited: Quantity) -> Vec<(i128, i128)> {
    let point = |costs: &Costs| {
        (
            i128::from(of(costs, minimise)),
            i128::from(of(costs, limited)),
        )
    };
    let mut points: Vec<(i128, i128)> = all.iter().map(point).collect();
    points.sort_unstable();
    points.dedup();
    let dominated =
        |one: &(i128, i128), by: &(i128, i128)| by != one && by.0 <= one.0 && by.1 <= one.1;
    let mut staircase: Vec<(i128, i128)> = Vec::new();
    for point in points {
        if !staircase.iter().any(|other| dominated(&point, other)) {
            staircase.push(point);
        }
    }
    let is_above = |at: usize| {
        let (x, y) = staircase[at];
        staircase[..at].iter().any(|&(left, high)| {
            let rest = staircase[at + 1..].iter();
            rest.into_iter()
                .any(|&(right, low)| (y - high) * (right - left) >= (low - high) * (x - left))
        })
    };
    (0..staircase.len())
        .filter(|&at| !is_above(at))
        .map(|at| staircase[at])
        .collect()
}

#[test]
fn larac_keeps_its_limit_is_as_good_as_the_hull_and_sometimes_worse_than_the_optimum() {
    let (mut optimal, mut worse, mut infeasible) = (0, 0, 0);
    for seed in (0..600).filter(|seed| seed % 50 != 0) {
        let planted = Planted::new(layers(seed), seed);
        let all = brute_force::all_costs(&planted, |_| true);
        if all.is_empty() {
            continue;
        }
        let full = goal(&all, seed);
        let mut limits = full.limits.limited();
        let Some((limited, limit)) = limits.find(|(quantity, _)| *quantity != full.minimise) else {
            continue;
        };
        let limit = match seed % 7 {
            0 => brute_force::least(&all, limited).saturating_sub(1).max(1),
            _ => limit,
        };
        let limits = one_limit(limited, limit);
        let goal = SplitGoal { limits, ..full };
        let outcome = split(&planted.problem(), goal, SplitAlgorithm::Larac).expect("one limit");
        let optimum = brute_force::optimum(&all, goal);
        let found = planted.checked(&outcome).map(|plan| costs(&plan.cost()));
        let (Some(found), Some(optimum)) = (found, optimum) else {
            assert_eq!(found, optimum, "seed {seed}: infeasible is so for both");
            infeasible += 1;
            continue;
        };
        let corners = hull(&all, goal.minimise, limited).into_iter();
        let corner = corners
            .filter(|corner| corner.1 <= i128::from(limit))
            .map(|c| c.0)
            .min();
        let (ours, best) = (of(&found, goal.minimise), of(&optimum, goal.minimise));
        assert!(
            corner.is_none_or(|corner| i128::from(ours) <= corner),
            "seed {seed}"
        );
        assert!(ours >= best, "seed {seed}: better than the optimum");
        match ours > best {
            true => worse += 1,
            false => optimal += 1,
        }
    }
    assert!(
        optimal > 100 && worse > 20 && infeasible > 10,
        "{optimal}, {worse}, {infeasible}"
    );
}

fn one_limit(quantity: Quantity, limit: u64) -> SplitLimits {
    let is = |one| (quantity == one).then_some(limit);
    SplitLimits {
        latency: is(Quantity::Latency).map(Nanos::from_nanos),
        energy: is(Quantity::Energy).map(Energy::from_nanojoules),
        server_time: is(Quantity::ServerTime).map(Nanos::from_nanos),
    }
}

//! MLMP against every placement there is, on simulated networks of up to 16 layers.

mod planted;

use layerlab_planners::accuracy::AccuracyModel;
use layerlab_planners::regress::{GbrtSettings, Settings};
use layerlab_planners::{Algorithm, Goal, Problem};
use planted::{Planted, advantage, goals};
use rayon::prelude::*;

const INSTANCES: u64 = 500;

/// Whether the answer to each goal is optimal; panics where it is better than that.
fn is_optimal(
    planted: &Planted,
    problem: &Problem,
    model: Option<&AccuracyModel>,
    seed: u64,
) -> [bool; 2] {
    goals(problem, seed).map(|goal| {
        let found = planted.plan(problem, model, goal, Algorithm::Mlmp);
        let optimum = planted.plan(problem, model, goal, Algorithm::Exhaustive);
        let better = advantage(goal, &found, &optimum);
        assert!(
            better <= 1e-12,
            "seed {seed}, {goal}: better than the optimum by {better}"
        );
        better >= -1e-12
    })
}

fn layers(seed: u64) -> usize {
    4 + seed as usize % 13
}

#[test]
fn mlmp_finds_the_optimum_of_known_losses_and_never_more() {
    let ask = |seed| {
        let planted = Planted::new(layers(seed), seed);
        is_optimal(&planted, &planted.known(), None, seed)
    };
    judge(
        "known losses",
        &(0..INSTANCES).into_par_iter().map(ask).collect::<Vec<_>>(),
    );
}

#[test]
fn mlmp_finds_the_optimum_of_learnt_losses_and_never_more() {
    let settings = Settings::Gbrt(GbrtSettings {
        trees: 50,
        depth: 3,
        learning_rate: 0.1,
    });
    let ask = |seed| {
        let planted = Planted::with_rows(layers(seed), seed, 300);
        let model = AccuracyModel::with(&planted.layers, &planted.table, settings).expect("trains");
        is_optimal(&planted, &planted.learnt(&model), Some(&model), seed)
    };
    judge(
        "learnt losses",
        &(0..INSTANCES).into_par_iter().map(ask).collect::<Vec<_>>(),
    );
}

fn judge(what: &str, optimal: &[[bool; 2]]) {
    let count = |place: usize| optimal.iter().filter(|optimal| optimal[place]).count();
    let (asked, accurate, fast) = (optimal.len(), count(0), count(1));
    assert!(
        20 * accurate >= 19 * asked && 20 * fast >= 19 * asked,
        "{what}: of {asked} optimal: Max-Accuracy {accurate}, Min-Time {fast}"
    );
}

#[test]
fn a_time_that_no_placement_keeps_is_infeasible_and_proven_so() {
    for seed in 0..100 {
        let planted = Planted::new(layers(seed), seed);
        let problem = planted.known();
        let limits = layerlab_planners::sweep::time_limits(&problem, 2);
        let Goal::MaxAccuracy { within } = limits[0] else {
            panic!("time limits");
        };
        let less = layerlab_profiles::Nanos::from_nanos(within.as_nanos() - 1);
        for algorithm in Algorithm::in_figures()
            .into_iter()
            .chain([Algorithm::Exhaustive])
        {
            let outcome = planted.plan(
                &problem,
                None,
                Goal::MaxAccuracy { within: less },
                algorithm,
            );
            assert!(outcome.plan().is_none(), "{algorithm}");
        }
        for algorithm in [Algorithm::Mlmp, Algorithm::Exhaustive] {
            let outcome = planted.plan(&problem, None, limits[0], algorithm);
            assert!(
                outcome.plan().is_some(),
                "{algorithm}: the fastest placement keeps its own time"
            );
        }
    }
}

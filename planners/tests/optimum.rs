//! Our answers against every placement there is, on simulated networks of up to 16 layers.

use crate::planted;

use layerlab_planners::accuracy::AccuracyModel;
use layerlab_planners::regress::{GbrtSettings, Settings};
use layerlab_planners::solve::find_front_locally;
use layerlab_planners::{Algorithm, Confidence, Goal, Problem};
use planted::{Planted, advantage, goals};
use rayon::prelude::*;

/// How many networks every run of the tests plans, and how many `make slow-test`.
const FEW: u64 = 50;
const MANY: u64 = 500;

/// Panics where the answer to a goal is not the optimum, as every placement tried gives it: of the front that so few layers
/// have, and of the local search that larger models have.
fn assert_optimal(planted: &Planted, problem: &Problem, model: Option<&AccuracyModel>, seed: u64) {
    let searched = problem.clone().with_front(find_front_locally(problem));
    for goal in goals(problem, seed) {
        let optimum = planted.plan(problem, model, goal, Algorithm::Exhaustive);
        for (how, problem) in [("all tried", problem), ("searched", &searched)] {
            let found = planted.plan(problem, model, goal, Algorithm::Mlmp);
            let better = advantage(goal, &found, &optimum);
            assert!(
                better.abs() <= 1e-12,
                "seed {seed}, {goal}, {how}: better than the optimum by {better}"
            );
        }
    }
}

fn layers(seed: u64) -> usize {
    4 + seed as usize % 13
}

fn assert_optimal_with_known_losses(instances: u64) {
    (0..instances).into_par_iter().for_each(|seed| {
        let planted = Planted::new(layers(seed), seed);
        assert_optimal(&planted, &planted.known(), None, seed);
    });
}

#[test]
fn the_optimum_of_known_losses_is_found() {
    assert_optimal_with_known_losses(FEW);
}

#[test]
#[ignore = "takes half a minute: make slow-test"]
fn the_optimum_of_known_losses_is_found_in_500_instances() {
    assert_optimal_with_known_losses(MANY);
}

/// With a confidence the end of the interval decides, which has another order than the time or the accuracy has.
fn assert_optimal_with_learnt_losses(instances: u64) {
    let settings = Settings::Gbrt(GbrtSettings {
        trees: 50,
        depth: 3,
        learning_rate: 0.1,
    });
    let is_kept_by_a_prediction = |seed: u64| {
        let planted = Planted::with_rows(layers(seed), seed, 300);
        let model = planted.train(settings);
        let problem = planted.learnt(&model);
        let confidence = seed.is_multiple_of(2).then_some(Confidence::USUAL);
        let problem = problem.with_confidence(confidence);
        assert_optimal(&planted, &problem, Some(&model), seed);
        let [_, at_least] = goals(&problem, seed);
        let outcome = planted.plan(&problem, Some(&model), at_least, Algorithm::Mlmp);
        let plan = outcome.plan().expect("all layers on the CPU keep it");
        confidence.is_some() && plan.keeps_limit() && !plan.accuracy().is_measured
    };
    let seeds = (0..instances).into_par_iter();
    let predicted = seeds.filter(|&seed| is_kept_by_a_prediction(seed)).count();
    // What keeps an accuracy with confidence is not always one of the measured placements.
    assert!(predicted as u64 * 25 >= instances, "{predicted}");
}

#[test]
fn the_optimum_of_learnt_losses_is_found_with_and_without_a_confidence() {
    assert_optimal_with_learnt_losses(FEW);
}

#[test]
#[ignore = "takes half a minute: make slow-test"]
fn the_optimum_of_learnt_losses_is_found_in_500_instances() {
    assert_optimal_with_learnt_losses(MANY);
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

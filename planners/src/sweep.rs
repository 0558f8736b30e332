//! Many limits, many algorithms: the rows of the papers' figures 6, 7 and 11.

use layerlab_profiles::Nanos;
use rayon::prelude::*;

use crate::features::Candidate;
use crate::goal::Goal;
use crate::outcome::Outcome;
use crate::planning::plan_keeping;
use crate::problem::Problem;
use crate::solve::{Algorithm, PlanError, fastest_time};

/// Answers every goal by every algorithm: all algorithms for the first goal, then for the second, and so on.
///
/// Figure 7 is [`time_limits`] by [`Algorithm::in_figures`], figure 11 [`accuracy_limits`] by the same, figure 6
/// either by mlmp-paper with several K ([`sweep_keeping`]).
pub fn sweep(
    problem: &Problem,
    goals: &[Goal],
    algorithms: &[Algorithm],
) -> Result<Vec<Outcome>, PlanError> {
    let choices: Vec<KeepingAlgorithm> = algorithms.iter().map(|&one| (one, None)).collect();
    sweep_keeping(problem, goals, &choices)
}

/// An algorithm, and how many triples each of its steps keeps: see [`plan_keeping`].
pub type KeepingAlgorithm = (Algorithm, Option<usize>);

/// The same, each algorithm keeping so many triples.
pub fn sweep_keeping(
    problem: &Problem,
    goals: &[Goal],
    algorithms: &[KeepingAlgorithm],
) -> Result<Vec<Outcome>, PlanError> {
    let questions: Vec<(Goal, KeepingAlgorithm)> = goals
        .iter()
        .flat_map(|&goal| algorithms.iter().map(move |&algorithm| (goal, algorithm)))
        .collect();
    // What all goals have in common is found once, not by each thread for itself.
    if !goals.is_empty() {
        for (algorithm, _) in algorithms {
            algorithm.prepare(problem);
        }
    }
    questions
        .into_par_iter()
        .map(|(goal, (algorithm, keep))| plan_keeping(problem, goal, algorithm, keep))
        .collect()
}

/// `count` evenly spaced time limits, from the fastest placement's time to that of all layers on the CPU
/// (or, if that is the fastest, to twice its time).
pub fn time_limits(problem: &Problem, count: usize) -> Vec<Goal> {
    let least = fastest_time(problem).as_nanos().max(1);
    let all_cpu = problem.time(&problem.all_cpu().placement).as_nanos();
    let most = if all_cpu > least { all_cpu } else { 2 * least };
    spaced(count)
        .map(|part| least + ((most - least) as f64 * part).round() as i64)
        .map(|nanos| Goal::MaxAccuracy {
            within: Nanos::from_nanos(nanos.unsigned_abs()),
        })
        .collect()
}

/// `count` evenly spaced accuracy requirements, from that of all layers on the NPU (on several accelerators, on
/// the one where it is lowest; without the layers that it cannot run) to that of all layers on the CPU (or, if they
/// are equal, from 0).
pub fn accuracy_limits(problem: &Problem, count: usize) -> Vec<Goal> {
    let most = problem.baseline();
    let accelerated: Vec<Candidate> = (1..problem.processors())
        .map(|processor| problem.most_on(processor))
        .collect();
    let accuracies = problem.predict(&accelerated).into_iter();
    let lowest = accuracies.fold(most, |lowest, accuracy| lowest.min(accuracy.value));
    let least = if lowest < most { lowest } else { 0.0 };
    spaced(count)
        .map(|part| Goal::MinTime {
            at_least: (least + (most - least) * part).min(most),
        })
        .collect()
}

/// `count` numbers from 0 to 1; the one number is 1.
fn spaced(count: usize) -> impl Iterator<Item = f64> {
    (0..count).map(move |place| match count {
        1 => 1.0,
        _ => place as f64 / (count - 1) as f64,
    })
}

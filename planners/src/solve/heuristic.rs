//! The papers' heuristics: move the costliest layer first and stop at the first that breaks the limit
//! (mlmp §3.1 Max-Accuracy, §3.2 Min-Time).
//!
//! Layers that the NPU cannot run stay on the CPU. The order ignores transfers, the limit does not: T is not monotone, and
//! a layer that breaks the limit ends the search although a later one might not.

use super::solver::{SearchOptions, Solver};
use super::{Found, PlanError, meets, only};
use crate::features::Candidate;
use crate::goal::Goal;
use crate::problem::Problem;

pub(super) struct Heuristic;

impl Solver for Heuristic {
    fn name(&self) -> &'static str {
        "heuristic"
    }

    fn is_in_figures(&self) -> bool {
        true
    }

    fn is_for_a_pair(&self) -> bool {
        true
    }

    fn search(
        &self,
        problem: &Problem,
        goal: Goal,
        _options: SearchOptions,
    ) -> Result<Found, PlanError> {
        let chain = chain(problem, goal);
        // The whole chain in one call is cheaper than a call for each step.
        let triples = problem.triples(&chain);
        let kept = triples
            .iter()
            .take_while(|triple| meets(problem, goal, triple))
            .last();
        Ok(Found::best_or(kept.copied(), chain.len() as u64, || {
            only(&triples[0])
        }))
    }
}

/// The start, and the placement after each move, until every layer is moved that can be. Placements of which the NPU
/// cannot run some layers as one unit are left out.
pub(super) fn chain(problem: &Problem, goal: Goal) -> Vec<Candidate> {
    let (mut last, to) = match goal {
        Goal::MaxAccuracy { .. } => (problem.most_on(1), 0),
        Goal::MinTime { .. } => (problem.all_cpu(), 1),
    };
    let mut chain = vec![last];
    for index in order(problem, goal) {
        if problem.times().why_not(1, index).is_none() {
            last = problem.columns().moved(&last, index, to);
            chain.push(last);
        }
    }
    chain.retain(|candidate| problem.times().allows(&candidate.placement));
    chain
}

/// The layers in the order in which they are moved: by the loss of each alone for Max-Accuracy, by the time
/// on the CPU for Min-Time, descending; among equals the earlier layer first.
fn order(problem: &Problem, goal: Goal) -> Vec<usize> {
    let mut order: Vec<usize> = (0..problem.layers()).collect();
    match goal {
        Goal::MaxAccuracy { .. } => {
            let losses = problem.single_losses();
            order.sort_by(|&a, &b| losses[b].total_cmp(&losses[a]));
        }
        Goal::MinTime { .. } => order.sort_by_key(|&index| -problem.times().cost(0, index).compute),
    }
    order
}

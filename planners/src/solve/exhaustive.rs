//! The optimum, by trying every placement: what other algorithms are judged by.

use super::{Found, PlanError, fastest, is_answer, too_slow};
use crate::features::Candidate;
use crate::goal::Goal;
use crate::problem::{Problem, Triple};

/// A million placements take seconds; each layer more doubles that.
pub const MOST_EXHAUSTIVE_LAYERS: usize = 20;

/// Placements whose accuracies are predicted in one call.
const BATCH: usize = 4096;

pub(super) fn search(problem: &Problem, goal: Goal) -> Result<Found, PlanError> {
    let layers = problem.layers();
    if layers > MOST_EXHAUSTIVE_LAYERS {
        return Err(PlanError::TooManyLayers { layers });
    }
    let mut best: Option<Triple> = None;
    let mut batch = Vec::with_capacity(BATCH);
    let mut candidate = problem.all_cpu();
    let count = 1_u64 << layers;
    for number in 1..=count {
        batch.push(candidate);
        if batch.len() == BATCH || number == count {
            consider(problem, goal, &batch, &mut best);
            batch.clear();
        }
        if number < count {
            // Gray's code: from each placement to the next one layer moves.
            candidate = problem
                .columns()
                .moved(&candidate, number.trailing_zeros() as usize);
        }
    }
    Ok(Found::best_or(best, count, || {
        too_slow(
            problem,
            &fastest::fastest(problem.times(), problem.all_cpu().placement),
        )
    }))
}

fn consider(problem: &Problem, goal: Goal, batch: &[Candidate], best: &mut Option<Triple>) {
    for triple in problem.triples(batch) {
        if is_answer(goal, &triple, best.as_ref()) {
            *best = Some(triple);
        }
    }
}

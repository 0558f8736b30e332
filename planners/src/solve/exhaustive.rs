//! The optimum, by trying every placement: what other algorithms are judged by.

use super::solver::{SearchOptions, Solver};
use super::{EveryPlacement, Found, PlanError, fastest, is_answer, too_slow};
use crate::features::Candidate;
use crate::goal::Goal;
use crate::problem::{Problem, Triple};

/// A million placements take seconds.
const MOST_PLACEMENTS: u64 = 1 << 20;

/// Placements whose accuracies are predicted in one call.
const BATCH: usize = 4096;

/// The most layers of which all placements on so many processors are tried: 20 with two, 12 with three, 10
/// with four.
pub fn most_exhaustive_layers(processors: usize) -> usize {
    MOST_PLACEMENTS.ilog(processors.max(2) as u64) as usize
}

pub(super) struct Exhaustive;

impl Solver for Exhaustive {
    fn name(&self) -> &'static str {
        "exhaustive"
    }

    fn takes_layers(&self, layers: usize, processors: usize) -> bool {
        layers <= most_exhaustive_layers(processors)
    }

    fn misses_nothing(&self) -> bool {
        true
    }

    fn search(
        &self,
        problem: &Problem,
        goal: Goal,
        _options: SearchOptions,
    ) -> Result<Found, PlanError> {
        let (layers, processors) = (problem.layers(), problem.processors());
        let most = most_exhaustive_layers(processors);
        if layers > most {
            return Err(PlanError::TooManyLayers { layers, most });
        }
        let mut best: Option<Triple> = None;
        let mut batch = Vec::with_capacity(BATCH);
        let mut count = 0;
        for candidate in EveryPlacement::of(problem) {
            if batch.len() == BATCH {
                consider(problem, goal, &batch, &mut best);
                batch.clear();
            }
            batch.push(candidate);
            count += 1;
        }
        consider(problem, goal, &batch, &mut best);
        Ok(Found::best_or(best, count, || {
            too_slow(
                problem,
                &fastest::fastest(problem.times(), problem.all_cpu().placement),
            )
        }))
    }
}

fn consider(problem: &Problem, goal: Goal, batch: &[Candidate], best: &mut Option<Triple>) {
    for triple in problem.triples(batch) {
        if is_answer(problem, goal, &triple, best.as_ref()) {
            *best = Some(triple);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_placements_are_tried() {
        assert_eq!([2, 3, 4].map(most_exhaustive_layers), [20, 12, 10]);
    }
}

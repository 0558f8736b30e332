//! The optimum, by trying every placement: what other algorithms are judged by.

use super::solver::{SearchOptions, Solver};
use super::{Found, PlanError, fastest, is_answer, too_slow};
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
        let mut candidate = problem.all_cpu();
        batch.push(candidate);
        let mut count = 1;
        for (index, to) in GrayCode::new(layers, processors) {
            if batch.len() == BATCH {
                consider(problem, goal, &batch, &mut best);
                batch.clear();
            }
            candidate = problem.columns().moved(&candidate, index, to);
            if problem.times().allows(&candidate.placement) {
                batch.push(candidate);
                count += 1;
            }
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
        if is_answer(goal, &triple, best.as_ref()) {
            *best = Some(triple);
        }
    }
}

/// The way from all layers on processor 0 through all other placements, each once, moving one layer in each
/// step: the reflected Gray code in the base of the number of processors (Knuth, The Art of Computer
/// Programming, volume 4A, 7.2.1.1, algorithm H).
struct GrayCode {
    processors: usize,
    /// The processor of each layer.
    digits: Vec<usize>,
    /// Whether each layer's processor is on its way up.
    rising: Vec<bool>,
    /// Which layer moves next: the first that no lower one holds back.
    focus: Vec<usize>,
}

impl GrayCode {
    fn new(layers: usize, processors: usize) -> GrayCode {
        GrayCode {
            processors,
            digits: vec![0; layers],
            rising: vec![true; layers],
            focus: (0..=layers).collect(),
        }
    }
}

impl Iterator for GrayCode {
    /// The index of the layer that moves, and the processor that it moves to.
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let index = std::mem::take(&mut self.focus[0]);
        let digit = self.digits.get_mut(index)?;
        match self.rising[index] {
            true => *digit += 1,
            false => *digit -= 1,
        }
        let to = *digit;
        if to == 0 || to + 1 == self.processors {
            self.rising[index] = !self.rising[index];
            self.focus[index] = std::mem::replace(&mut self.focus[index + 1], index + 1);
        }
        Some((index, to))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_way_comes_by_every_placement_once() {
        for (layers, processors) in [(1, 2), (1, 4), (5, 2), (4, 3), (6, 3), (4, 4)] {
            let mut placement = vec![0_usize; layers];
            let mut seen = BTreeSet::from([placement.clone()]);
            for (index, to) in GrayCode::new(layers, processors) {
                assert_eq!(placement[index].abs_diff(to), 1, "one step up or down");
                placement[index] = to;
                assert!(seen.insert(placement.clone()), "{placement:?} came twice");
            }
            assert_eq!(seen.len(), processors.pow(layers as u32));
        }
    }

    #[test]
    fn a_million_placements_are_tried() {
        assert_eq!([2, 3, 4].map(most_exhaustive_layers), [20, 12, 10]);
    }
}

//! All placements of a problem that are possible, one after the other.

use super::gray_code::GrayCode;
use crate::features::Candidate;
use crate::problem::Problem;

/// All placements, beginning with all layers on the CPU, but those that a processor cannot run or its memory does not hold.
pub(crate) struct EveryPlacement<'a> {
    problem: &'a Problem,
    next: Option<Candidate>,
    moves: GrayCode,
}

impl EveryPlacement<'_> {
    pub(crate) fn of(problem: &Problem) -> EveryPlacement<'_> {
        EveryPlacement {
            problem,
            next: Some(problem.all_cpu()),
            moves: GrayCode::new(problem.layers(), problem.processors()),
        }
    }
}

impl Iterator for EveryPlacement<'_> {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        let columns = self.problem.columns();
        loop {
            let candidate = self.next?;
            let moved = self.moves.next();
            self.next = moved.map(|(index, to)| columns.moved(&candidate, index, to));
            if self.problem.times().allows(&candidate.placement) {
                return Some(candidate);
            }
        }
    }
}

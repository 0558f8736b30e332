//! From a good placement to the best of its neighbourhood, again and again.
//!
//! The beam only ever moves layers one way. What is learnt from 250 rows is bumpy, and a placement can be better
//! than the beam's although the way there is not: one layer moved back, or two exchanged.

use super::is_answer;
use crate::features::Candidate;
use crate::goal::Goal;
use crate::problem::{Problem, Triple};

/// The best placement that is reached from `best` by steps of one or two moved layers, each step the best
/// there is, and how many accuracies were predicted for it.
pub(super) fn polish(problem: &Problem, goal: Goal, mut best: Triple) -> (Triple, u64) {
    let mut evaluated = 0;
    loop {
        let neighbours = neighbours(problem, goal, &best.candidate);
        evaluated += neighbours.len() as u64;
        let mut next = best;
        for triple in problem.triples(&neighbours) {
            if is_answer(goal, &triple, Some(&next)) {
                next = triple;
            }
        }
        // Each step is better in a strict order, so that none comes twice.
        if next.candidate.placement == best.candidate.placement {
            return (best, evaluated);
        }
        best = next;
    }
}

/// The placements in which one or two layers are elsewhere than in `from`, but those that break a time limit and those
/// that a processor cannot run.
fn neighbours(problem: &Problem, goal: Goal, from: &Candidate) -> Vec<Candidate> {
    let (columns, times) = (problem.columns(), problem.times());
    let limit = match goal {
        Goal::MaxAccuracy { within } => within.signed().as_nanos(),
        Goal::MinTime { .. } => times.total(&from.placement),
    };
    let time = times.total(&from.placement);
    let mut neighbours = Vec::new();
    // There are two processors: a layer moves to the other.
    let other = |index| 1 - from.placement.processor(index);
    for first in 0..problem.layers() {
        let time = time + times.change(&from.placement, first, other(first));
        let one = columns.moved(from, first, other(first));
        if time <= limit && times.allows(&one.placement) {
            neighbours.push(one);
        }
        for second in first + 1..problem.layers() {
            let moved = one.placement.placed(second, other(second));
            if time + times.change(&one.placement, second, other(second)) <= limit
                && times.allows(&moved)
            {
                neighbours.push(columns.moved(&one, second, other(second)));
            }
        }
    }
    neighbours
}

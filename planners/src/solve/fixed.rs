//! The one placement that an algorithm considers.

use super::{Found, meets, only, refused};
use crate::features::Candidate;
use crate::goal::Goal;
use crate::problem::Problem;

/// The plan of `candidate`, if it meets the goal and its processors can run and hold it.
pub(super) fn search(problem: &Problem, goal: Goal, candidate: Candidate) -> Found {
    if let Some(why) = refused(problem, &candidate.placement) {
        return Found::Nothing(why);
    }
    let triple = problem.triples(&[candidate])[0];
    Found::best_or(meets(problem, goal, &triple).then_some(triple), 1, || {
        only(&triple)
    })
}

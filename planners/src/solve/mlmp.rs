//! Our answer to MLMP's two problems: from the front of time and accuracy, which is searched once for all limits. So a
//! looser limit is never answered by a worse plan, and no measured placement that keeps a limit is better than the plan.

use super::solver::{SearchOptions, Solver};
use super::{Found, PlanError, best_answer, fastest, front_search, too_slow};
use crate::goal::Goal;
use crate::problem::Problem;

pub(super) struct Mlmp;

impl Solver for Mlmp {
    fn name(&self) -> &'static str {
        "mlmp"
    }

    fn is_in_figures(&self) -> bool {
        true
    }

    fn is_for_a_pair(&self) -> bool {
        true
    }

    fn misses_nothing(&self) -> bool {
        true
    }

    fn prepare(&self, problem: &Problem) {
        problem.front_or(front_search::find_front);
    }

    fn search(
        &self,
        problem: &Problem,
        goal: Goal,
        _options: SearchOptions,
    ) -> Result<Found, PlanError> {
        let front = problem.front_or(front_search::find_front);
        let columns = problem.columns();
        let candidates = front.placements.iter();
        let candidates: Vec<_> = candidates.map(|&one| columns.candidate(one)).collect();
        let best = best_answer(problem, goal, &candidates);
        Ok(Found::best_or(best, front.evaluated, || {
            too_slow(
                problem,
                &fastest::fastest(problem.times(), problem.all_cpu().placement),
            )
        }))
    }
}

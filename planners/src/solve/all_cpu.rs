//! All-CPU: what runs today without any planning (mlmp §6.1).

use super::solver::{SearchOptions, Solver};
use super::{Found, PlanError, fixed};
use crate::goal::Goal;
use crate::problem::Problem;

pub(super) struct AllCpu;

impl Solver for AllCpu {
    fn name(&self) -> &'static str {
        "all-cpu"
    }

    fn is_in_figures(&self) -> bool {
        true
    }

    fn search(
        &self,
        problem: &Problem,
        goal: Goal,
        _options: SearchOptions,
    ) -> Result<Found, PlanError> {
        Ok(fixed::search(problem, goal, problem.all_cpu()))
    }
}

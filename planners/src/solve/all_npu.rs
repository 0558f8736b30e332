//! All-NPU: what runs today where there is an NPU (mlmp §6.1).

use super::solver::{SearchOptions, Solver};
use super::{Found, PlanError, fixed};
use crate::goal::Goal;
use crate::problem::Problem;

pub(super) struct AllNpu;

impl Solver for AllNpu {
    fn name(&self) -> &'static str {
        "all-npu"
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
        Ok(fixed::search(problem, goal, problem.all_on(1)))
    }
}

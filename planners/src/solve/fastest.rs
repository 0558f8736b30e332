//! The fastest of all placements, whatever its accuracy: exact, and so a proof that a time limit cannot be met.

use super::paths::{PathCosts, Unbeaten, unbeaten};
use super::solver::{SearchOptions, Solver};
use super::{Found, PlanError, meets, only, too_slow};
use crate::goal::Goal;
use crate::placement::PackedPlacement;
use crate::problem::Problem;
use crate::times::TimeTable;

pub(super) struct Fastest;

impl Solver for Fastest {
    fn name(&self) -> &'static str {
        "fastest"
    }

    fn search(
        &self,
        problem: &Problem,
        goal: Goal,
        _options: SearchOptions,
    ) -> Result<Found, PlanError> {
        let fastest = fastest(problem.times(), problem.all_cpu().placement);
        let triple = problem.triples(&[problem.columns().candidate(fastest)])[0];
        let kept = meets(problem, goal, &triple).then_some(triple);
        Ok(Found::best_or(kept, 1, || match goal {
            Goal::MaxAccuracy { .. } => too_slow(problem, &fastest),
            Goal::MinTime { .. } => only(&triple),
        }))
    }
}

/// The placement of the least T(L), exactly. Among equals, each step prefers the lower processor before it.
pub(super) fn fastest(times: &TimeTable, all_cpu: PackedPlacement) -> PackedPlacement {
    fastest_with(times, all_cpu, |_, _| 0)
}

/// The same where each layer costs so much time more on each processor, both counted from 0.
pub(super) fn fastest_with(
    times: &TimeTable,
    all_cpu: PackedPlacement,
    more: impl Fn(usize, usize) -> i64,
) -> PackedPlacement {
    let costs = PathCosts {
        times,
        energies: None,
        more,
    };
    let Unbeaten { paths, .. } = unbeaten(&costs, all_cpu);
    let first = paths.first();
    // All on the CPU is always possible.
    first.map_or(all_cpu, |path| path.placement)
}

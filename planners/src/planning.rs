//! Planning: the answer of an algorithm to a goal.

use crate::goal::Goal;
use crate::outcome::{Infeasible, Outcome, Plan};
use crate::problem::Problem;
use crate::solve::{Algorithm, Found, PlanError};

/// Answers `goal` by `algorithm`, which makes its own choices.
pub fn plan(problem: &Problem, goal: Goal, algorithm: Algorithm) -> Result<Outcome, PlanError> {
    plan_keeping(problem, goal, algorithm, None)
}

/// Answers `goal` by `algorithm`, each step of which keeps `keep` triples: the papers' K. Nothing means 50 for
/// Max-Accuracy and 100 for Min-Time, which the papers chose (mlmp §6.3). Only mlmp keeps triples.
pub fn plan_keeping(
    problem: &Problem,
    goal: Goal,
    algorithm: Algorithm,
    keep: Option<usize>,
) -> Result<Outcome, PlanError> {
    goal.refuse_unless_sensible(problem.baseline())?;
    let keep = algorithm.keep(keep);
    Ok(match algorithm.search(problem, goal, keep)? {
        Found::Best(triple, evaluated) => Outcome::Planned(Plan::new(
            problem,
            (algorithm, keep),
            goal,
            &triple,
            evaluated,
        )),
        Found::Nothing(why) => Outcome::Infeasible(Infeasible {
            algorithm,
            keep,
            goal,
            why,
        }),
    })
}

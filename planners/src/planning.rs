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
/// Max-Accuracy and 100 for Min-Time, which the papers chose (mlmp §6.3). Only mlmp-paper keeps triples.
///
/// Where no placement keeps the limit with the [confidence](Problem::confidence) that plans are to have, the plan is one that
/// keeps it by estimates, and says so ([`Plan::keeps_limit`]).
pub fn plan_keeping(
    problem: &Problem,
    goal: Goal,
    algorithm: Algorithm,
    keep: Option<usize>,
) -> Result<Outcome, PlanError> {
    goal.refuse_unless_sensible(problem.baseline())?;
    algorithm.refuse_keep(keep)?;
    let mut found = algorithm.search(problem, goal, keep)?;
    if let (Found::Nothing(_), Some(_)) = (&found, problem.confidence()) {
        let by_estimates = algorithm.by_estimates();
        let keep = keep.filter(|_| by_estimates == algorithm);
        found = by_estimates.search(&problem.clone().with_confidence(None), goal, keep)?;
    }
    Ok(match found {
        Found::Best(triple, evaluated) => {
            // Its interval has the confidence of the problem, whichever the search had.
            let triple = problem.triples(&[triple.candidate])[0];
            let plan = Plan::new(problem, (algorithm, keep), goal, &triple, evaluated);
            Outcome::Planned(Box::new(plan))
        }
        Found::Nothing(why) => Outcome::Infeasible(Infeasible {
            algorithm,
            keep,
            goal,
            why,
        }),
    })
}

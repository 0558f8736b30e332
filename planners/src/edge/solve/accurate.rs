//! The best split that keeps an accuracy: which placement on the phone's processors and which sides, together.
//!
//! What a split costs follows from its groups, but its accuracy from all of its placement at once, by a model of which nothing
//! is known but its answers. Where there are no more than a million placements, all are predicted, and `branch` finds the best
//! split of those that are accurate enough. Where there are more, `climb` searches.

use super::branch::{best_of, most_accurate};
use super::climb::Climb;
use super::found::FoundSplit;
use super::question::Question;
use super::split;
use crate::edge::accuracy_limit::AccuracyLimit;
use crate::edge::accurate::{AccurateOutcome, AccurateSplit, TooInaccurate};
use crate::edge::algorithm::SplitAlgorithm;
use crate::edge::error::SplitError;
use crate::edge::goal::SplitGoal;
use crate::edge::placed_problem::PlacedProblem;
use crate::edge::plan::{SplitInfeasible, SplitOutcome, SplitPlan, WhyNoSplit};

/// Looks for the split that meets the goal best of those that keep the accuracy. It is the best there is where all placements
/// are tried ([`AccuracyLimit::new`]), and the best that a search finds elsewhere.
///
/// # Errors
/// A limit of 0 on latency or energy; LARAC; accuracies of another model.
pub fn split_accurately(
    problem: &PlacedProblem,
    limit: &AccuracyLimit,
    goal: SplitGoal,
    algorithm: SplitAlgorithm,
) -> Result<AccurateOutcome, SplitError> {
    if algorithm == SplitAlgorithm::Larac {
        return Err(SplitError::LaracAccuracy);
    }
    let (given, layers) = (limit.accuracies().layers(), problem.layers());
    if given != layers {
        return Err(SplitError::OtherAccuracies { given, layers });
    }
    if limit.digits() != problem.digits() {
        return Err(SplitError::OtherDigits);
    }
    let relaxed = problem.relaxed();
    if let SplitOutcome::Infeasible(infeasible) = split(&relaxed, goal, algorithm)? {
        return Ok(AccurateOutcome::Infeasible(infeasible));
    }
    let question = Question::new(problem, &relaxed, goal, algorithm);
    let mut climb = Climb::new(&question, limit);
    climb.begin();
    let found = match limit.every() {
        Some(every) => best_of(&question, every, limit.at_least(), climb.best()),
        None => {
            climb.climb();
            climb.best()
        }
    };
    let asked = (algorithm, goal);
    let is_best = limit.every().is_some();
    if let Some(found) = found {
        let placement = found.placement.combination();
        if let Some(accuracy) = limit.accuracy(&placement) {
            let FoundSplit { cost, groups } = found.split;
            let plan = SplitPlan::new(&problem.of(&placement), asked, cost, groups);
            return Ok(AccurateOutcome::Planned(Box::new(AccurateSplit {
                plan,
                placement,
                accuracy,
                at_least: limit.at_least(),
                confidence: limit.confidence(),
                is_best,
            })));
        }
    }
    let most = match limit.every() {
        Some(every) => most_accurate(&question, every),
        None => climb.most_accurate(),
    };
    let known = most.and_then(|(reachable, placement)| {
        let accuracy = limit.accuracy(&placement.combination())?;
        Some(AccurateOutcome::TooInaccurate(TooInaccurate {
            algorithm,
            at_least: limit.at_least(),
            confidence: limit.confidence(),
            has_limits: goal.limits.limited().next().is_some(),
            reachable,
            accuracy,
            is_best,
        }))
    });
    Ok(
        known.unwrap_or(AccurateOutcome::Infeasible(SplitInfeasible {
            algorithm,
            goal,
            why: WhyNoSplit::NotTogether,
        })),
    )
}

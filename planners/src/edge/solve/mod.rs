//! The solvers: which split of a network meets a goal best.

mod accurate;
mod branch;
mod climb;
mod compared;
mod found;
mod front;
mod grow;
mod larac;
mod lightest;
mod question;
mod rule;
mod to_go;

use super::algorithm::SplitAlgorithm;
use super::error::SplitError;
use super::goal::{SplitGoal, SplitLimits};
use super::plan::{SplitInfeasible, SplitOutcome, SplitPlan, WhyNoSplit};
use super::problem::SplitProblem;
use super::quantity::Quantity;
use compared::Compared;
use found::FoundSplit;
use front::front;
use larac::larac;
use lightest::{Weights, lightest};
use rule::{SideRule, rules};

pub use accurate::split_accurately;

/// Looks for the split that meets the goal best by one algorithm. Every algorithm but LARAC finds the best split of its
/// kind: the least in what is minimised, then in latency, energy and server time.
///
/// # Errors
/// A limit of 0 on latency or energy; LARAC for a goal that does not have exactly one limit; a goal of more than latency where
/// tensors may be packed.
pub fn split(
    problem: &SplitProblem,
    goal: SplitGoal,
    algorithm: SplitAlgorithm,
) -> Result<SplitOutcome, SplitError> {
    goal.refuse_unless_sensible()?;
    problem.refuse_packed(&goal)?;
    let rules = rules(algorithm, problem.layers());
    let found = match algorithm {
        SplitAlgorithm::Larac => {
            let limits: Vec<(Quantity, u64)> = goal.limits.limited().collect();
            let &[limit] = limits.as_slice() else {
                return Err(SplitError::NotOneLimit {
                    given: limits.len(),
                });
            };
            larac(problem, goal.minimise, limit, SideRule::Any)
        }
        _ => {
            let found = rules.iter().filter_map(|&rule| best(problem, goal, rule));
            found.min_by_key(|found| (found.cost.of(goal.minimise), found.cost))
        }
    };
    Ok(match found {
        Some(FoundSplit { cost, groups }) => {
            SplitOutcome::Planned(SplitPlan::new(problem, (algorithm, goal), cost, groups))
        }
        None => SplitOutcome::Infeasible(SplitInfeasible {
            algorithm,
            goal,
            why: why(problem, &goal.limits, &rules),
        }),
    })
}

/// All splits within the limits that no other beats in latency, energy and server time at once, one of each cost,
/// ascending in these. Nothing keeps the limits where it is empty.
///
/// # Errors
/// A limit of 0 on latency or energy; tensors that may be packed, which is not priced in energy.
pub fn split_front(
    problem: &SplitProblem,
    limits: SplitLimits,
) -> Result<Vec<SplitPlan>, SplitError> {
    let goal = SplitGoal {
        minimise: Quantity::Latency,
        limits,
    };
    goal.refuse_unless_sensible()?;
    if problem.has_packings() {
        return Err(SplitError::PackedGoal(Quantity::Energy));
    }
    let asked = (SplitAlgorithm::Joint, goal);
    let found = front(problem, &limits, Compared::ALL, SideRule::Any).into_iter();
    let plans = found.map(|found| SplitPlan::new(problem, asked, found.cost, found.groups));
    Ok(plans.collect())
}

/// The best split by one rule.
fn best(problem: &SplitProblem, goal: SplitGoal, rule: SideRule) -> Option<FoundSplit> {
    let lightest = |weights| lightest(problem, weights, rule);
    let free = lightest(Weights::only(goal.minimise))?;
    if goal.limits.keeps(&free.cost) {
        return Some(free);
    }
    // A split that keeps all limits is often found soon; the best is no worse than it is.
    let relaxed = goal.limits.limited();
    let relaxed = relaxed.filter_map(|limit| larac(problem, goal.minimise, limit, rule));
    let known = relaxed.chain(lightest(Weights::shares(&goal.limits)));
    let known = known.filter(|found| goal.limits.keeps(&found.cost));
    let limits = match known.map(|found| found.cost.of(goal.minimise)).min() {
        Some(at_most) => goal.limits.with(goal.minimise, at_most),
        None => goal.limits,
    };
    let found = front(problem, &limits, Compared::by(&goal), rule).into_iter();
    found.min_by_key(|found| (found.cost.of(goal.minimise), found.cost))
}

/// Why no split by any of the rules keeps the limits.
fn why(problem: &SplitProblem, limits: &SplitLimits, rules: &[SideRule]) -> WhyNoSplit {
    let least = |quantity| {
        let splits = rules.iter();
        let splits = splits.filter_map(|&rule| lightest(problem, Weights::only(quantity), rule));
        splits.map(|split| split.cost.of(quantity)).min()
    };
    if least(Quantity::Latency).is_none() {
        return WhyNoSplit::NoGroups;
    }
    let mut limited = limits.limited();
    let unreachable = limited.find_map(|(quantity, limit)| {
        let least = least(quantity).filter(|&least| least > limit)?;
        Some(WhyNoSplit::Unreachable {
            quantity,
            limit,
            least,
        })
    });
    unreachable.unwrap_or(WhyNoSplit::NotTogether)
}

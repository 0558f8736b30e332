//! All splits that no other beats in latency, energy and server time at once: Pareto labels (T, E, C) in place of the
//! ILP of jointdnn §2.4. One label beats another where it is <= in all that counts.

use super::compared::Compared;
use super::found::FoundSplit;
use super::grow::Growing;
use super::rule::SideRule;
use super::to_go::LeastToGo;
use crate::edge::goal::SplitLimits;
use crate::edge::problem::SplitProblem;

/// The splits within `limits` that no other such split beats in what is `compared`, of equal ones one, ascending in the
/// first quantity, then in all costs.
pub(super) fn front(
    problem: &SplitProblem,
    limits: &SplitLimits,
    compared: Compared,
    rule: SideRule,
) -> Vec<FoundSplit> {
    let to_go = LeastToGo::new(problem, rule);
    let problems = std::slice::from_ref(problem);
    let mut growing = Growing::new(problems, &to_go, *limits, compared, rule);
    for _ in 0..problem.layers() {
        growing.push(0);
    }
    growing.ends().collect()
}

//! LARAC (jointdnn §2.3, its reference 20): one limit moved into the objective with a factor λ, which is raised until
//! the split of the least weighted sum keeps the limit. What it answers keeps the limit, but a split between the
//! corners of the front's convex hull, which it cannot see, may be better.

use super::found::FoundSplit;
use super::lightest::{Weights, lightest};
use super::rule::SideRule;
use crate::edge::problem::SplitProblem;
use crate::edge::quantity::Quantity;

/// The split that LARAC finds among those of a rule; nothing where no split keeps the limit.
pub(super) fn larac(
    problem: &SplitProblem,
    minimise: Quantity,
    (limited, limit): (Quantity, u64),
    rule: SideRule,
) -> Option<FoundSplit> {
    let find = |weights| lightest(problem, weights, rule);
    let mut breaking = find(Weights::only(minimise))?;
    if breaking.cost.of(limited) <= limit {
        return Some(breaking);
    }
    let mut keeping = find(Weights::only(limited))?;
    if keeping.cost.of(limited) > limit {
        return None;
    }
    loop {
        // λ = gained / paid, kept as a fraction, so that equal sums are seen to be equal.
        let gained = keeping.cost.of(minimise) - breaking.cost.of(minimise);
        let paid = breaking.cost.of(limited) - keeping.cost.of(limited);
        let weights = Weights(Quantity::ALL.map(|one| match one {
            one if one == minimise => paid,
            one if one == limited => gained,
            _ => 0,
        }));
        let between = find(weights)?;
        if weights.sum(&between.cost) == weights.sum(&breaking.cost) {
            return Some(keeping);
        }
        match between.cost.of(limited) <= limit {
            true => keeping = between,
            false => breaking = between,
        }
    }
}

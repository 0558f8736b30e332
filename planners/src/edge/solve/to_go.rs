//! How much of each quantity it takes at least to finish from a node, in each quantity alone: what a label must still
//! pay whatever it does, so that one that cannot keep a limit any more is dropped at once.

use std::collections::BTreeMap;

use super::rule::SideRule;
use crate::edge::cost::SplitCost;
use crate::edge::problem::{SplitProblem, TensorSides};
use crate::edge::side::Side;

/// For each layer and state after it that can be reached, what it takes at least to finish; nothing where it cannot be.
pub(super) struct LeastToGo(Vec<BTreeMap<TensorSides, Option<SplitCost>>>);

impl LeastToGo {
    /// By dynamic programming from the last layer back.
    pub(super) fn new(problem: &SplitProblem, rule: SideRule) -> LeastToGo {
        let layers = problem.layers();
        let mut nodes = reachable(problem, rule);
        for end in nodes[layers].values_mut() {
            *end = Some(SplitCost::ZERO);
        }
        for before in (0..layers).rev() {
            let (now, ahead) = nodes[before..].split_at_mut(1);
            for (&state, least) in &mut now[0] {
                for (last, side) in runs(before, layers, rule) {
                    let step = problem.step(state, (before + 1, last), side);
                    let through = step.and_then(|(after, cost)| {
                        let to_go = ahead[last - before - 1].get(&after).copied()??;
                        Some(cost + to_go)
                    });
                    *least = [*least, through]
                        .into_iter()
                        .flatten()
                        .reduce(SplitCost::least_of_each);
                }
            }
        }
        LeastToGo(nodes)
    }

    /// What it takes at least to finish after layer `last`; nothing where no groups run the layers that are left.
    pub(super) fn after(&self, last: usize, state: TensorSides) -> Option<SplitCost> {
        self.0[last].get(&state).copied()?
    }
}

/// Where groups that begin after layer `before` may end, and run.
fn runs(before: usize, layers: usize, rule: SideRule) -> impl Iterator<Item = (usize, Side)> {
    let ends = (before + 1..=layers).flat_map(|last| Side::ALL.map(|side| (last, side)));
    ends.filter(move |&(last, side)| rule.allows((before + 1, last), side))
}

/// The states after each layer that some groups lead to.
fn reachable(
    problem: &SplitProblem,
    rule: SideRule,
) -> Vec<BTreeMap<TensorSides, Option<SplitCost>>> {
    let layers = problem.layers();
    let mut nodes = vec![BTreeMap::new(); layers + 1];
    nodes[0].insert(problem.start(), None);
    for before in 0..layers {
        let (done, ahead) = nodes.split_at_mut(before + 1);
        for &state in done[before].keys() {
            for (last, side) in runs(before, layers, rule) {
                if let Some((after, _)) = problem.step(state, (before + 1, last), side) {
                    ahead[last - before - 1].insert(after, None);
                }
            }
        }
    }
    nodes
}

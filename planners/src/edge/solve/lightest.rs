//! The split of the least weighted sum of costs: the paper's shortest path (jointdnn §2.3, Figure 6 and 7).
//!
//! A node is a layer and where each tensor lies that is alive after it, an edge is a group. The side of the last group
//! is the side of the tensors that it made. A tensor is charged once, and so a state tells one that lies on one side
//! from one that lies on both: with s tensors alive there are at most 3^s states, and O(N² 3^s) steps.

use std::collections::BTreeMap;

use super::found::{FoundSplit, placed};
use super::rule::SideRule;
use crate::edge::cost::SplitCost;
use crate::edge::goal::SplitLimits;
use crate::edge::placed_group::PlacedGroup;
use crate::edge::problem::{SplitProblem, TensorSides};
use crate::edge::quantity::Quantity;
use crate::edge::side::Side;

/// How much each quantity counts, in the order of [`Quantity::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weights(pub(super) [u64; 3]);

impl Weights {
    /// Only `quantity` counts.
    pub(super) fn only(quantity: Quantity) -> Weights {
        Weights(Quantity::ALL.map(|one| u64::from(one == quantity)))
    }

    /// How much of each limit is used: the inverse limits, to 62 bits.
    pub(super) fn shares(limits: &SplitLimits) -> Weights {
        let inverse = |limit: u64| (1 << 62) / limit.max(1);
        Weights(Quantity::ALL.map(|one| limits.of(one).map_or(0, inverse)))
    }

    /// The weighted sum. Costs of a plan are below 2^63, and three terms with weights of 62 bits or two with costs as
    /// weights fit.
    pub(super) fn sum(self, cost: &SplitCost) -> u128 {
        let terms = Quantity::ALL.into_iter().zip(self.0);
        let products = terms.map(|(one, weight)| u128::from(weight) * u128::from(cost.of(one)));
        products.fold(0, u128::saturating_add)
    }
}

/// The best way to a node so far: what it costs, and the last group with the node before it.
#[derive(Clone, Copy)]
struct Arrival {
    cost: SplitCost,
    from: Option<(usize, Side, TensorSides)>,
}

/// The split of the least weighted sum, and of such splits the least in latency, energy and server time; nothing where
/// no sequence of groups runs all layers.
pub(super) fn lightest(
    problem: &SplitProblem,
    weights: Weights,
    rule: SideRule,
) -> Option<FoundSplit> {
    let layers = problem.layers();
    let mut nodes: Vec<BTreeMap<TensorSides, Arrival>> = vec![BTreeMap::new(); layers + 1];
    let (cost, from) = (SplitCost::ZERO, None);
    nodes[0].insert(problem.start(), Arrival { cost, from });
    let rank = |arrival: &Arrival| (weights.sum(&arrival.cost), arrival.cost);
    for before in 0..layers {
        let (done, ahead) = nodes.split_at_mut(before + 1);
        for (&state, arrival) in &done[before] {
            for (last, side) in (before + 1..=layers).flat_map(|l| Side::ALL.map(|side| (l, side)))
            {
                let run = (before + 1, last);
                let step = rule
                    .allows(run, side)
                    .then(|| problem.step(state, run, side));
                let Some((after, cost)) = step.flatten() else {
                    continue;
                };
                let next = Arrival {
                    cost: arrival.cost + cost,
                    from: Some((before, side, state)),
                };
                let best = ahead[last - before - 1].entry(after).or_insert(next);
                if rank(&next) < rank(best) {
                    *best = next;
                }
            }
        }
    }
    let (&state, end) = nodes[layers]
        .iter()
        .min_by_key(|(_, arrival)| rank(arrival))?;
    Some(FoundSplit {
        cost: end.cost,
        groups: way(&nodes, (layers, state)),
    })
}

/// The groups on the best way to a node, in order.
fn way(
    nodes: &[BTreeMap<TensorSides, Arrival>],
    (mut last, mut state): (usize, TensorSides),
) -> Vec<PlacedGroup> {
    let mut groups = Vec::new();
    while let Some((before, side, earlier)) = nodes[last][&state].from {
        groups.push(placed((before + 1, last), side));
        (last, state) = (before, earlier);
    }
    groups.reverse();
    groups
}

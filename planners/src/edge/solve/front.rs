//! All splits that no other beats in latency, energy and server time at once: Pareto labels (T, E, C) in place of the
//! ILP of jointdnn §2.4. One label beats another where it is <= in all that counts.

use std::collections::BTreeMap;

use super::found::{FoundSplit, placed};
use super::rule::SideRule;
use super::to_go::LeastToGo;
use crate::edge::cost::SplitCost;
use crate::edge::goal::{SplitGoal, SplitLimits};
use crate::edge::placed_group::PlacedGroup;
use crate::edge::problem::{SplitProblem, TensorSides};
use crate::edge::quantity::Quantity;
use crate::edge::side::Side;

/// A way to a node that no other way beats.
#[derive(Clone, Copy)]
struct Label {
    cost: SplitCost,
    /// The layer before the last group.
    before: usize,
    side: Side,
    /// The label that the last group follows; the first label follows itself.
    parent: usize,
}

/// Of a layer: for each state after it, where its labels are in the list of all labels.
type LabelsByState = BTreeMap<TensorSides, std::ops::Range<usize>>;

/// Which quantities count where labels are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared {
    first: Quantity,
    others: [Option<Quantity>; 2],
}

impl Compared {
    /// All three.
    pub(super) const ALL: Compared = Compared {
        first: Quantity::Latency,
        others: [Some(Quantity::Energy), Some(Quantity::ServerTime)],
    };

    /// What is minimised, and what has a limit; the rest decides ties.
    pub(super) fn by(goal: &SplitGoal) -> Compared {
        let limited = goal.limits.limited().map(|(one, _)| one);
        let mut others = limited.filter(|&one| one != goal.minimise);
        Compared {
            first: goal.minimise,
            others: [others.next(), others.next()],
        }
    }

    fn rank(self, cost: &SplitCost) -> (u64, SplitCost) {
        (cost.of(self.first), *cost)
    }

    fn others(self, cost: &SplitCost) -> [u64; 2] {
        self.others.map(|one| one.map_or(0, |one| cost.of(one)))
    }
}

/// The splits within `limits` that no other such split beats in what is `compared`, of equal ones one, ascending in the
/// first quantity, then in all costs.
pub(super) fn front(
    problem: &SplitProblem,
    limits: &SplitLimits,
    compared: Compared,
    rule: SideRule,
) -> Vec<FoundSplit> {
    let layers = problem.layers();
    let to_go = LeastToGo::new(problem, rule);
    let mut labels = vec![Label {
        cost: SplitCost::ZERO,
        before: 0,
        side: Side::Phone,
        parent: 0,
    }];
    let mut nodes: Vec<LabelsByState> = vec![BTreeMap::from([(problem.start(), 0..1)])];
    for last in 1..=layers {
        let mut candidates: BTreeMap<TensorSides, Vec<Label>> = BTreeMap::new();
        for (before, by_state) in nodes.iter().enumerate() {
            let run = (before + 1, last);
            for side in Side::ALL.into_iter().filter(|&side| rule.allows(run, side)) {
                for (&state, parents) in by_state {
                    let Some((after, cost)) = problem.step(state, run, side) else {
                        continue;
                    };
                    let Some(rest) = to_go.after(last, after) else {
                        continue;
                    };
                    let here = candidates.entry(after).or_default();
                    let next = parents.clone().map(|parent| Label {
                        cost: labels[parent].cost + cost,
                        before,
                        side,
                        parent,
                    });
                    here.extend(next.filter(|one| limits.keeps(&(one.cost + rest))));
                }
            }
        }
        let mut by_state = LabelsByState::new();
        for (state, here) in candidates {
            let begin = labels.len();
            labels.extend(unbeaten(here, compared));
            by_state.insert(state, begin..labels.len());
        }
        nodes.push(by_state);
    }
    // Whatever is alive after the last layer is charged: there is one state.
    let ends = nodes[layers].values().cloned().flatten();
    ends.map(|end| FoundSplit {
        cost: labels[end].cost,
        groups: way(&labels, end, layers),
    })
    .collect()
}

/// The labels that no other one beats, ascending.
fn unbeaten(mut labels: Vec<Label>, compared: Compared) -> impl Iterator<Item = Label> {
    // Of equal ones the first stays, whose last group is the longest.
    labels.sort_by_key(|label| compared.rank(&label.cost));
    // Of the labels so far, none of which ranks behind: the least of one quantity for each of the other, ascending in
    // that.
    let mut stairs: BTreeMap<u64, u64> = BTreeMap::new();
    labels.into_iter().filter(move |label| {
        let [one, other] = compared.others(&label.cost);
        let below = stairs.range(..=one).next_back();
        if below.is_some_and(|(_, &least)| least <= other) {
            return false;
        }
        let beaten = stairs
            .range(one..)
            .take_while(|&(_, &least)| least >= other);
        let beaten: Vec<u64> = beaten.map(|(&step, _)| step).collect();
        for step in beaten {
            stairs.remove(&step);
        }
        stairs.insert(one, other);
        true
    })
}

/// The groups on the way to a label, in order.
fn way(labels: &[Label], mut at: usize, mut last: usize) -> Vec<PlacedGroup> {
    let mut groups = Vec::new();
    while at != 0 {
        let label = labels[at];
        groups.push(placed((label.before + 1, last), label.side));
        (at, last) = (label.parent, label.before);
    }
    groups.reverse();
    groups
}

//! Splits that grow layer by layer: Pareto labels of the ways to each layer, where each layer may be told which of several
//! problems its group is of. They are taken back layer by layer, too, so that many placements with a common beginning are tried
//! by growing it once.

use std::collections::BTreeMap;
use std::ops::Range;

use super::compared::Compared;
use super::found::{FoundSplit, placed};
use super::rule::SideRule;
use super::to_go::LeastToGo;
use crate::edge::cost::SplitCost;
use crate::edge::goal::SplitLimits;
use crate::edge::placed_group::PlacedGroup;
use crate::edge::problem::{SplitProblem, TensorSides};
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

/// What is known after a layer.
struct Column {
    /// Of which problem the layer's group is; nothing before the first layer.
    problem: Option<usize>,
    /// The layer before the run of layers of this problem that ends here.
    run_after: usize,
    /// How many labels there were before.
    begin: usize,
    /// For each state after the layer, where its labels are.
    by_state: BTreeMap<TensorSides, Range<usize>>,
}

/// The splits of the first layers that no other beats, on the way to all layers.
pub(super) struct Growing<'a> {
    problems: &'a [SplitProblem],
    to_go: &'a LeastToGo,
    limits: SplitLimits,
    compared: Compared,
    rule: SideRule,
    labels: Vec<Label>,
    columns: Vec<Column>,
    /// What a split must cost less than, as `compared` ranks costs.
    below: Option<(u64, SplitCost)>,
}

impl<'a> Growing<'a> {
    /// Before the first layer. All problems are of the same tensors, and `to_go` holds for each of them.
    pub(super) fn new(
        problems: &'a [SplitProblem],
        to_go: &'a LeastToGo,
        limits: SplitLimits,
        compared: Compared,
        rule: SideRule,
    ) -> Growing<'a> {
        let start = problems.first().map(|problem| (problem.start(), 0..1));
        Growing {
            problems,
            to_go,
            limits,
            compared,
            rule,
            labels: vec![Label {
                cost: SplitCost::ZERO,
                before: 0,
                side: Side::Phone,
                parent: 0,
            }],
            columns: vec![Column {
                problem: None,
                run_after: 0,
                begin: 0,
                by_state: start.into_iter().collect(),
            }],
            below: None,
        }
    }

    /// From now on only splits count that cost less than this, as costs are ranked.
    pub(super) fn only_below(&mut self, cost: Option<(u64, SplitCost)>) {
        self.below = cost;
    }

    /// How many layers there are so far.
    pub(super) fn layers(&self) -> usize {
        self.columns.len() - 1
    }

    /// Adds a layer whose group is of the problem at this place, as all layers of the group are.
    pub(super) fn push(&mut self, place: usize) {
        let last = self.columns.len();
        let run_after = match &self.columns[last - 1] {
            column if column.problem == Some(place) => column.run_after,
            _ => last - 1,
        };
        let problem = &self.problems[place];
        let mut candidates: BTreeMap<TensorSides, Vec<Label>> = BTreeMap::new();
        for before in run_after..last {
            let run = (before + 1, last);
            for side in Side::ALL
                .into_iter()
                .filter(|&side| self.rule.allows(run, side))
            {
                for (&state, parents) in &self.columns[before].by_state {
                    let Some((after, cost)) = problem.step(state, run, side) else {
                        continue;
                    };
                    let Some(rest) = self.to_go.after(last, after) else {
                        continue;
                    };
                    let next = parents.clone().map(|parent| Label {
                        cost: self.labels[parent].cost + cost,
                        before,
                        side,
                        parent,
                    });
                    let next = next.filter(|one| self.may_end_at(one.cost + rest));
                    candidates.entry(after).or_default().extend(next);
                }
            }
        }
        let begin = self.labels.len();
        let mut by_state = BTreeMap::new();
        for (state, here) in candidates.into_iter().filter(|(_, here)| !here.is_empty()) {
            let first = self.labels.len();
            let unbeaten = self.compared.unbeaten(here, |label| label.cost);
            self.labels.extend(unbeaten);
            by_state.insert(state, first..self.labels.len());
        }
        self.columns.push(Column {
            problem: Some(place),
            run_after,
            begin,
            by_state,
        });
    }

    /// Takes the last layer back; nothing before the first.
    pub(super) fn pop(&mut self) {
        if self.columns.len() > 1
            && let Some(column) = self.columns.pop()
        {
            self.labels.truncate(column.begin);
        }
    }

    /// Whether a split of all layers can come of this.
    pub(super) fn is_alive(&self) -> bool {
        let last = self.columns.last();
        let run_after = last.map_or(0, |column| column.run_after);
        let mut columns = self.columns[run_after..].iter();
        columns.any(|column| !column.by_state.is_empty())
    }

    /// The splits of the layers so far, those of all layers in the order of their costs: whatever is alive after the last layer
    /// is charged, so that there is one state.
    pub(super) fn ends(&self) -> impl Iterator<Item = FoundSplit> + '_ {
        let last = self.columns.last();
        let states = last.into_iter().flat_map(|column| column.by_state.values());
        states.cloned().flatten().map(|end| FoundSplit {
            cost: self.labels[end].cost,
            groups: self.way(end),
        })
    }

    /// The groups on the way to a label after the last layer, in order.
    fn way(&self, mut at: usize) -> Vec<PlacedGroup> {
        let (mut groups, mut last) = (Vec::new(), self.layers());
        while at != 0 {
            let label = self.labels[at];
            groups.push(placed((label.before + 1, last), label.side));
            (at, last) = (label.parent, label.before);
        }
        groups.reverse();
        groups
    }

    /// Whether a split counts that costs no less than this.
    fn may_end_at(&self, least: SplitCost) -> bool {
        let is_below = |below| self.compared.rank(&least) < below;
        self.limits.keeps(&least) && self.below.is_none_or(is_below)
    }
}

//! What is looked for where the phone has several processors, whatever its accuracy: the best split of one placement.

use layerlab_profiles::Placement;

use super::compared::Compared;
use super::found::FoundSplit;
use super::grow::Growing;
use super::rule::{SideRule, rules};
use super::to_go::LeastToGo;
use crate::edge::algorithm::SplitAlgorithm;
use crate::edge::cost::SplitCost;
use crate::edge::goal::SplitGoal;
use crate::edge::placed_problem::PlacedProblem;
use crate::edge::problem::SplitProblem;
use crate::placement::PackedPlacement;

/// A split and the placement that it has.
#[derive(Clone, Debug)]
pub(super) struct FoundPlacement {
    pub(super) split: FoundSplit,
    pub(super) placement: PackedPlacement,
}

/// What is looked for, whatever its accuracy.
pub(super) struct Question<'a> {
    pub(super) problem: &'a PlacedProblem,
    pub(super) goal: SplitGoal,
    compared: Compared,
    /// Each split follows one of the rules. What it takes to finish is that of the relaxed problem.
    rules: Vec<(SideRule, LeastToGo)>,
}

impl<'a> Question<'a> {
    /// The question of an algorithm to a problem, of which `relaxed` is the relaxed one.
    pub(super) fn new(
        problem: &'a PlacedProblem,
        relaxed: &SplitProblem,
        goal: SplitGoal,
        algorithm: SplitAlgorithm,
    ) -> Question<'a> {
        let rules = rules(algorithm, problem.layers()).into_iter();
        Question {
            problem,
            goal,
            compared: Compared::by(&goal),
            rules: rules
                .map(|rule| (rule, LeastToGo::new(relaxed, rule)))
                .collect(),
        }
    }

    /// What splits are ordered by.
    pub(super) fn rank(&self, split: &FoundSplit) -> (u64, SplitCost) {
        self.compared.rank(&split.cost)
    }

    /// The rule of all splits, where there is one.
    pub(super) fn rule(&self) -> SideRule {
        match self.rules[..] {
            [(rule, _)] => rule,
            _ => SideRule::Any,
        }
    }

    /// For each rule the splits that follow it, before the first layer.
    pub(super) fn growing(&self) -> impl Iterator<Item = Growing<'_>> {
        let (problems, limits) = (self.problem.problems(), self.goal.limits);
        let rules = self.rules.iter();
        rules.map(move |(rule, to_go)| Growing::new(problems, to_go, limits, self.compared, *rule))
    }

    /// The best split of a placement that costs less than that, as splits are ordered.
    pub(super) fn split_of(
        &self,
        placement: &Placement,
        below: Option<(u64, SplitCost)>,
    ) -> Option<FoundSplit> {
        let digits = self.problem.digits();
        let places = placement.processors().iter();
        let places = places.map(|digit| digits.iter().position(|one| one == digit));
        let places: Vec<usize> = places.collect::<Option<_>>()?;
        let (mut best, mut below) = (None, below);
        for mut growing in self.growing() {
            growing.only_below(below);
            let is_alive = places.iter().all(|&place| {
                growing.push(place);
                growing.is_alive()
            });
            if is_alive && let Some(found) = growing.ends().min_by_key(|one| self.rank(one)) {
                below = Some(self.rank(&found));
                best = Some(found);
            }
        }
        best
    }
}

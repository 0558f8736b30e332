//! What splits cost where the phone has several processors: a split problem of each digit of placements.

use std::collections::BTreeMap;

use layerlab_profiles::Placement;

use super::cost::SplitCost;
use super::energy::Power;
use super::error::SplitError;
use super::link::Link;
use super::network::SplitNetwork;
use super::problem::SplitProblem;
use super::quantity::Quantity;
use super::side::Side;

/// A network over a link, of which each layer has a digit: that of the phone's processor that runs it, and 0, that of the
/// phone's reference CPU, on the server. The layers of a group have one digit.
#[derive(Clone, Debug)]
pub struct PlacedProblem {
    digits: Vec<u8>,
    /// Of each of the digits what groups of it cost.
    problems: Vec<SplitProblem>,
}

impl PlacedProblem {
    /// Prices groups of digit 0, on the phone and on the server, and those of other digits, on the phone alone: what the other
    /// networks say of the server is not used. All are one network but for what its groups cost.
    ///
    /// # Errors
    /// Those of [`SplitProblem::new`], and networks of other layers, tensors or packings.
    pub fn new(
        reference: SplitNetwork,
        others: BTreeMap<u8, SplitNetwork>,
        link: &Link,
        idle: Power,
    ) -> Result<PlacedProblem, SplitError> {
        let mut digits = vec![0];
        let mut problems = vec![SplitProblem::new(reference, link, idle)?];
        for (digit, network) in others {
            let one = problems[0].network();
            let is_same = network.layers() == one.layers()
                && network.tensors() == one.tensors()
                && network.packings() == one.packings();
            if digit == 0 || !is_same {
                return Err(SplitError::OtherNetwork { digit });
            }
            let problem = SplitProblem::new(network, link, idle)?;
            let on_phone = |run, side| match side {
                Side::Phone => problem.group_cost(run, side),
                Side::Server => None,
            };
            problems.push(problem.with_groups(on_phone));
            digits.push(digit);
        }
        Ok(PlacedProblem { digits, problems })
    }

    /// The digits that layers may have, ascending from 0.
    pub fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// The problem of each of the digits.
    pub(super) fn problems(&self) -> &[SplitProblem] {
        &self.problems
    }

    /// N.
    pub(super) fn layers(&self) -> usize {
        self.problems[0].layers()
    }

    /// A problem in which no group costs more, in any quantity, than it does with any digit.
    pub(super) fn relaxed(&self) -> SplitProblem {
        self.problems[0].with_groups(|run, side| {
            let costs = self.problems.iter();
            let costs = costs.filter_map(|problem| problem.group_cost(run, side));
            costs.reduce(SplitCost::least_of_each)
        })
    }

    /// The problem where each group has the digit with which it costs least of `quantity` and what `more` adds, and which digit
    /// that is, by its place.
    pub(super) fn cheapest(
        &self,
        quantity: Quantity,
        more: impl Fn(usize, (usize, usize)) -> u64,
    ) -> (SplitProblem, impl Fn((usize, usize), Side) -> usize) {
        let best = |run: (usize, usize), side: Side| {
            let costs = self.problems.iter().enumerate();
            let costs = costs.filter_map(|(place, problem)| {
                let cost = problem.group_cost(run, side)?;
                let sum = cost.of(quantity).saturating_add(more(place, run));
                Some((cost.with(quantity, sum), place))
            });
            costs.min_by_key(|(cost, place)| (cost.of(quantity), *cost, *place))
        };
        let problem = self.problems[0].with_groups(|run, side| Some(best(run, side)?.0));
        let mut places = BTreeMap::new();
        for last in 1..=self.layers() {
            for first in 1..=last {
                for side in Side::ALL {
                    if let Some((_, place)) = best((first, last), side) {
                        places.insert(((first, last), side), place);
                    }
                }
            }
        }
        (problem, move |run, side| {
            places.get(&(run, side)).copied().unwrap_or(0)
        })
    }

    /// The problem of one placement: groups of layers that do not have one digit cannot run.
    pub(super) fn of(&self, placement: &Placement) -> SplitProblem {
        self.problems[0].with_groups(|run, side| {
            let digits = &placement.processors()[run.0 - 1..run.1];
            let digit = digits[0];
            let place = self.digits.iter().position(|&one| one == digit)?;
            let is_one = digits.iter().all(|&one| one == digit);
            is_one.then(|| self.problems[place].group_cost(run, side))?
        })
    }
}

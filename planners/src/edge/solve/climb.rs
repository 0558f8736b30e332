//! The search for a split that keeps an accuracy where there are too many placements to try all: a local search for all costs
//! at once (as `find_front`), with how much of the required accuracy a placement has on the other axis. It begins with every
//! measured placement, each processor by itself and the cheapest splits at many prices of accuracy. From each placement that no
//! other beats, every single layer is moved, then every run of layers. What it tries is always the best split of a placement.
//! It counts splits, not time, so that the same problem has the same answer.

use std::collections::HashSet;

use super::lightest::{Weights, lightest};
use super::question::{FoundPlacement, Question};
use crate::edge::accuracy_limit::AccuracyLimit;
use crate::edge::cost::SplitCost;
use crate::edge::side::Side;
use crate::placement::PackedPlacement;
use crate::solve::staircase::{Staircase, Step};

/// Placements whose best splits are looked for before the search ends.
const MOST_SPLITS: u64 = 40_000;

/// How many prices of accuracy there are for which the cheapest split is a beginning.
const PRICES: i32 = 24;

pub(super) struct Climb<'a> {
    question: &'a Question<'a>,
    limit: &'a AccuracyLimit<'a>,
    /// The cost of a placement's best split, and its least accuracy up to the one that is required.
    stairs: Staircase<PackedPlacement>,
    seen: HashSet<PackedPlacement>,
    best: Option<FoundPlacement>,
    splits: u64,
}

impl<'a> Climb<'a> {
    pub(super) fn new(question: &'a Question<'a>, limit: &'a AccuracyLimit<'a>) -> Climb<'a> {
        Climb {
            question,
            limit,
            stairs: Staircase::new(),
            seen: HashSet::new(),
            best: None,
            splits: 0,
        }
    }

    /// The best split so far that keeps the accuracy.
    pub(super) fn best(&self) -> Option<FoundPlacement> {
        self.best.clone()
    }

    /// Where nothing keeps the accuracy, the most that a split has at least, and its placement.
    pub(super) fn most_accurate(&self) -> Option<(f64, PackedPlacement)> {
        let last = self.stairs.steps().last()?;
        Some((last.gain, last.of))
    }

    /// Tries what the search begins with.
    pub(super) fn begin(&mut self) {
        let accuracies = self.limit.accuracies();
        let mut first: Vec<PackedPlacement> = accuracies.measured().copied().collect();
        // In a fixed order, whatever a hash map's is.
        first.sort_unstable();
        let digits = self.limit.digits();
        first.retain(|one| {
            let mut used = (0..one.layers()).map(|index| one.processor(index));
            used.all(|processor| digits.iter().any(|&digit| usize::from(digit) == processor))
        });
        first.extend(
            digits
                .iter()
                .map(|&digit| accuracies.most_on(digit.into()).placement),
        );
        first.extend(self.cheapest_at_prices());
        self.offer(first);
    }

    /// Tries the neighbours of all placements that no other beats until none is new, or enough was tried: single moves first.
    pub(super) fn climb(&mut self) {
        let (mut moved_one, mut moved_run) = (HashSet::new(), HashSet::new());
        while self.splits < MOST_SPLITS {
            // The most accurate first, which is the answer so far.
            let mut from = self.stairs.steps().iter().rev().map(|step| step.of);
            let next = from.clone().find(|one| !moved_one.contains(one));
            let longest = match next {
                Some(_) => 1,
                None => self.question.problem.layers(),
            };
            let Some(next) = next.or_else(|| from.find(|one| !moved_run.contains(one))) else {
                return;
            };
            match longest {
                1 => moved_one.insert(next),
                _ => moved_run.insert(next),
            };
            self.offer(self.moved(next, longest));
        }
    }

    /// The placements in which a run of layers that is no longer than that has another digit.
    fn moved(&self, from: PackedPlacement, longest: usize) -> Vec<PackedPlacement> {
        let layers = from.layers();
        let mut moved = Vec::new();
        for &digit in self.limit.digits() {
            for first in 0..layers {
                let mut one = from;
                for index in first..layers.min(first + longest) {
                    one = one.placed(index, digit.into());
                    moved.push(one);
                }
            }
        }
        moved
    }

    /// The placements of the cheapest splits where each layer's loss alone costs something, from nothing to more than anything.
    fn cheapest_at_prices(&self) -> Vec<PackedPlacement> {
        let (problem, minimise) = (self.question.problem, self.question.goal.minimise);
        let accuracies = self.limit.accuracies();
        let (layers, losses) = (problem.layers(), accuracies.single_losses());
        let all_cpu = accuracies.all_cpu().placement;
        let at = |price: f64| {
            let more = |place: usize, (first, last): (usize, usize)| {
                let Some(before) = usize::from(problem.digits()[place]).checked_sub(1) else {
                    return 0;
                };
                let alone = &losses[before * layers..][first - 1..last];
                (alone.iter().sum::<f64>().max(0.0) * price) as u64
            };
            let (priced, place_of) = problem.cheapest(minimise, more);
            let found = lightest(&priced, Weights::only(minimise), self.question.rule())?;
            let mut placement = all_cpu;
            for group in found
                .groups
                .iter()
                .filter(|group| group.side == Side::Phone)
            {
                let (first, last) = (group.segment.first(), group.segment.last());
                let run = (first as usize, last as usize);
                let digit = problem.digits()[place_of(run, group.side)];
                let indices = run.0 - 1..run.1;
                placement = indices.fold(placement, |all, index| all.placed(index, digit.into()));
            }
            Some((found.cost.of(minimise), placement))
        };
        let Some((least, cheapest)) = at(0.0) else {
            return Vec::new();
        };
        let priced = (0..PRICES).filter_map(|step| {
            // From a thousandth of the least cost for all accuracy to a million times it.
            let power = f64::from(step) * 9.0 / f64::from(PRICES) - 3.0;
            Some(at(least.max(1) as f64 * 10_f64.powf(power))?.1)
        });
        std::iter::once(cheapest).chain(priced).collect()
    }

    /// Tries those placements that were not tried before and that the processors can run.
    fn offer(&mut self, mut placements: Vec<PackedPlacement>) {
        placements.retain(|&one| self.seen.insert(one));
        let least = self.limit.least(&placements);
        let possible = placements
            .into_iter()
            .zip(least)
            .filter(|(_, least)| *least >= 0.0);
        for (placement, least) in possible {
            self.offer_one(placement, least);
        }
    }

    fn offer_one(&mut self, placement: PackedPlacement, least: f64) {
        let gain = least.min(self.limit.at_least());
        let known = self.stairs.steps().iter().find(|step| step.gain >= gain);
        // One that costs as much may still be better in what is not minimised.
        let below = known.map(|step| (step.cost as u64 + 1, SplitCost::ZERO));
        self.splits += 1;
        let Some(split) = self.question.split_of(&placement.combination(), below) else {
            return;
        };
        let cost = split.cost.of(self.question.goal.minimise) as i64;
        let of = placement;
        self.stairs.offer(Step { cost, gain, of });
        let rank = self.question.rank(&split);
        let is_kept = least >= self.limit.at_least();
        let best = self.best.as_ref();
        if is_kept && best.is_none_or(|best| rank < self.question.rank(&best.split)) {
            self.best = Some(FoundPlacement { split, placement });
        }
    }
}

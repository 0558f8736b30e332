//! The best split of all placements that are accurate enough, by branch and bound: placements are tried digit by digit, with the
//! labels of all splits of the layers so far, and a beginning is given up where no accurate placement has it, or where what is
//! left costs too much even if each group had the processor that is best for it.

use super::grow::Growing;
use super::question::{FoundPlacement, Question};
use crate::edge::accuracy_limit::{EveryAccuracy, KeptPlacements};
use crate::placement::PackedPlacement;

/// The best split of all placements that have so much accuracy, of which one is known.
pub(super) fn best_of(
    question: &Question,
    every: &EveryAccuracy,
    at_least: f64,
    known: Option<FoundPlacement>,
) -> Option<FoundPlacement> {
    let kept = every.kept(at_least);
    let mut best = known;
    for mut growing in question.growing() {
        growing.only_below(best.as_ref().map(|found| question.rank(&found.split)));
        let mut branch = Branch {
            question,
            kept: &kept,
            growing,
            best,
        };
        branch.visit(0, every.all_cpu());
        best = branch.best;
    }
    best
}

/// The most accuracy that a split within the limits has at least, and its placement.
pub(super) fn most_accurate(
    question: &Question,
    every: &EveryAccuracy,
) -> Option<(f64, PackedPlacement)> {
    let values = every.values();
    let found = |least| best_of(question, every, least, None);
    // What is kept at some accuracy is kept at any lower one.
    let kept = values.partition_point(|&least| found(least).is_some());
    let most = *values.get(kept.checked_sub(1)?)?;
    Some((most, found(most)?.placement))
}

/// A search through all placements, digit by digit.
struct Branch<'a> {
    question: &'a Question<'a>,
    kept: &'a KeptPlacements,
    growing: Growing<'a>,
    best: Option<FoundPlacement>,
}

impl Branch<'_> {
    /// Tries all placements that begin as `placement` does, the places of whose digits so far are the number `begin`.
    fn visit(&mut self, begin: usize, placement: PackedPlacement) {
        let (problem, layers) = (self.question.problem, self.growing.layers());
        if layers == problem.layers() {
            let best = self
                .growing
                .ends()
                .min_by_key(|one| self.question.rank(one));
            if let Some(split) = best {
                self.growing.only_below(Some(self.question.rank(&split)));
                self.best = Some(FoundPlacement { split, placement });
            }
            return;
        }
        let digits = problem.digits();
        for (place, &digit) in digits.iter().enumerate() {
            let next = begin * digits.len() + place;
            if self.kept.has_any(next, layers + 1) {
                self.growing.push(place);
                if self.growing.is_alive() {
                    self.visit(next, placement.placed(layers, digit.into()));
                }
                self.growing.pop();
            }
        }
    }
}

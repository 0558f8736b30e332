//! MLMP as printed: a beam search over placements, one layer moved in each step (mlmp §4.3, Algorithms 1 and 2).
//!
//! To the letter, but for one gap: the same placement, reached from several others, is one triple, and of equal triples
//! one stays. A placement that breaks the limit goes no further, so that what lies behind it is not found, and with few
//! triples in each step good ones are forgotten: K matters, as in Figure 6. The papers know no limit of memory: the beam goes
//! through placements that memory does not hold, and none of them is an answer.

use std::collections::HashSet;

use super::frontier::keep_best;
use super::solver::{SearchOptions, Solver};
use super::{Found, PlanError, Why, is_answer, meets};
use crate::features::Candidate;
use crate::goal::Goal;
use crate::placement::PackedPlacement;
use crate::problem::{Problem, Triple};

pub(super) struct MlmpPaper;

impl Solver for MlmpPaper {
    fn name(&self) -> &'static str {
        "mlmp-paper"
    }

    fn is_in_figures(&self) -> bool {
        true
    }

    fn is_for_a_pair(&self) -> bool {
        true
    }

    fn keeps_triples(&self) -> bool {
        true
    }

    fn search(
        &self,
        problem: &Problem,
        goal: Goal,
        options: SearchOptions,
    ) -> Result<Found, PlanError> {
        let keep = options.keep.unwrap_or(usual_keep(goal));
        if keep == 0 {
            return Err(PlanError::KeepsNothing);
        }
        let start = start(problem, goal);
        let mut beam = Beam {
            problem,
            goal,
            keep,
            has_limit: true,
            evaluated: 0,
        };
        let mut best: Option<Triple> = None;
        for triple in beam.run(start) {
            // The start may be more than processors can run, and any of them more than memory holds.
            let is_possible = problem.times().allows(&triple.candidate.placement);
            if is_possible && is_answer(problem, goal, &triple, best.as_ref()) {
                best = Some(triple);
            }
        }
        Ok(Found::best_or(best, beam.evaluated, || {
            Why::NothingReached {
                start: start.placement.combination(),
            }
        }))
    }
}

/// All that the steps of a beam without a limit go on from, and how many accuracies were predicted for it: `most` or fewer. It
/// keeps the usual number of triples, or as many as that allows.
pub(super) fn all_kept(problem: &Problem, goal: Goal, most: u64) -> (Vec<Triple>, u64) {
    let layers = problem.layers() as u64;
    // One layer more is moved in each step.
    let of_each = layers * (layers + 1) / 2;
    let affordable = (most / of_each).max(1) as usize;
    let mut beam = Beam {
        problem,
        goal,
        keep: usual_keep(goal).min(affordable),
        has_limit: false,
        evaluated: 0,
    };
    let kept = beam.run(start(problem, goal));
    (kept, beam.evaluated)
}

/// Where more did not help the papers' largest model (mlmp §6.3, Figure 6).
fn usual_keep(goal: Goal) -> usize {
    match goal {
        Goal::MaxAccuracy { .. } => 50,
        Goal::MinTime { .. } => 100,
    }
}

/// All layers on the NPU that it can run for Max-Accuracy, all on the CPU for Min-Time.
fn start(problem: &Problem, goal: Goal) -> Candidate {
    match goal {
        Goal::MaxAccuracy { .. } => problem.most_on(1),
        Goal::MinTime { .. } => problem.all_cpu(),
    }
}

struct Beam<'a> {
    problem: &'a Problem,
    goal: Goal,
    keep: usize,
    /// Whether placements that break the goal's limit are left out.
    has_limit: bool,
    evaluated: u64,
}

impl Beam<'_> {
    /// Moves one layer more in each step, until every layer is moved or nothing is left, and gives all that the steps went
    /// on from: the best of what a step found is among them. The start need not keep the limit, nor need the NPU be able to
    /// run it: what it leads to may.
    fn run(&mut self, start: Candidate) -> Vec<Triple> {
        let mut kept = self.problem.triples(&[start]);
        self.evaluated += 1;
        let mut all = Vec::new();
        while !kept.is_empty() {
            let moved = self.moved(&kept);
            all.append(&mut kept);
            kept = self.evaluate(&moved);
        }
        all
    }

    /// Every placement that is one move from one of `triples`, once. What breaks a time limit, or what a processor
    /// cannot run, is left out before its accuracy is predicted.
    fn moved(&self, triples: &[Triple]) -> Vec<Candidate> {
        let (columns, times) = (self.problem.columns(), self.problem.times());
        let (to, limit) = match self.goal {
            Goal::MaxAccuracy { within } => (0, within.signed().as_nanos()),
            Goal::MinTime { .. } => (1, i64::MAX),
        };
        let mut seen: HashSet<PackedPlacement> = HashSet::new();
        let mut candidates = Vec::new();
        for triple in triples {
            let from = &triple.candidate;
            for index in 0..self.problem.layers() {
                if from.placement.processor(index) == to
                    || triple.time + times.change(&from.placement, index, to) > limit
                {
                    continue;
                }
                let placement = from.placement.placed(index, to);
                if seen.insert(placement) && times.can_run(&placement) {
                    candidates.push(columns.moved(from, index, to));
                }
            }
        }
        candidates
    }

    /// The triples of these candidates that the next step goes on from.
    fn evaluate(&mut self, candidates: &[Candidate]) -> Vec<Triple> {
        self.evaluated += candidates.len() as u64;
        let mut triples = self.problem.triples(candidates);
        if self.has_limit {
            triples.retain(|triple| meets(self.problem, self.goal, triple));
        }
        keep_best(self.goal, &mut triples, self.keep);
        triples
    }
}

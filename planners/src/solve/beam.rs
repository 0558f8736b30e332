//! MLMP: a beam search over placements, one layer moved in each step (mlmp §4.3, Algorithms 1 and 2).
//!
//! Gaps closed: the same placement, reached from several others, is one triple; of equal triples one stays;
//! the start answers only if it keeps the limit; a limit that nothing keeps is proven so. T is not monotone,
//! and a beam forgets, so the way to a good placement may be barred: besides the start, the fastest placement and
//! those that the heuristic goes through enter at the step to which they belong. So MLMP is never worse than the
//! heuristic, All-CPU and All-NPU, which end that way. The best found is polished at the end.

use std::collections::HashSet;

use super::frontier::keep_best;
use super::polish::polish;
use super::solver::{SearchOptions, Solver};
use super::{Found, PlanError, fastest, heuristic, is_answer, meets, too_slow};
use crate::features::Candidate;
use crate::goal::Goal;
use crate::placement::PackedPlacement;
use crate::problem::{Problem, Triple};

pub(super) struct Mlmp;

impl Solver for Mlmp {
    fn name(&self) -> &'static str {
        "mlmp"
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
        let fastest = fastest::fastest(problem.times(), problem.all_cpu().placement);
        let mut seeds = heuristic::chain(problem, goal);
        let most_on_npu = seeds
            .iter()
            .map(|seed| seed.placement.layers_off_cpu())
            .max();
        seeds.push(problem.columns().candidate(fastest));
        let mut beam = Beam {
            problem,
            goal,
            keep,
            most_on_npu: most_on_npu.unwrap_or(0),
            best: None,
            evaluated: 0,
        };
        let mut kept = Vec::new();
        for step in 0..=problem.layers() {
            let mut candidates = beam.moved(&kept);
            candidates.extend(
                seeds
                    .iter()
                    .filter(|seed| beam.step_of(seed) == step)
                    .copied(),
            );
            kept = beam.evaluate(candidates, step == 0);
        }
        let Some(best) = beam.best else {
            // All-CPU meets every accuracy that is not refused before, the fastest every time that can be met.
            return Ok(Found::Nothing(too_slow(problem, &fastest)));
        };
        let (best, evaluated) = polish(problem, goal, best);
        Ok(Found::Best(Box::new(best), beam.evaluated + evaluated))
    }
}

/// Where more did not help the papers' largest model (mlmp §6.3, Figure 6).
fn usual_keep(goal: Goal) -> usize {
    match goal {
        Goal::MaxAccuracy { .. } => 50,
        Goal::MinTime { .. } => 100,
    }
}

struct Beam<'a> {
    problem: &'a Problem,
    goal: Goal,
    keep: usize,
    /// How many layers the start has on the NPU where steps move them off it.
    most_on_npu: usize,
    best: Option<Triple>,
    evaluated: u64,
}

impl Beam<'_> {
    /// The processor to which steps move layers: Max-Accuracy starts with all of them on the NPU.
    fn to(&self) -> usize {
        match self.goal {
            Goal::MaxAccuracy { .. } => 0,
            Goal::MinTime { .. } => 1,
        }
    }

    /// After how many moves from the start a candidate comes about.
    fn step_of(&self, candidate: &Candidate) -> usize {
        let on_npu = candidate.placement.layers_off_cpu();
        match self.goal {
            Goal::MaxAccuracy { .. } => self.most_on_npu.saturating_sub(on_npu),
            Goal::MinTime { .. } => on_npu,
        }
    }

    /// Every placement that is one move from one of `triples`, once. What breaks a time limit, or what a processor
    /// cannot run, is left out before its accuracy is predicted.
    fn moved(&self, triples: &[Triple]) -> Vec<Candidate> {
        let (columns, times) = (self.problem.columns(), self.problem.times());
        let limit = match self.goal {
            Goal::MaxAccuracy { within } => within.signed().as_nanos(),
            Goal::MinTime { .. } => i64::MAX,
        };
        let to = self.to();
        let mut candidates = Vec::new();
        for triple in triples {
            let from = &triple.candidate;
            for index in 0..self.problem.layers() {
                if from.placement.processor(index) != to
                    && triple.time + times.change(&from.placement, index, to) <= limit
                    && times.allows(&from.placement.placed(index, to))
                {
                    candidates.push(columns.moved(from, index, to));
                }
            }
        }
        candidates
    }

    /// The triples of these candidates that the next step goes on from. Those of the `first` step need not
    /// keep the limit: what they lead to may.
    fn evaluate(&mut self, mut candidates: Vec<Candidate>, first: bool) -> Vec<Triple> {
        let mut seen: HashSet<PackedPlacement> = HashSet::with_capacity(candidates.len());
        candidates.retain(|candidate| seen.insert(candidate.placement));
        self.evaluated += candidates.len() as u64;
        let mut triples = self.problem.triples(&candidates);
        triples.retain(|triple| first || meets(self.goal, triple));
        for triple in &triples {
            if is_answer(self.goal, triple, self.best.as_ref()) {
                self.best = Some(*triple);
            }
        }
        keep_best(self.goal, &mut triples, self.keep);
        triples
    }
}

//! The front of time and accuracy: for each time limit the most accurate placement, and for each accuracy requirement the
//! fastest.
//!
//! Where there are few placements all of them are tried. Where there are more, a local search for many goals at once (Pareto
//! local search: Paquete, Chiarandini and Stützle, 2004) begins with every measured placement, those that the papers' beams
//! and heuristics go through, and the fastest ones at many prices of accuracy. From each placement of the front every single
//! move and every exchange of two layers is tried, until none is left that was not. Then it begins again with placements of
//! the front in which a run of layers was moved. It is seeded and counts predictions, not time, so that the same problem has
//! the same front.

use std::collections::HashSet;

use layerlab_profiles::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::exhaustive::most_exhaustive_layers;
use super::staircase::{Staircase, Step};
use super::{EveryPlacement, fastest, heuristic, paper_beam};
use crate::features::Candidate;
use crate::front::Front;
use crate::goal::Goal;
use crate::placement::PackedPlacement;
use crate::problem::{Problem, Triple};

/// Placements whose accuracies are predicted in one call.
const BATCH: usize = 4096;

/// Predictions after which a local search ends: less than a second.
const MOST_PREDICTIONS: u64 = 300_000;

/// What each of the papers' two beams may take of these: a small part, so that most is left for the search itself.
const BEAM_PREDICTIONS: u64 = 50_000;

/// The papers' two problems without a limit: the directions of their beams and heuristics.
const NO_LIMITS: [Goal; 2] = [
    Goal::MaxAccuracy {
        within: Nanos::from_nanos(i64::MAX as u64),
    },
    Goal::MinTime { at_least: 0.0 },
];

/// How often the local search begins again with moved runs of layers, of how many placements each time.
const RESTARTS: usize = 16;
const MOVED_EACH_TIME: usize = 64;

/// How many prices of accuracy there are for which the fastest placement is a beginning.
const PRICES: i32 = 48;

/// Finds the front of a problem: see [`Problem::with_front`].
pub fn find_front(problem: &Problem) -> Front {
    if problem.layers() > most_exhaustive_layers(problem.processors()) {
        return find_front_locally(problem);
    }
    let mut search = FrontSearch::new(problem);
    search.try_all();
    search.finish()
}

/// Finds the front by the local search, even where all placements could be tried: there it can be seen what the local search
/// is worth.
pub fn find_front_locally(problem: &Problem) -> Front {
    let mut search = FrontSearch::new(problem);
    search.begin();
    search.climb();
    search.restart();
    search.finish()
}

struct FrontSearch<'a> {
    problem: &'a Problem,
    /// The longest time that a placement takes, and its accuracy: what time limits are answered by.
    by_time: Staircase<PackedPlacement>,
    /// The time that a placement takes, and its least accuracy: what accuracy requirements are answered by.
    by_accuracy: Staircase<PackedPlacement>,
    /// What a local search has tried.
    seen: HashSet<PackedPlacement>,
    evaluated: u64,
}

impl FrontSearch<'_> {
    fn new(problem: &Problem) -> FrontSearch<'_> {
        FrontSearch {
            problem,
            by_time: Staircase::new(),
            by_accuracy: Staircase::new(),
            seen: HashSet::new(),
            evaluated: 0,
        }
    }

    fn try_all(&mut self) {
        let mut batch = Vec::new();
        for candidate in EveryPlacement::of(self.problem) {
            batch.push(candidate);
            if batch.len() == BATCH {
                self.offer(&batch);
                batch.clear();
            }
        }
        self.offer(&batch);
    }

    /// Tries what the local search begins with.
    fn begin(&mut self) {
        let problem = self.problem;
        let columns = problem.columns();
        let mut first: Vec<PackedPlacement> = problem.measured().copied().collect();
        // In a fixed order, whatever a hash map's is.
        first.sort_unstable();
        first.push(problem.all_cpu().placement);
        first.extend((1..problem.processors()).map(|on| problem.most_on(on).placement));
        first.extend(self.fastest_at_prices());
        let is_pair = problem.processors() == 2;
        if is_pair {
            for goal in NO_LIMITS {
                let chain = heuristic::chain(problem, goal);
                first.extend(chain.iter().map(|candidate| candidate.placement));
            }
        }
        let candidates: Vec<Candidate> = first.iter().map(|&one| columns.candidate(one)).collect();
        self.try_new(candidates);
        if is_pair {
            for goal in NO_LIMITS {
                let (kept, evaluated) = paper_beam::all_kept(problem, goal, BEAM_PREDICTIONS);
                self.evaluated += evaluated;
                for triple in kept {
                    let placement = triple.candidate.placement;
                    if problem.times().allows(&placement) && self.seen.insert(placement) {
                        self.offer_one(&triple);
                    }
                }
            }
        }
    }

    /// The fastest placements where each layer's loss alone costs time, from next to nothing to more than any time.
    fn fastest_at_prices(&self) -> Vec<PackedPlacement> {
        let problem = self.problem;
        let all_cpu = problem.all_cpu().placement;
        let (layers, losses) = (problem.layers(), problem.single_losses());
        let longest = problem.times().total(&all_cpu).max(1) as f64;
        let fastest = fastest::fastest(problem.times(), all_cpu);
        let at_price = |step: i32| {
            // From a thousandth of the time for all accuracy to a million times it.
            let price = longest * 10_f64.powf(f64::from(step) * 9.0 / f64::from(PRICES) - 3.0);
            fastest::fastest_with(problem.times(), all_cpu, |processor, index| {
                let place = processor.checked_sub(1);
                let loss = place.map_or(0.0, |place| losses[place * layers + index]);
                (loss * price) as i64
            })
        };
        std::iter::once(fastest)
            .chain((0..PRICES).map(at_price))
            .collect()
    }

    /// Tries the neighbours of all placements of the front until none is new, or enough was predicted: single moves first.
    fn climb(&mut self) {
        let (mut moved_one, mut moved_two) = (HashSet::new(), HashSet::new());
        loop {
            let mut from = self.placements();
            let is_first = from.iter().any(|one| !moved_one.contains(one));
            let done = if is_first {
                &mut moved_one
            } else {
                &mut moved_two
            };
            from.retain(|one| done.insert(*one));
            if from.is_empty() {
                return;
            }
            for one in from {
                let one = self.problem.columns().candidate(one);
                self.try_new(match is_first {
                    true => self.moved(&one),
                    false => self.moved_twice(&one),
                });
                if self.evaluated >= MOST_PREDICTIONS {
                    return;
                }
            }
        }
    }

    /// Climbs again from placements of the front in which a run of layers is on another processor.
    fn restart(&mut self) {
        let mut random = ChaCha8Rng::seed_from_u64(0x0f07);
        let (layers, processors) = (self.problem.layers(), self.problem.processors());
        for _ in 0..RESTARTS {
            if self.evaluated >= MOST_PREDICTIONS {
                return;
            }
            let front = self.placements();
            let mut moved = Vec::with_capacity(MOVED_EACH_TIME);
            for _ in 0..MOVED_EACH_TIME {
                let from = front[random.random_range(0..front.len())];
                let first = random.random_range(0..layers);
                let last = random.random_range(first..layers.min(first + 8));
                let to = random.random_range(0..processors);
                let run = (first..=last).fold(from, |moved, index| moved.placed(index, to));
                moved.push(self.problem.columns().candidate(run));
            }
            let neighbours = moved.iter().flat_map(|one| self.moved(one)).collect();
            self.try_new(moved);
            self.try_new(neighbours);
            self.climb();
        }
    }

    /// The placements in which one layer is elsewhere.
    fn moved(&self, from: &Candidate) -> Vec<Candidate> {
        self.moved_since(from, 0).map(|(_, one)| one).collect()
    }

    /// The placements in which two layers are elsewhere.
    fn moved_twice(&self, from: &Candidate) -> Vec<Candidate> {
        let once: Vec<(usize, Candidate)> = self.moved_since(from, 0).collect();
        let twice = once
            .iter()
            .flat_map(|(index, one)| self.moved_since(one, index + 1));
        twice.map(|(_, two)| two).collect()
    }

    /// The placements in which one layer, at `begin` or later, is elsewhere, and which layer it is.
    fn moved_since<'b>(
        &'b self,
        from: &'b Candidate,
        begin: usize,
    ) -> impl Iterator<Item = (usize, Candidate)> + 'b {
        let (layers, processors) = (self.problem.layers(), self.problem.processors());
        let moves =
            (begin..layers).flat_map(move |index| (0..processors).map(move |to| (index, to)));
        moves
            .filter(|&(index, to)| from.placement.processor(index) != to)
            .map(|(index, to)| (index, self.problem.columns().moved(from, index, to)))
    }

    /// Tries those candidates that were not tried before and that the processors can run.
    fn try_new(&mut self, mut candidates: Vec<Candidate>) {
        let times = self.problem.times();
        candidates.retain(|candidate| {
            times.allows(&candidate.placement) && self.seen.insert(candidate.placement)
        });
        for batch in candidates.chunks(BATCH) {
            self.offer(batch);
        }
    }

    fn offer(&mut self, candidates: &[Candidate]) {
        self.evaluated += candidates.len() as u64;
        for triple in self.problem.triples(candidates) {
            self.offer_one(&triple);
        }
    }

    fn offer_one(&mut self, triple: &Triple) {
        let of = triple.candidate.placement;
        let gain = triple.accuracy.value;
        // The longest time is calculated where it can matter: it is never below T(L).
        if !self.by_time.beats(triple.time, gain) {
            let cost = self.problem.longest_time(&of);
            self.by_time.offer(Step { cost, gain, of });
        }
        let gain = self.problem.least_accuracy(&triple.accuracy);
        let cost = triple.time;
        self.by_accuracy.offer(Step { cost, gain, of });
    }

    /// The placements of the front, each once, in their order.
    fn placements(&self) -> Vec<PackedPlacement> {
        let steps = self.by_time.steps().iter().chain(self.by_accuracy.steps());
        let mut placements: Vec<PackedPlacement> = steps.map(|step| step.of).collect();
        placements.sort_unstable();
        placements.dedup();
        placements
    }

    fn finish(self) -> Front {
        Front {
            placements: self.placements(),
            evaluated: self.evaluated,
        }
    }
}

//! The algorithms: which placement meets a goal best. An algorithm is a file, which says all there is to know of it, and
//! a line in the table below.

mod error;
mod every_placement;
mod fixed;
mod front_search;
mod frontier;
mod gray_code;
mod paths;
mod solver;
pub(crate) mod staircase;
mod why;

use std::fmt;
use std::str::FromStr;

use layerlab_profiles::SignedNanos;

use crate::features::Candidate;
use crate::goal::Goal;
use crate::placement::{PackedPlacement, PlacementLimitError};
use crate::problem::{Problem, Triple};
use crate::times::{Refusal, TimeTable};
use solver::{SearchOptions, Solver};

pub use error::PlanError;
pub(crate) use every_placement::EveryPlacement;
pub use exhaustive::most_exhaustive_layers;
pub use front_search::{find_front, find_front_locally};
pub use why::{TooLargePlacement, Why};

/// Declares the algorithms: of each the name of its variant, its file, and what it is.
macro_rules! algorithms {
    ($($algorithm:ident = $file:ident, $what:literal;)+) => {
        // Formatted by name in `.ci/run`: rustfmt does not find the files of modules that a macro declares.
        $(mod $file;)+

        /// How to look for a placement.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Algorithm {
            $(#[doc = $what] $algorithm,)+
        }

        impl Algorithm {
            /// All algorithms, in the order in which they are offered.
            pub const ALL: [Algorithm; [$(Algorithm::$algorithm),+].len()] = [$(Algorithm::$algorithm),+];

            fn solver(self) -> &'static dyn Solver {
                match self {
                    $(Algorithm::$algorithm => &$file::$algorithm,)+
                }
            }
        }
    };
}

algorithms! {
    AllCpu = all_cpu, "All layers on the CPU.";
    AllNpu = all_npu, "All layers on the NPU: plans for a CPU and one accelerator.";
    Heuristic = heuristic, "The papers' simple heuristic for the goal: Max-Accuracy (mlmp §3.1) or Min-Time (§3.2). Plans for a\nCPU and one accelerator.";
    MlmpPaper = paper_beam, "The papers' beam search as printed (mlmp §4.3, Algorithms 1 and 2). Plans for a CPU and one accelerator.";
    Mlmp = mlmp, "From the front of time and accuracy, which is searched once for all limits. Plans for a CPU and one accelerator.";
    Fastest = fastest, "The placement of the least T(L), whatever its accuracy.";
    Exhaustive = exhaustive, "Every placement, which finds the optimum of models of few layers.";
}

/// A text that names no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no algorithm; use {known}", known = names(Algorithm::ALL))]
pub struct AlgorithmError(String);

impl Algorithm {
    /// The papers', in the order of their figures.
    pub fn in_figures() -> Vec<Algorithm> {
        let all = Algorithm::ALL.into_iter();
        all.filter(|algorithm| algorithm.solver().is_in_figures())
            .collect()
    }

    /// The name in tables and on the command line.
    pub fn name(self) -> &'static str {
        self.solver().name()
    }

    /// Those whose answers a sweep puts side by side: the papers', and where there are more than the papers' two
    /// processors, those that take them.
    pub fn to_compare(layers: usize, processors: usize) -> Vec<Algorithm> {
        if processors == 2 {
            return Algorithm::in_figures();
        }
        let all = Algorithm::ALL.into_iter();
        all.filter(|algorithm| {
            algorithm.refuse_processors(processors).is_ok()
                && algorithm.solver().takes_layers(layers, processors)
        })
        .collect()
    }

    /// Refuses so many processors where the algorithm is the papers'.
    pub fn refuse_processors(self, processors: usize) -> Result<(), PlanError> {
        if processors == 2 || !self.solver().is_for_a_pair() {
            return Ok(());
        }
        let others = Algorithm::ALL.into_iter();
        Err(PlanError::TwoProcessors {
            algorithm: self.name(),
            others: names(others.filter(|other| !other.solver().is_for_a_pair())),
            processors,
        })
    }

    /// Refuses a K where nothing is kept.
    pub(crate) fn refuse_keep(self, keep: Option<usize>) -> Result<(), PlanError> {
        match keep {
            Some(_) if !self.solver().keeps_triples() => Err(PlanError::KeepsNoTriples {
                algorithm: self.name(),
            }),
            _ => Ok(()),
        }
    }

    /// What looks for a placement that meets a goal by estimates, where this algorithm finds none that does with
    /// confidence: where it misses none there is none, and the fastest is the most probable to keep a time.
    pub(crate) fn by_estimates(self) -> Algorithm {
        match self.solver().misses_nothing() {
            true => Algorithm::Fastest,
            false => self,
        }
    }

    /// Finds what the answers to all goals have in common, which the problem keeps.
    pub(crate) fn prepare(self, problem: &Problem) {
        if self.refuse_processors(problem.processors()).is_ok() {
            self.solver().prepare(problem);
        }
    }

    /// Looks for the placement that meets `goal` best.
    pub(crate) fn search(
        self,
        problem: &Problem,
        goal: Goal,
        keep: Option<usize>,
    ) -> Result<Found, PlanError> {
        self.refuse_processors(problem.processors())?;
        let options = SearchOptions { keep };
        self.solver().search(problem, goal, options)
    }
}

/// Names in a sentence: `a`, `a or b`, `a, b or c`.
fn names(algorithms: impl IntoIterator<Item = Algorithm>) -> String {
    let names: Vec<&str> = algorithms.into_iter().map(Algorithm::name).collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => names.concat(),
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = AlgorithmError;
    fn from_str(text: &str) -> Result<Self, AlgorithmError> {
        let mut named = Algorithm::ALL
            .into_iter()
            .filter(|algorithm| algorithm.name() == text);
        named.next().ok_or_else(|| AlgorithmError(text.to_owned()))
    }
}

/// What a search came back with.
pub(crate) enum Found {
    /// The best triple, and how many accuracies were predicted.
    Best(Box<Triple>, u64),
    Nothing(Why),
}

impl Found {
    /// The best triple, if there is one.
    fn best_or(best: Option<Triple>, evaluated: u64, why: impl FnOnce() -> Why) -> Found {
        best.map_or_else(
            || Found::Nothing(why()),
            |best| Found::Best(Box::new(best), evaluated),
        )
    }
}

/// Why an algorithm that considers nothing else than `triple` first has no plan.
fn only(triple: &Triple) -> Why {
    Why::OnlyOne {
        combination: triple.candidate.placement.combination(),
        time: SignedNanos::from_nanos(triple.time),
        accuracy: triple.accuracy.value,
    }
}

/// Why there is no plan at all where not even the fastest placement is fast enough.
fn too_slow(problem: &Problem, fastest: &PackedPlacement) -> Why {
    let times = problem.times();
    let anywhere = fastest::fastest(&times.without_limits(), problem.all_cpu().placement);
    let refusal = times.refusal(&anywhere);
    Why::FastestTooSlow {
        fastest: fastest.combination(),
        time: problem.time(fastest),
        without_limit: match refusal {
            Some(Refusal::Memory(shortage)) => Some(Box::new(TooLargePlacement {
                combination: anywhere.combination(),
                time: problem.time(&anywhere),
                shortage,
            })),
            _ => None,
        },
    }
}

/// Why an algorithm that considers nothing else than `placement` has no plan, if it is not possible.
fn refused(problem: &Problem, placement: &PackedPlacement) -> Option<Why> {
    Some(match problem.times().refusal(placement)? {
        Refusal::Unsupported(processor, lacked) => Why::Unsupported {
            combination: placement.combination(),
            processor: problem.times().names().nth(processor)?.to_owned(),
            segment: lacked.segment,
            reason: lacked.reason.clone(),
        },
        Refusal::Memory(shortage) => Why::TooLarge(Box::new(TooLargePlacement {
            combination: placement.combination(),
            time: problem.time(placement),
            shortage,
        })),
    })
}

/// Whether the triple keeps the goal's limit, with the confidence that plans of the problem are to have.
pub(crate) fn meets(problem: &Problem, goal: Goal, triple: &Triple) -> bool {
    match goal {
        Goal::MaxAccuracy { within } => {
            let within = within.signed().as_nanos();
            triple.time <= within && problem.longest_time(&triple.candidate.placement) <= within
        }
        Goal::MinTime { at_least } => problem.least_accuracy(&triple.accuracy) >= at_least,
    }
}

/// The best of these candidates that keeps the goal's limit.
pub(crate) fn best_answer(
    problem: &Problem,
    goal: Goal,
    candidates: &[Candidate],
) -> Option<Triple> {
    let mut best: Option<Triple> = None;
    for triple in problem.triples(candidates) {
        if is_answer(problem, goal, &triple, best.as_ref()) {
            best = Some(triple);
        }
    }
    best
}

/// Whether the triple keeps the goal's limit and beats the best answer so far.
fn is_answer(problem: &Problem, goal: Goal, triple: &Triple, best: Option<&Triple>) -> bool {
    // Whether it keeps the limit costs more to find out.
    best.is_none_or(|best| is_better(goal, triple, best)) && meets(problem, goal, triple)
}

/// Whether `one` is a better answer than `other`, both keeping the limit: by what the goal asks for, then by
/// the other quantity, then by an arbitrary fixed order, so that the same problem has the same plan.
fn is_better(goal: Goal, one: &Triple, other: &Triple) -> bool {
    let accurate = other.accuracy.value.total_cmp(&one.accuracy.value);
    let fast = one.time.cmp(&other.time);
    let order = match goal {
        Goal::MaxAccuracy { .. } => accurate.then(fast),
        Goal::MinTime { .. } => fast.then(accurate),
    };
    order
        .then_with(|| one.candidate.placement.cmp(&other.candidate.placement))
        .is_lt()
}

/// The placement of the least T(L), whatever its accuracy.
pub fn fastest_placement(times: &TimeTable) -> Result<PackedPlacement, PlacementLimitError> {
    let all_cpu = PackedPlacement::all_cpu(times.layers())?;
    Ok(fastest::fastest(times, all_cpu))
}

/// The placement of the least cost, whatever the table has in the place of times.
pub(crate) fn least_cost(table: &TimeTable, all_cpu: PackedPlacement) -> PackedPlacement {
    fastest::fastest(table, all_cpu)
}

/// All placements on so many processors, those that are not possible as well, beginning with all layers on processor 0.
pub(crate) fn every_placement(
    all_cpu: PackedPlacement,
    layers: usize,
    processors: usize,
) -> impl Iterator<Item = PackedPlacement> {
    let moves = gray_code::GrayCode::new(layers, processors);
    let moved = moves.scan(all_cpu, |placement, (index, to)| {
        *placement = placement.placed(index, to);
        Some(*placement)
    });
    std::iter::once(all_cpu).chain(moved)
}

/// The possible placements that no other beats in both time and energy, by a table of nJ in the place of ns, the fastest
/// first; and whether these are all of them.
pub(crate) fn unbeaten_placements(
    times: &TimeTable,
    energies: &TimeTable,
    all_cpu: PackedPlacement,
) -> (Vec<PackedPlacement>, bool) {
    let costs = paths::PathCosts {
        times,
        energies: Some(energies),
        more: |_, _| 0,
    };
    let found = paths::unbeaten(&costs, all_cpu);
    let placements = found.paths.iter().map(|path| path.placement).collect();
    (placements, found.is_complete)
}

/// The least time that a limit can be: that which the placement of the least T(L) takes at most, with the confidence that
/// plans are to have.
pub(crate) fn fastest_time(problem: &Problem) -> SignedNanos {
    let all_cpu = problem.all_cpu().placement;
    let fastest = fastest::fastest(problem.times(), all_cpu);
    SignedNanos::from_nanos(problem.longest_time(&fastest))
}

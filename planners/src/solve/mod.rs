//! The algorithms: which placement meets a goal best.

mod beam;
mod exhaustive;
mod fastest;
mod fixed;
mod frontier;
mod heuristic;
mod polish;

use std::fmt;
use std::str::FromStr;

use layerlab_profiles::SignedNanos;

use crate::goal::{Goal, GoalError};
use crate::outcome::{Infeasible, Outcome, Plan, Why};
use crate::placement::Placement;
use crate::problem::{Problem, Triple};

pub use exhaustive::most_exhaustive_layers;

/// How to look for a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// All layers on the CPU.
    AllCpu,
    /// All layers on the NPU: plans for a CPU and one accelerator.
    AllNpu,
    /// The papers' simple heuristic for the goal: Max-Accuracy (mlmp §3.1) or Min-Time (§3.2). Plans for a CPU
    /// and one accelerator.
    Heuristic,
    /// The papers' beam search (mlmp §4.3), with its gaps closed. Plans for a CPU and one accelerator.
    Mlmp {
        /// How many triples each step keeps: the papers' K. Nothing means 50 for Max-Accuracy and 100
        /// for Min-Time, which the papers chose (§6.3).
        keep: Option<usize>,
    },
    /// Every placement, which finds the optimum of models of few layers.
    Exhaustive,
    /// The placement of the least T(L), whatever its accuracy.
    Fastest,
}

/// Why nothing could be planned.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The goal makes no sense for the model.
    #[error(transparent)]
    Goal(#[from] GoalError),
    /// A beam of nothing finds nothing.
    #[error("mlmp is to keep 0 triples per step; keep at least 1")]
    KeepsNothing,
    /// There are too many placements to try them all.
    #[error("the model has {layers} layers; all placements are tried up to {most}")]
    TooManyLayers {
        /// The model's layers.
        layers: usize,
        /// The most layers with so many processors.
        most: usize,
    },
    /// The algorithm is the papers', whose placements are on two processors.
    #[error(
        "{algorithm} plans for a CPU and one accelerator, and there are {processors} processors; name two, or use \
         exhaustive or fastest"
    )]
    TwoProcessors {
        /// The algorithm.
        algorithm: Algorithm,
        /// How many processors there are.
        processors: usize,
    },
}

/// A text that names no algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no algorithm; there are mlmp, heuristic, all-cpu, all-npu, exhaustive and fastest"
)]
pub struct AlgorithmError(String);

impl Algorithm {
    /// The papers', in the order of their figures.
    pub const ALL: [Algorithm; 4] = [
        Algorithm::AllCpu,
        Algorithm::AllNpu,
        Algorithm::Heuristic,
        Algorithm::Mlmp { keep: None },
    ];

    /// The name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::AllCpu => "all-cpu",
            Algorithm::AllNpu => "all-npu",
            Algorithm::Heuristic => "heuristic",
            Algorithm::Mlmp { .. } => "mlmp",
            Algorithm::Exhaustive => "exhaustive",
            Algorithm::Fastest => "fastest",
        }
    }

    /// Those whose answers a sweep puts side by side: the papers', and where there are more than the papers' two
    /// processors, those that take them.
    pub fn to_compare(layers: usize, processors: usize) -> Vec<Algorithm> {
        if processors == 2 {
            return Algorithm::ALL.to_vec();
        }
        let mut taken = vec![Algorithm::AllCpu, Algorithm::Fastest];
        if layers <= most_exhaustive_layers(processors) {
            taken.push(Algorithm::Exhaustive);
        }
        taken
    }

    /// Refuses so many processors where the algorithm is the papers'.
    pub fn refuse_processors(self, processors: usize) -> Result<(), PlanError> {
        match self {
            Algorithm::AllNpu | Algorithm::Heuristic | Algorithm::Mlmp { .. }
                if processors != 2 =>
            {
                Err(PlanError::TwoProcessors {
                    algorithm: self,
                    processors,
                })
            }
            _ => Ok(()),
        }
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
        let known = [
            Algorithm::ALL.as_slice(),
            &[Algorithm::Exhaustive, Algorithm::Fastest],
        ]
        .concat();
        let mut named = known
            .into_iter()
            .filter(|algorithm| algorithm.name() == text);
        named.next().ok_or_else(|| AlgorithmError(text.to_owned()))
    }
}

/// Answers `goal` by `algorithm`.
pub fn plan(problem: &Problem, goal: Goal, algorithm: Algorithm) -> Result<Outcome, PlanError> {
    goal.refuse_unless_sensible(problem.baseline())?;
    algorithm.refuse_processors(problem.processors())?;
    let found = match algorithm {
        Algorithm::AllCpu => fixed::search(problem, goal, problem.all_cpu()),
        Algorithm::AllNpu => fixed::search(problem, goal, problem.all_on(1)),
        Algorithm::Heuristic => heuristic::search(problem, goal),
        Algorithm::Mlmp { keep } => beam::search(problem, goal, keep.unwrap_or(usual_keep(goal)))?,
        Algorithm::Exhaustive => exhaustive::search(problem, goal)?,
        Algorithm::Fastest => fastest::search(problem, goal),
    };
    Ok(match found {
        Found::Best(triple, evaluated) => {
            Outcome::Planned(Plan::new(problem, algorithm, goal, &triple, evaluated))
        }
        Found::Nothing(why) => Outcome::Infeasible(Infeasible {
            algorithm,
            goal,
            why,
        }),
    })
}

/// Where more did not help the papers' largest model (mlmp §6.3, Figure 6).
fn usual_keep(goal: Goal) -> usize {
    match goal {
        Goal::MaxAccuracy { .. } => 50,
        Goal::MinTime { .. } => 100,
    }
}

/// What a search came back with.
enum Found {
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
fn too_slow(problem: &Problem, fastest: &Placement) -> Why {
    Why::FastestTooSlow {
        fastest: fastest.combination(),
        time: problem.time(fastest),
    }
}

/// Whether the triple keeps the goal's limit.
fn meets(goal: Goal, triple: &Triple) -> bool {
    match goal {
        Goal::MaxAccuracy { within } => triple.time <= within.signed().as_nanos(),
        Goal::MinTime { at_least } => triple.accuracy.value >= at_least,
    }
}

/// Whether the triple keeps the goal's limit and beats the best answer so far.
fn is_answer(goal: Goal, triple: &Triple, best: Option<&Triple>) -> bool {
    meets(goal, triple) && best.is_none_or(|best| is_better(goal, triple, best))
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

/// The least T(L) of all placements.
pub(crate) fn fastest_time(problem: &Problem) -> SignedNanos {
    problem.time(&fastest::fastest(
        problem.times(),
        problem.all_cpu().placement,
    ))
}

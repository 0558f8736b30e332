//! What a planner answers: a plan with its reasons, or why there is none. Neither can be changed.

use std::fmt;

use layerlab_profiles::time_model::PredictedTime;
use layerlab_profiles::{Placement, SignedNanos};

use crate::confidence::Confidence;
use crate::goal::Goal;
use crate::memory::{MemoryMode, MemoryUse};
use crate::problem::{PredictedAccuracy, Problem, Triple};
use crate::reason::{Reason, reasons};
use crate::solve::{Algorithm, TooLargePlacement, Why, meets};

/// The answer of one algorithm to one goal.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A placement that meets the goal's limit.
    Planned(Box<Plan>),
    /// No placement that the algorithm knows meets it.
    Infeasible(Infeasible),
}

/// A placement with its predicted time and accuracy, and the reasons for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    algorithm: Algorithm,
    keep: Option<usize>,
    goal: Goal,
    confidence: Option<Confidence>,
    keeps_limit: bool,
    processors: Vec<String>,
    combination: Placement,
    time: PredictedTime,
    time_ci95: Option<(SignedNanos, SignedNanos)>,
    accuracy: PredictedAccuracy,
    measured_accuracy: Option<f64>,
    memory: Vec<MemoryUse>,
    reasons: Vec<Reason>,
    evaluated: u64,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Infeasible {
    pub(crate) algorithm: Algorithm,
    pub(crate) keep: Option<usize>,
    pub(crate) goal: Goal,
    pub(crate) why: Why,
}

impl Outcome {
    /// What found it, or found nothing.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Outcome::Planned(plan) => plan.algorithm,
            Outcome::Infeasible(infeasible) => infeasible.algorithm,
        }
    }

    /// How many triples each step kept, if a user said how many: the papers' K.
    pub fn keep(&self) -> Option<usize> {
        match self {
            Outcome::Planned(plan) => plan.keep,
            Outcome::Infeasible(infeasible) => infeasible.keep,
        }
    }

    /// The plan, if there is one.
    pub fn plan(&self) -> Option<&Plan> {
        match self {
            Outcome::Planned(plan) => Some(plan),
            Outcome::Infeasible(_) => None,
        }
    }
}

impl Plan {
    /// The plan that places layers as `triple` does.
    pub(crate) fn new(
        problem: &Problem,
        (algorithm, keep): (Algorithm, Option<usize>),
        goal: Goal,
        triple: &Triple,
        evaluated: u64,
    ) -> Plan {
        let placement = &triple.candidate.placement;
        Plan {
            algorithm,
            keep,
            goal,
            confidence: problem.confidence(),
            keeps_limit: meets(problem, goal, triple),
            processors: problem.times().names().map(str::to_owned).collect(),
            combination: placement.combination(),
            time: problem.times().time(placement),
            time_ci95: problem.times().interval(placement),
            accuracy: triple.accuracy,
            measured_accuracy: problem.measured_accuracy(placement),
            memory: problem.times().memory_uses(placement).collect(),
            reasons: reasons(problem, goal, triple),
            evaluated,
        }
    }

    /// What found it.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// How many triples each of its steps kept, if a user said how many: the papers' K.
    pub fn keep(&self) -> Option<usize> {
        self.keep
    }

    /// What it is to achieve.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// With which confidence it is to keep its limit; nothing where estimates decided.
    pub fn confidence(&self) -> Option<Confidence> {
        self.confidence
    }

    /// What it needs of the memory of each accelerator of which the profile knows a limit.
    pub fn memory(&self) -> &[MemoryUse] {
        &self.memory
    }

    /// Whether it keeps its limit with that confidence; if not, no placement that the algorithm found does, and this one
    /// keeps it by estimates alone.
    pub fn keeps_limit(&self) -> bool {
        self.keeps_limit
    }

    /// What the processors of the placement's digits are called, processor 0 first.
    pub fn processors(&self) -> &[String] {
        &self.processors
    }

    /// Which layer runs on which processor.
    pub fn combination(&self) -> &Placement {
        &self.combination
    }

    /// T(L), split into computing on each processor and moving between them.
    pub fn time(&self) -> PredictedTime {
        self.time
    }

    /// The 95 % interval of T(L); nothing where a published time has none.
    pub fn time_ci95(&self) -> Option<(SignedNanos, SignedNanos)> {
        self.time_ci95
    }

    /// A(L), as it was measured, or as the accuracy model predicts it.
    pub fn accuracy(&self) -> PredictedAccuracy {
        self.accuracy
    }

    /// A(L) as it was measured, if exactly this combination was.
    pub fn measured_accuracy(&self) -> Option<f64> {
        self.measured_accuracy
    }

    /// Why layers are where they are, and what to be careful about.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// How many combinations' accuracies were predicted to find it.
    pub fn evaluated(&self) -> u64 {
        self.evaluated
    }
}

impl Infeasible {
    /// What found nothing.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// How many triples each of its steps kept, if a user said how many: the papers' K.
    pub fn keep(&self) -> Option<usize> {
        self.keep
    }

    /// What was to be achieved.
    pub fn goal(&self) -> Goal {
        self.goal
    }

    /// Why there is no plan.
    pub fn why(&self) -> &Why {
        &self.why
    }
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no plan for {}: ", self.algorithm, self.goal)?;
        match &self.why {
            Why::FastestTooSlow {
                fastest,
                time,
                without_limit: None,
            } => write!(
                f,
                "no placement is fast enough, the fastest ({fastest}) takes {time}"
            ),
            Why::FastestTooSlow {
                fastest,
                time,
                without_limit: Some(anywhere),
            } => {
                let TooLargePlacement {
                    combination,
                    time: sooner,
                    shortage,
                } = &**anywhere;
                write!(
                    f,
                    "no placement that fits is fast enough, the fastest ({fastest}) takes {time}; {combination} would take \
                     {sooner}, but {shortage}; allow more time, or {}",
                    remedy(shortage)
                )
            }
            Why::OnlyOne {
                combination,
                time,
                accuracy,
            } => write!(
                f,
                "its placement {combination} takes {time} at accuracy {accuracy:.4}; another algorithm may have one"
            ),
            Why::NothingReached { start } => write!(
                f,
                "no placement that it reaches from {start} keeps the limit; another algorithm may have one"
            ),
            Why::Unsupported {
                processor,
                segment,
                reason,
                ..
            } => write!(
                f,
                "the {processor} cannot run layers {segment}: {reason}; another algorithm places them elsewhere"
            ),
            Why::TooLarge(placement) => {
                let TooLargePlacement {
                    combination,
                    shortage,
                    ..
                } = &**placement;
                write!(
                    f,
                    "its placement {combination} does not fit: {shortage}; another algorithm places layers elsewhere"
                )
            }
        }
    }
}

/// What helps where memory is short.
fn remedy(shortage: &MemoryUse) -> &'static str {
    match shortage.mode {
        MemoryMode::Resident => "load runs when they are needed with --memory reload",
        MemoryMode::Reload => "use a smaller model or a device with more memory",
    }
}

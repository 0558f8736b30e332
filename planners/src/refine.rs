//! Which placements to measure so that a plan gets better, or sure: those that may be better than it, for all that is
//! predicted.
//!
//! Looked at are the placements of the front and those in which one layer is elsewhere. One that was not measured is in doubt
//! if it would take the plan's place with the accuracy at the upper end of what measuring it may show; so is the plan itself
//! if it was not measured. First comes the plan, then what is expected to gain most (expected improvement: Jones, Schonlau
//! and Welch, 1998), over the errors that predictions have.

use std::collections::BTreeSet;

use layerlab_profiles::{Placement, SignedNanos};

use crate::confidence::Confidence;
use crate::features::Candidate;
use crate::goal::Goal;
use crate::outcome::Plan;
use crate::placement::PackedPlacement;
use crate::problem::{Problem, Triple};
use crate::solve::{find_front, meets};

/// The shares of errors that stand for all of them: the middles of ten equal parts.
const ERRORS: [f64; 10] = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95];

/// What measuring more placements may change of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubts {
    /// The placements that were not measured and may change the plan, the most promising first. None: the plan is sure.
    pub placements: Vec<DoubtfulPlacement>,
    /// How many placements were looked at, measured ones included.
    pub considered: usize,
    /// With which confidence each of the others does not change the plan.
    pub confidence: Confidence,
}

/// A placement that may change a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct DoubtfulPlacement {
    /// Which layer runs on which processor.
    pub placement: Placement,
    /// T(L).
    pub time: SignedNanos,
    /// A(L) as it is predicted.
    pub predicted: f64,
    /// By how much measuring it may show another one; nothing if it may show any.
    pub error: Option<f64>,
}

/// What may change `plan`, which answers a goal about `problem`.
pub fn doubts(problem: &Problem, plan: &Plan) -> Doubts {
    let confidence = problem.confidence().unwrap_or(Confidence::USUAL);
    let pool = pool(problem, plan);
    let considered = pool.len();
    let is_new = |one: &Candidate| problem.measured_accuracy(&one.placement).is_none();
    let unmeasured: Vec<Candidate> = pool.into_iter().filter(is_new).collect();
    let judge = Judge {
        problem,
        plan,
        confidence,
    };
    let triples = problem.triples(&unmeasured).into_iter();
    let mut doubtful: Vec<(Promise, Triple)> = triples
        .filter_map(|triple| Some((judge.promise(&triple)?, triple)))
        .collect();
    doubtful.sort_by(|(a, one), (b, other)| {
        let order = b.is_plan.cmp(&a.is_plan);
        let order = order.then(b.expected.total_cmp(&a.expected));
        let order = order.then(b.at_most.total_cmp(&a.at_most));
        order.then_with(|| one.candidate.placement.cmp(&other.candidate.placement))
    });
    let placements = doubtful.into_iter().map(|(_, triple)| DoubtfulPlacement {
        placement: triple.candidate.placement.combination(),
        time: SignedNanos::from_nanos(triple.time),
        predicted: triple.accuracy.value,
        error: judge.error(&triple, confidence),
    });
    Doubts {
        placements: placements.collect(),
        considered,
        confidence,
    }
}

/// The placements of the front, the plan, and those in which one layer is elsewhere, that the processors can run, each once.
fn pool(problem: &Problem, plan: &Plan) -> Vec<Candidate> {
    let columns = problem.columns();
    let front = problem.front_or(find_front).placements.iter().copied();
    let planned = PackedPlacement::of(plan.combination()).ok();
    let from: Vec<PackedPlacement> = front.chain(planned).collect();
    let (layers, processors) = (problem.layers(), problem.processors());
    let moved = |from: PackedPlacement| {
        let moves = (0..layers).flat_map(move |index| (0..processors).map(move |to| (index, to)));
        moves.map(move |(index, to)| from.placed(index, to))
    };
    let all: BTreeSet<PackedPlacement> = from.iter().copied().flat_map(moved).collect();
    let allowed = all.into_iter().filter(|one| problem.times().allows(one));
    allowed.map(|one| columns.candidate(one)).collect()
}

/// What a placement promises, in the goal's terms: an accuracy, or ns.
struct Promise {
    is_plan: bool,
    /// What is gained on average over the errors of predictions.
    expected: f64,
    /// What is gained where the accuracy is at the upper end.
    at_most: f64,
}

struct Judge<'a> {
    problem: &'a Problem,
    plan: &'a Plan,
    confidence: Confidence,
}

impl Judge<'_> {
    /// What measuring a placement may gain; nothing if it cannot change the plan.
    fn promise(&self, triple: &Triple) -> Option<Promise> {
        let is_plan = triple.candidate.placement.combination() == *self.plan.combination();
        let keeps_time = match self.plan.goal() {
            goal @ Goal::MaxAccuracy { .. } => meets(self.problem, goal, triple),
            Goal::MinTime { .. } => triple.time < self.plan.time().total().as_nanos(),
        };
        if !keeps_time && !is_plan {
            return None;
        }
        // Of a model that says nothing of its errors, any accuracy is possible.
        let any = self.problem.baseline();
        let at_most = self.gain(triple, self.error(triple, self.confidence).unwrap_or(any));
        let errors = ERRORS.iter().map(|&share| {
            let confidence = Confidence::of(share).unwrap_or(Confidence::USUAL);
            self.error(triple, confidence).unwrap_or(any)
        });
        let both = errors.map(|error| self.gain(triple, error) + self.gain(triple, -error));
        let expected = both.sum::<f64>() / (2 * ERRORS.len()) as f64;
        (is_plan || at_most > 0.0).then_some(Promise {
            is_plan,
            expected,
            at_most,
        })
    }

    /// By how much the loss that measuring shows may differ from the predicted one.
    fn error(&self, triple: &Triple, confidence: Confidence) -> Option<f64> {
        self.problem.prediction_error(&triple.accuracy, confidence)
    }

    /// What is gained if measuring shows an accuracy that is higher than predicted by so much; never less than nothing.
    fn gain(&self, triple: &Triple, more: f64) -> f64 {
        let accuracy = triple.accuracy.value + more;
        let gain = match self.plan.goal() {
            Goal::MaxAccuracy { .. } => accuracy - self.plan.accuracy().value,
            Goal::MinTime { at_least } => {
                let least = accuracy - self.problem.sampling(&triple.accuracy);
                match least >= at_least {
                    true => (self.plan.time().total().as_nanos() - triple.time) as f64,
                    false => 0.0,
                }
            }
        };
        gain.max(0.0)
    }
}

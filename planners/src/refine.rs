//! Which placements to measure so that a plan gets better, or sure: those that may be better than it, for all that is
//! predicted.
//!
//! Where all placements can be tried, all are looked at; of more, those of the front and those that were measured, with one
//! layer elsewhere or two. One that was not measured is in doubt if it would take the plan's place with the accuracy at the
//! upper end of what measuring it may show; so is the plan itself if it was not measured. First comes the plan, then what is
//! expected to gain most (expected improvement: Jones, Schonlau and Welch, 1998), over the errors that predictions have.

use std::collections::{BTreeSet, HashSet};

use layerlab_profiles::{Placement, SignedNanos};

use crate::confidence::Confidence;
use crate::features::Candidate;
use crate::goal::Goal;
use crate::outcome::Plan;
use crate::placement::PackedPlacement;
use crate::problem::{Problem, Triple};
use crate::solve::{Algorithm, EveryPlacement, best_answer, find_front, most_exhaustive_layers};

/// The shares of errors that stand for all of them: the middles of ten equal parts.
const ERRORS: [f64; 10] = [0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95];

/// Placements whose accuracies are predicted in one call.
const BATCH: usize = 4096;

/// What measuring more placements may change of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubts {
    /// Placements that were not measured and may change the plan, the most promising first, as many as were asked for.
    pub placements: Vec<DoubtfulPlacement>,
    /// How many there are of them. None: the plan is sure.
    pub count: usize,
    /// How many placements that keep the goal's time were looked at, measured ones included.
    pub considered: usize,
    /// Whether these are all that do.
    pub is_every_placement: bool,
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

/// What may change `plan`, which answers a goal about `problem`: the `most` most promising placements.
pub fn doubts(problem: &Problem, plan: &Plan, most: usize) -> Doubts {
    let confidence = problem.confidence().unwrap_or(Confidence::USUAL);
    let judge = Judge {
        problem,
        plan,
        planned: PackedPlacement::of(plan.combination()).ok(),
        confidence,
    };
    let is_every_placement = problem.layers() <= most_exhaustive_layers(problem.processors());
    let pool: Box<dyn Iterator<Item = Candidate>> = match is_every_placement {
        true => Box::new(EveryPlacement::of(problem)),
        false => Box::new(near(problem, plan).into_iter()),
    };
    let mut considered = 0;
    let mut doubtful = Vec::new();
    let mut in_time = pool.filter(|one| judge.keeps_time(one)).peekable();
    while in_time.peek().is_some() {
        let batch: Vec<Candidate> = in_time.by_ref().take(BATCH).collect();
        considered += batch.len();
        let is_new = |one: &Candidate| problem.measured_accuracy(&one.placement).is_none();
        let unmeasured: Vec<Candidate> = batch.into_iter().filter(is_new).collect();
        let triples = problem.triples(&unmeasured).into_iter();
        doubtful.extend(triples.filter_map(|triple| {
            let promise = judge.promise(&triple)?;
            Some((promise, triple.candidate.placement))
        }));
    }
    let count = doubtful.len();
    doubtful.sort_by(|(a, one), (b, other)| {
        let order = b.is_plan.cmp(&a.is_plan);
        let order = order.then(b.expected.total_cmp(&a.expected));
        let order = order.then(b.at_most.total_cmp(&a.at_most));
        order.then_with(|| one.cmp(other))
    });
    doubtful.truncate(most);
    let columns = problem.columns();
    let first: Vec<Candidate> = doubtful
        .iter()
        .map(|(_, one)| columns.candidate(*one))
        .collect();
    let placements = problem
        .triples(&first)
        .into_iter()
        .map(|triple| DoubtfulPlacement {
            placement: triple.candidate.placement.combination(),
            time: SignedNanos::from_nanos(triple.time),
            predicted: triple.accuracy.value,
            error: judge.error(&triple, confidence),
        });
    Doubts {
        placements: placements.collect(),
        count,
        considered,
        is_every_placement,
        confidence,
    }
}

/// The best of the placements that were measured, if one keeps the goal's limit. Others may be predicted to be better, which
/// nobody has seen.
pub fn best_measured(problem: &Problem, goal: Goal) -> Option<Plan> {
    let columns = problem.columns();
    let measured = problem.measured().map(|&one| columns.candidate(one));
    let measured = measured.chain([problem.all_cpu()]);
    let possible: Vec<Candidate> = measured
        .filter(|one| problem.times().allows(&one.placement))
        .collect();
    let tried = possible.len() as u64;
    let best = best_answer(problem, goal, &possible);
    best.map(|best| Plan::new(problem, (Algorithm::Mlmp, None), goal, &best, tried))
}

/// The placements of the front, the plan and those that were measured, and all in which one or two of their layers are
/// elsewhere, that the processors can run, each once.
fn near(problem: &Problem, plan: &Plan) -> Vec<Candidate> {
    let columns = problem.columns();
    let front = problem.front_or(find_front).placements.iter().copied();
    let planned = PackedPlacement::of(plan.combination()).ok();
    let measured = problem.measured().copied();
    let from: BTreeSet<PackedPlacement> = front.chain(planned).chain(measured).collect();
    let (layers, processors) = (problem.layers(), problem.processors());
    let moved = |from: PackedPlacement, begin: usize| {
        let moves =
            (begin..layers).flat_map(move |index| (0..processors).map(move |to| (index, to)));
        moves.map(move |(index, to)| (index, from.placed(index, to)))
    };
    // One move may leave a layer where it is.
    let twice = from
        .into_iter()
        .flat_map(|one| moved(one, 0).flat_map(|(index, one)| moved(one, index)));
    let all: HashSet<PackedPlacement> = twice.map(|(_, one)| one).collect();
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
    planned: Option<PackedPlacement>,
    confidence: Confidence,
}

impl Judge<'_> {
    fn is_plan(&self, placement: &PackedPlacement) -> bool {
        self.planned == Some(*placement)
    }

    /// Whether a placement is the plan, or fast enough to take its place.
    fn keeps_time(&self, candidate: &Candidate) -> bool {
        let placement = &candidate.placement;
        let time = self.problem.times().total(placement);
        let is_fast = match self.plan.goal() {
            Goal::MaxAccuracy { within } => {
                let within = within.signed().as_nanos();
                time <= within && self.problem.longest_time(placement) <= within
            }
            Goal::MinTime { .. } => time < self.plan.time().total().as_nanos(),
        };
        is_fast || self.is_plan(placement)
    }

    /// What measuring a placement may gain; nothing if it cannot change the plan.
    fn promise(&self, triple: &Triple) -> Option<Promise> {
        let is_plan = self.is_plan(&triple.candidate.placement);
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
        // Not the nearest possible accuracy: of many that are predicted to lose nothing, some are more likely to gain.
        let accuracy = self.problem.baseline() - triple.accuracy.loss + more;
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

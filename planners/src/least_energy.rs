//! Min-Energy: the placement that draws least of those that keep a time or an accuracy, as the papers' two problems have them.
//! E(L) is a sum of the same form as T(L), so that a [`TimeTable`] of nanojoules in the place of nanoseconds says it.
//!
//! Without a limit it is a shortest path. Otherwise, where there are few placements all are tried. Where there are more, a time
//! limit is answered from the front of time and energy, found layer by layer (a shortest path with two costs, of which dominated
//! ones are dropped: Hansen 1980), and an accuracy requirement from the front of energy and accuracy, which is searched as that
//! of time and accuracy is.

use std::fmt;

use layerlab_profiles::{Nanos, Placement, SignedNanos};

use crate::features::Candidate;
use crate::goal::{Goal, GoalError};
use crate::placement::{PackedPlacement, PlacementLimitError};
use crate::problem::{PredictedAccuracy, Problem};
use crate::solve::{
    EveryPlacement, find_front_locally, least_cost, most_exhaustive_layers, unbeaten_placements,
};
use crate::times::TimeTable;

/// Placements whose accuracies are predicted in one call.
const BATCH: usize = 4096;

/// What the placement that draws least is to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EnergyLimit {
    /// One inference takes no longer: T(L) <= θ_t.
    Time {
        /// θ_t.
        within: Nanos,
    },
    /// It is at least this accurate: A(L) >= θ_a.
    Accuracy {
        /// θ_a, a fraction.
        at_least: f64,
    },
    /// Nothing: it is the one that draws least of all.
    Unlimited,
}

impl EnergyLimit {
    /// Refuses a limit that makes no sense for a model of the accuracy `baseline`.
    pub fn refuse_unless_sensible(self, baseline: f64) -> Result<(), GoalError> {
        // The problem of the papers that has the same limit.
        let goal = match self {
            EnergyLimit::Time { within } => Goal::MaxAccuracy { within },
            EnergyLimit::Accuracy { at_least } => Goal::MinTime { at_least },
            EnergyLimit::Unlimited => return Ok(()),
        };
        goal.refuse_unless_sensible(baseline)
    }
}

impl fmt::Display for EnergyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnergyLimit::Time { within } => write!(f, "within {within}"),
            EnergyLimit::Accuracy { at_least } => write!(f, "at accuracy {at_least} or more"),
            EnergyLimit::Unlimited => f.write_str("without a limit"),
        }
    }
}

/// Why nothing can be planned.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum EnergyPlanError {
    /// The limit makes no sense.
    #[error(transparent)]
    Limit(#[from] GoalError),
    /// There are more layers than planners take.
    #[error(transparent)]
    Layers(#[from] PlacementLimitError),
    /// Times and energies are of different models or processors.
    #[error(
        "there are times of {times:?} layers and processors, and energies of {energies:?}; both must be of the same"
    )]
    Different {
        /// Layers and processors with times.
        times: (usize, usize),
        /// Layers and processors with energies.
        energies: (usize, usize),
    },
}

/// The placement that draws least of those that keep a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct EnergyPlan {
    /// Which layer runs on which processor.
    pub combination: Placement,
    /// E(L) above what the idle device draws, in nJ.
    pub energy_nj: i64,
    /// Its 95 % interval, which does not decide; nothing where a published energy has none.
    pub energy_ci95_nj: Option<(i64, i64)>,
    /// T(L).
    pub time: SignedNanos,
    /// Its 95 % interval.
    pub time_ci95: Option<(SignedNanos, SignedNanos)>,
    /// A(L); nothing where accuracy was not measured.
    pub accuracy: Option<PredictedAccuracy>,
    /// Whether it keeps the limit with the confidence that plans are to have; if not, none does, and this one keeps it by
    /// estimates.
    pub keeps_limit: bool,
    /// Whether it is proven that no placement that keeps the limit draws less, by the same tables.
    pub is_optimum: bool,
}

/// A placement with what it draws.
#[derive(Clone, Copy)]
struct Found {
    energy: i64,
    time: i64,
    accuracy: f64,
    candidate: Candidate,
}

/// The placement that draws least of those that keep `limit`, with the confidence of the problem; where none does, with none.
/// Nothing where no placement keeps it at all. `energies` has nJ in the place of ns.
pub fn least_energy(
    problem: &Problem,
    energies: &TimeTable,
    limit: EnergyLimit,
) -> Result<Option<EnergyPlan>, EnergyPlanError> {
    limit.refuse_unless_sensible(problem.baseline())?;
    refuse_different(problem.times(), energies)?;
    let (layers, processors) = (energies.layers(), energies.processors());
    let tries_all = layers <= most_exhaustive_layers(processors);
    let search = |problem: &Problem| {
        let search = Search {
            problem,
            energies,
            limit,
        };
        match (tries_all, limit) {
            (_, EnergyLimit::Unlimited) => search.of_least(),
            (true, _) => search.of_all(),
            (false, EnergyLimit::Time { .. }) => search.of_unbeaten(),
            (false, EnergyLimit::Accuracy { .. }) => search.of_front(),
        }
    };
    let kept = search(problem);
    let found = match (kept, problem.confidence()) {
        (None, Some(_)) => search(&problem.clone().with_confidence(None)),
        (kept, _) => kept,
    };
    let Some(found) = found else {
        return Ok(None);
    };
    let placement = found.candidate.placement;
    let in_nj = |(low, high): (SignedNanos, SignedNanos)| (low.as_nanos(), high.as_nanos());
    Ok(Some(EnergyPlan {
        combination: placement.combination(),
        energy_nj: found.energy,
        energy_ci95_nj: energies.interval(&placement).map(in_nj),
        time: problem.time(&placement),
        time_ci95: problem.times().interval(&placement),
        accuracy: problem.predict(&[found.candidate]).first().copied(),
        keeps_limit: kept.is_some(),
        is_optimum: tries_all || limit == EnergyLimit::Unlimited,
    }))
}

/// Refuses times and energies of different models or processors.
pub(crate) fn refuse_different(
    times: &TimeTable,
    energies: &TimeTable,
) -> Result<(), EnergyPlanError> {
    let size = |table: &TimeTable| (table.layers(), table.processors());
    match size(times) == size(energies) {
        true => Ok(()),
        false => Err(EnergyPlanError::Different {
            times: size(times),
            energies: size(energies),
        }),
    }
}

/// One search.
struct Search<'a> {
    problem: &'a Problem,
    energies: &'a TimeTable,
    limit: EnergyLimit,
}

impl Search<'_> {
    /// Takes the placement that draws least of all.
    fn of_least(&self) -> Option<Found> {
        let all_cpu = self.problem.all_cpu().placement;
        let least = self
            .problem
            .columns()
            .candidate(least_cost(self.energies, all_cpu));
        let mut best = None;
        self.consider(&[least], &mut best);
        best
    }

    /// Tries all placements.
    fn of_all(&self) -> Option<Found> {
        let mut best = None;
        let mut batch = Vec::with_capacity(BATCH);
        for candidate in EveryPlacement::of(self.problem) {
            batch.push(candidate);
            if batch.len() == BATCH {
                self.consider(&batch, &mut best);
                batch.clear();
            }
        }
        self.consider(&batch, &mut best);
        best
    }

    /// Tries those that no other one beats in both time and energy.
    fn of_unbeaten(&self) -> Option<Found> {
        let columns = self.problem.columns();
        let all_cpu = self.problem.all_cpu().placement;
        let (unbeaten, _) = unbeaten_placements(self.problem.times(), self.energies, all_cpu);
        let candidates: Vec<Candidate> =
            unbeaten.iter().map(|one| columns.candidate(*one)).collect();
        let mut best = None;
        self.consider(&candidates, &mut best);
        best
    }

    /// Tries those of the front of energy and accuracy.
    fn of_front(&self) -> Option<Found> {
        let in_energy = self.problem.clone().with_times(self.energies.clone());
        let columns = self.problem.columns();
        let front = find_front_locally(&in_energy).placements;
        let candidates: Vec<Candidate> = front.iter().map(|one| columns.candidate(*one)).collect();
        let mut best = None;
        self.consider(&candidates, &mut best);
        best
    }

    /// Keeps the best of these that are possible and keep the limit.
    fn consider(&self, candidates: &[Candidate], best: &mut Option<Found>) {
        let times = self.problem.times();
        let promising: Vec<Candidate> = candidates
            .iter()
            .filter(|one| {
                let energy = self.energies.total(&one.placement);
                best.as_ref().is_none_or(|best| energy <= best.energy)
                    && times.allows(&one.placement)
                    && self.is_in_time(&one.placement)
            })
            .copied()
            .collect();
        let accuracies = self.problem.predict(&promising);
        for (candidate, accuracy) in promising.into_iter().zip(accuracies) {
            if let EnergyLimit::Accuracy { at_least } = self.limit
                && self.problem.least_accuracy(&accuracy) < at_least
            {
                continue;
            }
            let found = Found {
                energy: self.energies.total(&candidate.placement),
                time: times.total(&candidate.placement),
                accuracy: accuracy.value,
                candidate,
            };
            if best
                .as_ref()
                .is_none_or(|best| self.is_better(&found, best))
            {
                *best = Some(found);
            }
        }
    }

    fn is_in_time(&self, placement: &PackedPlacement) -> bool {
        match self.limit {
            EnergyLimit::Accuracy { .. } | EnergyLimit::Unlimited => true,
            EnergyLimit::Time { within } => {
                let within = within.signed().as_nanos();
                self.problem.times().total(placement) <= within
                    && self.problem.longest_time(placement) <= within
            }
        }
    }

    /// By energy, then by what has no limit, then by an arbitrary fixed order.
    fn is_better(&self, one: &Found, other: &Found) -> bool {
        let accurate = other.accuracy.total_cmp(&one.accuracy);
        let fast = one.time.cmp(&other.time);
        let then = match self.limit {
            EnergyLimit::Time { .. } => accurate.then(fast),
            EnergyLimit::Accuracy { .. } | EnergyLimit::Unlimited => fast.then(accurate),
        };
        let order = one.energy.cmp(&other.energy).then(then);
        order
            .then_with(|| one.candidate.placement.cmp(&other.candidate.placement))
            .is_lt()
    }
}

//! Plans by time or energy alone, for networks whose accuracy was not measured: evaluation sets hold images, and not every network
//! takes one. Nothing here knows what a placement loses, and no plan says so.
//!
//! T(L) and E(L) look no further than from a layer to the next, so that the least of either is a shortest path. The least
//! energy within a time is one of the placements that no other beats in both.

use layerlab_profiles::time_model::PredictedTime;
use layerlab_profiles::{Layer, Nanos, Placement, SignedNanos};

use crate::confidence::Confidence;
use crate::goal::GoalError;
use crate::least_energy::{EnergyPlan, EnergyPlanError, refuse_different};
use crate::memory::MemoryUse;
use crate::placement::{PackedPlacement, PlacementLimitError};
use crate::reason::{Reason, reasons_by_time};
use crate::solve::{every_placement, least_cost, most_exhaustive_layers, unbeaten_placements};
use crate::times::TimeTable;

/// What every such plan says.
pub const ACCURACY_UNKNOWN: &str =
    "accuracy was not measured: nothing is known of what this plan costs in accuracy";

/// The fastest placement, whatever its accuracy.
#[derive(Clone, Debug, PartialEq)]
pub struct TimePlan {
    /// What plans call the processors of the placement's digits, processor 0 first.
    pub processors: Vec<String>,
    /// Which layer runs on which processor.
    pub combination: Placement,
    /// T(L), split into computing on each processor and moving between them.
    pub time: PredictedTime,
    /// The 95 % interval of T(L); nothing where a published time has none.
    pub time_ci95: Option<(SignedNanos, SignedNanos)>,
    /// What it needs of the memory of each accelerator of which the profile knows a limit.
    pub memory: Vec<MemoryUse>,
    /// Why layers are where they are.
    pub reasons: Vec<Reason>,
}

/// The placement of the least T(L), of the layers of `layers.csv` with these times: exact.
///
/// # Errors
/// When the model has more layers than planners take.
///
/// # Panics
/// When the times are of more layers than there are.
pub fn fastest_plan(layers: &[Layer], times: &TimeTable) -> Result<TimePlan, PlacementLimitError> {
    let placement = least_cost(times, PackedPlacement::all_cpu(times.layers())?);
    Ok(TimePlan {
        processors: times.names().map(str::to_owned).collect(),
        combination: placement.combination(),
        time: times.time(&placement),
        time_ci95: times.interval(&placement),
        memory: times.memory_uses(&placement).collect(),
        reasons: reasons_by_time(layers, times, placement),
    })
}

/// The placement of the least E(L), by a table of nJ in the place of ns, and of those that take no longer than `within`, if
/// anything limits the time. With a confidence, the end of the interval of T(L) meets the limit; where none of any placement
/// does, estimates decide. Nothing where no placement is fast enough.
///
/// Without a limit, with one and few enough layers to try all placements, and by estimates unless there are very many layers, no
/// other placement draws less ([`EnergyPlan::is_optimum`]).
///
/// # Errors
/// When the limit is 0, or the tables are of different models.
pub fn least_energy_alone(
    times: &TimeTable,
    energies: &TimeTable,
    within: Option<Nanos>,
    confidence: Option<Confidence>,
) -> Result<Option<EnergyPlan>, EnergyPlanError> {
    if within == Some(Nanos::ZERO) {
        return Err(GoalError::NoTime.into());
    }
    refuse_different(times, energies)?;
    let search = Search::new(times, energies)?;
    let least = match within {
        None => Some(Least {
            placement: least_cost(energies, search.all_cpu),
            keeps_limit: true,
            is_optimum: true,
        }),
        Some(within) => search.within(within, confidence),
    };
    Ok(least.map(|least| {
        let placement = least.placement;
        let in_nj = |(low, high): (SignedNanos, SignedNanos)| (low.as_nanos(), high.as_nanos());
        EnergyPlan {
            combination: placement.combination(),
            energy_nj: energies.total(&placement),
            energy_ci95_nj: energies.interval(&placement).map(in_nj),
            time: SignedNanos::from_nanos(times.total(&placement)),
            time_ci95: times.interval(&placement),
            accuracy: None,
            keeps_limit: least.keeps_limit,
            is_optimum: least.is_optimum,
        }
    }))
}

struct Least {
    placement: PackedPlacement,
    keeps_limit: bool,
    is_optimum: bool,
}

/// One search for the least energy within a time.
struct Search<'a> {
    times: &'a TimeTable,
    energies: &'a TimeTable,
    all_cpu: PackedPlacement,
}

impl Search<'_> {
    fn new<'a>(
        times: &'a TimeTable,
        energies: &'a TimeTable,
    ) -> Result<Search<'a>, PlacementLimitError> {
        let all_cpu = PackedPlacement::all_cpu(times.layers())?;
        Ok(Search {
            times,
            energies,
            all_cpu,
        })
    }

    fn within(&self, within: Nanos, confidence: Option<Confidence>) -> Option<Least> {
        let within = within.signed().as_nanos();
        let (layers, processors) = (self.times.layers(), self.times.processors());
        let of = |confidence| {
            if layers <= most_exhaustive_layers(processors) {
                let all = every_placement(self.all_cpu, layers, processors);
                return (self.best(all, within, confidence), true);
            }
            let (times, energies) = (self.times, self.energies);
            let (unbeaten, is_complete) = unbeaten_placements(times, energies, self.all_cpu);
            // One that another beats by estimates may have the narrower interval.
            let is_proof = is_complete && confidence.is_none();
            (
                self.best(unbeaten.into_iter(), within, confidence),
                is_proof,
            )
        };
        let (by_estimates, is_proof) = of(None);
        let by_estimates = by_estimates?;
        let least = |placement, keeps_limit, is_optimum| {
            Some(Least {
                placement,
                keeps_limit,
                is_optimum,
            })
        };
        if confidence.is_none() {
            return least(by_estimates, true, is_proof);
        }
        match of(confidence) {
            (None, _) => least(by_estimates, false, is_proof),
            (Some(surely), is_surest) => {
                // Whatever keeps the limit surely keeps it by estimates.
                let bound = self.energies.total(&by_estimates);
                let is_least = is_proof && self.energies.total(&surely) == bound;
                least(surely, true, is_surest || is_least)
            }
        }
    }

    /// The one that draws least of those of these that are possible and in time: of equal ones the fastest, and of those the first
    /// in an arbitrary fixed order.
    fn best(
        &self,
        placements: impl Iterator<Item = PackedPlacement>,
        within: i64,
        confidence: Option<Confidence>,
    ) -> Option<PackedPlacement> {
        let mut best: Option<((i64, i64), PackedPlacement)> = None;
        for placement in placements {
            let energy = self.energies.total(&placement);
            if best.is_some_and(|((least, _), _)| energy > least) {
                continue;
            }
            let time = self.times.total(&placement);
            let found = ((energy, time), placement);
            let is_better = time <= within && best.is_none_or(|best| found < best);
            if is_better
                && self.times.allows(&placement)
                && confidence.is_none_or(|sure| self.times.longest(&placement, sure) <= within)
            {
                best = Some(found);
            }
        }
        best.map(|(_, placement)| placement)
    }
}

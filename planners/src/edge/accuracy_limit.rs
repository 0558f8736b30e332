//! How accurate a split must be: what the tables of a phone's placements say of the placement in which layers on the server
//! count as computed by the phone's reference CPU.

use layerlab_profiles::Placement;

use crate::confidence::Confidence;
use crate::goal::{Goal, GoalError};
use crate::placement::PackedPlacement;
use crate::problem::{PredictedAccuracy, Problem};

/// The most placements all of whose accuracies are predicted; a million take seconds.
const MOST_PLACEMENTS: u64 = 1 << 20;

/// Placements whose accuracies are predicted in one call.
const BATCH: usize = 4096;

/// What stands for the accuracy of a placement that is not possible: less than any.
const IMPOSSIBLE: f64 = -1.0;

/// The accuracy that splits must have at least, with the confidence that plans of a [`Problem`] are to have.
pub struct AccuracyLimit<'a> {
    accuracies: &'a Problem,
    digits: Vec<u8>,
    at_least: f64,
    every: Option<EveryAccuracy>,
}

impl AccuracyLimit<'_> {
    /// The limit of placements of these digits, 0 among them. Where there are no more than a million such placements, the
    /// accuracies of all are predicted, so that plans are the best there are.
    ///
    /// # Errors
    /// An accuracy that is no fraction.
    pub fn new<'a>(
        accuracies: &'a Problem,
        digits: &[u8],
        at_least: f64,
    ) -> Result<AccuracyLimit<'a>, GoalError> {
        let mut limit = AccuracyLimit::without_all(accuracies, digits, at_least)?;
        let all = (limit.digits.len() as u64).checked_pow(accuracies.layers() as u32);
        if all.is_some_and(|all| all <= MOST_PLACEMENTS) {
            limit.every = Some(EveryAccuracy::of(&limit));
        }
        Ok(limit)
    }

    /// The same where plans are searched for, even where all placements could be tried: there it can be seen what the search
    /// is worth.
    ///
    /// # Errors
    /// An accuracy that is no fraction.
    pub fn without_all<'a>(
        accuracies: &'a Problem,
        digits: &[u8],
        at_least: f64,
    ) -> Result<AccuracyLimit<'a>, GoalError> {
        // What the model has is no matter here: a limit above it is one that nothing keeps.
        Goal::MinTime { at_least }.refuse_unless_sensible(1.0)?;
        let mut digits = digits.to_vec();
        digits.push(0);
        digits.retain(|&digit| usize::from(digit) < accuracies.processors());
        digits.sort_unstable();
        digits.dedup();
        Ok(AccuracyLimit {
            accuracies,
            digits,
            at_least,
            every: None,
        })
    }

    /// The accuracy that is required, a fraction.
    pub fn at_least(&self) -> f64 {
        self.at_least
    }

    /// With which confidence it is to be kept; nothing where estimates decide.
    pub fn confidence(&self) -> Option<Confidence> {
        self.accuracies.confidence()
    }

    /// The digits that layers may have, 0 first.
    pub(super) fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// What A(L) comes from.
    pub(super) fn accuracies(&self) -> &Problem {
        self.accuracies
    }

    /// The accuracies of all placements, if there are few.
    pub(super) fn every(&self) -> Option<&EveryAccuracy> {
        self.every.as_ref()
    }

    /// A(L) of a placement.
    pub(super) fn accuracy(&self, placement: &Placement) -> Option<PredictedAccuracy> {
        let placement = PackedPlacement::of(placement).ok()?;
        self.accuracies.accuracies(&[placement]).pop()
    }

    /// The accuracy that each placement has at least; [`IMPOSSIBLE`] where a processor cannot run it, or its memory does not
    /// hold it.
    pub(super) fn least(&self, placements: &[PackedPlacement]) -> Vec<f64> {
        let accuracies = self.accuracies.accuracies(placements);
        let least = placements.iter().zip(accuracies).map(|(one, accuracy)| {
            match self.accuracies.times().allows(one) {
                true => self.accuracies.least_accuracy(&accuracy),
                false => IMPOSSIBLE,
            }
        });
        least.collect()
    }
}

/// The least accuracy of every placement, in the order of their digits, those of layer 1 first.
pub(super) struct EveryAccuracy {
    base: usize,
    all_cpu: PackedPlacement,
    least: Vec<f64>,
}

impl EveryAccuracy {
    fn of(limit: &AccuracyLimit) -> EveryAccuracy {
        let (base, layers) = (limit.digits.len(), limit.accuracies.layers());
        let all_cpu = limit.accuracies.all_cpu().placement;
        let placement = |place: usize| {
            let (mut rest, mut placement) = (place, all_cpu);
            for index in (0..layers).rev() {
                placement = placement.placed(index, limit.digits[rest % base].into());
                rest /= base;
            }
            placement
        };
        let count = base.pow(layers as u32);
        let mut least = Vec::with_capacity(count);
        for begin in (0..count).step_by(BATCH) {
            let batch = (begin..count.min(begin + BATCH)).map(placement);
            least.extend(limit.least(&batch.collect::<Vec<_>>()));
        }
        EveryAccuracy {
            base,
            all_cpu,
            least,
        }
    }

    /// All layers on the phone's reference CPU.
    pub(super) fn all_cpu(&self) -> PackedPlacement {
        self.all_cpu
    }

    /// The accuracies that placements have at least, each once, ascending.
    pub(super) fn values(&self) -> Vec<f64> {
        let mut values = self.least.clone();
        values.retain(|&least| least > IMPOSSIBLE);
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        values
    }

    /// Which placements have so much accuracy.
    pub(super) fn kept(&self, at_least: f64) -> KeptPlacements {
        let mut before = Vec::with_capacity(self.least.len() + 1);
        let mut count = 0;
        before.push(count);
        for &least in &self.least {
            count += u32::from(least >= at_least);
            before.push(count);
        }
        KeptPlacements {
            base: self.base,
            layers: self.all_cpu.layers(),
            before,
        }
    }
}

/// The placements that are accurate enough.
pub(super) struct KeptPlacements {
    base: usize,
    layers: usize,
    /// How many there are before each placement, and in all.
    before: Vec<u32>,
}

impl KeptPlacements {
    /// Whether one of them begins with these digits: `begin` has them, by their places, as a number.
    pub(super) fn has_any(&self, begin: usize, layers: usize) -> bool {
        let rest = self.base.pow((self.layers - layers) as u32);
        self.before[begin * rest] < self.before[(begin + 1) * rest]
    }
}

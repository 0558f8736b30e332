//! What a gate could have found: how much worse a number must be to be named nineteen times in twenty, and how much longer
//! must be measured to find less than that.

use std::collections::BTreeMap;

use super::{GateResult, Gated, GatedNumber};
use crate::derive::graph::{ErrorVariance, normal_quantile, upper_t_quantile};
use crate::document::Profile;
use crate::units::Nanos;

/// How often what is told to be found is to be found.
pub const POWER: f64 = 0.95;

/// By how many standard deviations beyond what is tolerated a number must be worse to be named with the power, where the
/// test has the level and the error is known from so many differences (the noncentral t, by Abramowitz and Stegun 26.7.10).
pub(super) fn deviations_to_find(level: f64, freedom: f64) -> f64 {
    let freedom = freedom.max(1.0);
    let critical = upper_t_quantile(level, freedom);
    let spread = (1.0 + critical * critical / (2.0 * freedom)).sqrt();
    critical * (1.0 - 1.0 / (4.0 * freedom)) + normal_quantile(POWER) * spread
}

impl Gated {
    /// By how much it must be worse, all in all, to be named with the power. The level is that of the first of Holm's
    /// steps: of more than one number that is worse, the others are found more easily.
    fn detectable_at(&self, level: f64) -> f64 {
        let beyond =
            |error: ErrorVariance| deviations_to_find(level, error.freedom) * error.variance.sqrt();
        let between = self.between.map_or(0.0, beyond);
        self.tolerated + between.max(beyond(self.error()))
    }

    /// The error of the difference that is tested, by the samples.
    pub(super) fn error(&self) -> ErrorVariance {
        let [one, other] = self.errors;
        ErrorVariance::of_difference(one, other)
    }
}

/// Tells every number how much worse it must be to be named.
pub(super) fn tell_detectable(numbers: &mut [Gated], alpha: f64) {
    let level = alpha / numbers.len().max(1) as f64;
    for gated in numbers {
        gated.detectable = gated.detectable_at(level);
    }
}

/// What a gate sees of the times on one processor, and what it takes to see more: where there are several good profiles, as far
/// as samples limit it, for what runs differ by is the same however long they are.
#[derive(Clone, Debug, PartialEq)]
pub struct GateSight {
    /// The processor, by its name.
    pub processor: String,
    /// By how much the whole model must be slower to be named with the power, as a share.
    pub whole: Option<f64>,
    /// By how much layers must be: the least and the most of all, each as a share of the layer, or of an average layer where
    /// that takes longer.
    pub layers: Option<(f64, f64)>,
    /// The same of cuts.
    pub cuts: Option<(f64, f64)>,
    /// How many times as long both profiles must be measured for the wanted to be seen of each of these.
    pub both_longer: f64,
    /// How many times as long the second must be, if the first stays as it is; nothing where the first is too uncertain.
    pub second_longer: Option<f64>,
    /// How much longer that is of the second profile: as much device time as its samples, gaps and loads took, so many times.
    pub more_time: Nanos,
}

impl GateResult {
    /// What the gate sees on each processor of the two profiles' times, and how much longer must be measured for it to see
    /// what is worse by the share `wanted` beyond the tolerated.
    pub fn sight(&self, second: &Profile, wanted: f64) -> Vec<GateSight> {
        let mut of_processors: BTreeMap<usize, Vec<&Gated>> = BTreeMap::new();
        for gated in &self.numbers {
            if let Some(place) = place(gated, second) {
                of_processors.entry(place).or_default().push(gated);
            }
        }
        let level = self.settings.alpha / self.numbers.len().max(1) as f64;
        let sight = |(place, numbers): (usize, Vec<&Gated>)| {
            let processor = &second.header.processors[place].name;
            sight(processor, &numbers, level, wanted, second)
        };
        of_processors.into_iter().map(sight).collect()
    }
}

/// The place of the processor that a time is of.
fn place(gated: &Gated, profile: &Profile) -> Option<usize> {
    let name = match &gated.number {
        GatedNumber::Layer { processor, .. }
        | GatedNumber::Cut { processor, .. }
        | GatedNumber::Whole { processor } => processor,
        GatedNumber::Energy { .. } | GatedNumber::Accuracy { .. } => return None,
    };
    let mut processors = profile.header.processors.iter();
    processors.position(|processor| processor.name == *name)
}

fn sight(
    processor: &str,
    numbers: &[&Gated],
    level: f64,
    wanted: f64,
    second: &Profile,
) -> GateSight {
    let is_whole = |gated: &&&Gated| matches!(gated.number, GatedNumber::Whole { .. });
    let whole = numbers.iter().find(is_whole);
    let layers = || {
        let layers = numbers.iter();
        layers.filter(|gated| matches!(gated.number, GatedNumber::Layer { .. }))
    };
    // Where no whole is known, the layers that are.
    let all = whole.map_or_else(
        || layers().map(|gated| gated.one.max(0.0)).sum(),
        |whole| whole.one,
    );
    let average = all / layers().count().max(1) as f64;
    // As intervals are asked for when a profile is measured: of the number, or of an average layer.
    let scale = |gated: &Gated| gated.one.max(average).max(1.0);
    let range = |wanted: fn(&GatedNumber) -> bool| {
        let shares = numbers.iter().filter(|gated| wanted(&gated.number));
        let shares = shares.map(|gated| gated.detectable / scale(gated));
        shares.fold(None, |range: Option<(f64, f64)>, share| {
            let (least, most) = range.unwrap_or((share, share));
            Some((least.min(share), most.max(share)))
        })
    };
    let (mut both_longer, mut second_longer) = (0.0_f64, Some(0.0_f64));
    for gated in numbers {
        let deviations = deviations_to_find(level, gated.error().freedom);
        let wanted = (wanted * scale(gated) / deviations).powi(2);
        let [one, other] = gated.errors.map(|error| error.variance);
        both_longer = both_longer.max((one + other) / wanted);
        let left = wanted - one;
        second_longer = second_longer
            .filter(|_| left > 0.0)
            .map(|known| known.max(other / left));
    }
    let more = (both_longer - 1.0).max(0.0);
    let spent = device_time(second, processor).as_nanos() as f64;
    GateSight {
        processor: processor.to_owned(),
        whole: whole.map(|gated| gated.detectable / scale(gated)),
        layers: range(|number| matches!(number, GatedNumber::Layer { .. })),
        cuts: range(|number| matches!(number, GatedNumber::Cut { .. })),
        both_longer,
        second_longer,
        more_time: Nanos::from_nanos((more * spent) as u64),
    }
}

/// The device time that a processor's samples, the gaps before them and loads took.
fn device_time(profile: &Profile, processor: &str) -> Nanos {
    let mut measurements = profile.header.measurements.iter();
    let measurement = measurements.find(|one| one.processor == processor);
    let gap = measurement.map_or(Nanos::ZERO, |one| one.gap_ns);
    let samples = profile.samples.iter();
    let samples = samples.filter(|one| one.processor == processor);
    let loads = profile
        .loads
        .iter()
        .filter(|one| one.processor == processor);
    let nanos = |time: Nanos| u128::from(time.as_nanos());
    let all = samples
        .map(|one| nanos(one.duration) + nanos(gap))
        .sum::<u128>()
        + loads.map(|one| nanos(one.duration)).sum::<u128>();
    Nanos::from_nanos(u64::try_from(all).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The power of a t test by its definition: the chance that a normal value beside a chi-square one exceeds the limit,
    /// by a sum over the latter.
    fn power(deviations: f64, level: f64, freedom: f64) -> f64 {
        use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, Normal};
        let (chi, normal) = (ChiSquared::new(freedom), Normal::standard());
        let chi = chi.expect("a distribution");
        let critical = upper_t_quantile(level, freedom);
        const STEPS: u32 = 20_000;
        let most = freedom + 20.0 * (2.0 * freedom).sqrt();
        let step = most / f64::from(STEPS);
        let found = (0..STEPS).map(|k| {
            let square = (f64::from(k) + 0.5) * step;
            let limit = critical * (square / freedom).sqrt();
            chi.pdf(square) * step * normal.cdf(deviations - limit)
        });
        found.sum()
    }

    #[test]
    fn what_is_told_to_be_found_is_found_nineteen_times_in_twenty() {
        for freedom in [4.0, 8.0, 20.0, 100.0, 500.0] {
            for level in [0.01, 0.01 / 34.0] {
                let deviations = deviations_to_find(level, freedom);
                let power = power(deviations, level, freedom);
                assert!((power - POWER).abs() < 0.015, "{freedom}, {level}: {power}");
            }
        }
        // Of a normal error: 2.326 + 1.645.
        let normal = deviations_to_find(0.01, f64::INFINITY);
        assert!((normal - 3.971).abs() < 1e-2, "{normal}");
    }
}

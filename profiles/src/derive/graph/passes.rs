//! What passes over all layers take beyond their layers' robust times. A robust time leaves out what happens in few passes,
//! but with many layers something of that kind happens in nearly every one.

use std::collections::BTreeMap;

use super::location::median;
use super::visit_samples::{Visit, VisitSamples};
use crate::segment::Segment;
use crate::units::Nanos;

/// By how much passes are longer than their layers together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PassExcess {
    /// The mean over the visits of the logarithm of the ratio of both.
    pub(super) mean: f64,
    /// The variance of that mean, by how visits differ.
    pub(super) variance: f64,
    /// From how many independent differences the variance is known.
    pub(super) freedom: f64,
}

/// The median of what the passes of each visit take, in ns. A pass is the samples of the same rank of all layers; a visit in
/// which some layer lacks samples is left out.
pub fn pass_times(samples: &VisitSamples) -> BTreeMap<Visit, f64> {
    let mut by_visit: BTreeMap<Visit, Vec<&[Nanos]>> = BTreeMap::new();
    for visits in samples.segments.values() {
        for (&visit, durations) in visits {
            by_visit.entry(visit).or_default().push(durations);
        }
    }
    let layers = samples.segments.len();
    let whole = by_visit.into_iter().filter_map(|(visit, of_layers)| {
        let passes = of_layers.first()?.len();
        let is_whole =
            of_layers.len() == layers && of_layers.iter().all(|times| times.len() == passes);
        let pass = |pass: usize| -> f64 {
            let durations = of_layers.iter().map(|times| times[pass].as_nanos() as f64);
            durations.sum()
        };
        let totals: Vec<f64> = is_whole.then(|| (0..passes).map(pass).collect())?;
        Some((visit, median(&totals)?))
    });
    whole.collect()
}

impl PassExcess {
    /// That of visits in which the layers took so long, each by itself.
    pub(super) fn of(
        samples: &VisitSamples,
        layers: &BTreeMap<Visit, BTreeMap<Segment, f64>>,
    ) -> PassExcess {
        let passes = pass_times(samples);
        let ratios = passes.iter().filter_map(|(visit, pass)| {
            let parts: f64 = layers.get(visit)?.values().sum();
            let ratio = (pass / parts).ln();
            ratio.is_finite().then_some(ratio)
        });
        let ratios: Vec<f64> = ratios.collect();
        let count = ratios.len() as f64;
        if count < 1.0 {
            return PassExcess::default();
        }
        let mean = ratios.iter().sum::<f64>() / count;
        let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        let freedom = (count - 1.0).max(1.0);
        PassExcess {
            mean,
            variance: squares / freedom / count,
            freedom,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(visits: &[[&[u64]; 2]]) -> VisitSamples {
        let mut samples = VisitSamples::default();
        for (block, layers) in (0..).zip(visits) {
            let visit = Visit { order: 1, block };
            for (layer, times) in (1..).zip(layers) {
                for &time in *times {
                    samples.push(Segment::single(layer), visit, Nanos::from_nanos(time));
                }
            }
        }
        samples
    }

    #[test]
    fn a_pass_is_the_samples_of_one_rank() {
        let times = pass_times(&samples(&[[&[10, 20, 90], &[5, 80, 6]]]));
        let of_visit: Vec<f64> = times.into_values().collect();
        assert_eq!(of_visit, [96.0], "of 15, 96 and 100");
    }

    #[test]
    fn a_visit_in_which_a_layer_lacks_samples_says_nothing() {
        assert!(pass_times(&samples(&[[&[10, 20], &[5]]])).is_empty());
        let lacking = samples(&[[&[10], &[5]], [&[10], &[]]]);
        assert_eq!(pass_times(&lacking).len(), 1);
    }

    #[test]
    fn the_excess_is_the_mean_of_visits_and_its_variance_theirs() {
        let samples = samples(&[[&[60], &[50]], [&[60], &[61]]]);
        let layers = [50.0, 60.0].map(|time| BTreeMap::from([(Segment::single(1), 2.0 * time)]));
        let visits = (0..).map(|block| Visit { order: 1, block });
        let excess = PassExcess::of(&samples, &visits.zip(layers).collect());
        let ratios = [(110.0_f64 / 100.0).ln(), (121.0_f64 / 120.0).ln()];
        assert!((excess.mean - (ratios[0] + ratios[1]) / 2.0).abs() < 1e-12);
        let variance = (ratios[0] - ratios[1]).powi(2) / 4.0;
        assert!((excess.variance - variance).abs() < 1e-12, "{excess:?}");
        assert_eq!(excess.freedom, 1.0);
    }
}

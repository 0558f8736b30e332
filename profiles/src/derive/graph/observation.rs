//! What the samples of each segment say, judged by the noise of all segments together.

use std::collections::BTreeMap;

use super::location::{Location, MAD_TO_SIGMA, biweight, median};
use super::moderation::Prior;
use super::noise::{NoiseModel, Scatter};
use crate::segment::Segment;
use crate::units::Nanos;

/// The time of one segment, and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// The segment that was timed.
    pub segment: Segment,
    /// Its time, in ns.
    pub time_ns: f64,
    /// The variance of one undisturbed sample, in units of what the noise model expects: about 1.
    pub excess_variance: f64,
    /// How many undisturbed samples the time is worth.
    pub count: f64,
    /// From how many independent differences the variance is known.
    pub freedom: f64,
}

/// The times of all measured segments of one processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    /// How samples scatter.
    pub noise: NoiseModel,
    /// Whether they scatter at all: false when no segment has two samples, so that no number has an
    /// interval.
    pub has_spread: bool,
    /// One for each segment, ascending.
    pub segments: Vec<Observation>,
}

impl Observations {
    /// The variance of a segment's time in ns², for a segment that really takes `time_ns`.
    pub(super) fn variance(&self, observation: &Observation, time_ns: f64) -> f64 {
        let deviation = self.noise.standard_deviation_ns(time_ns);
        deviation * deviation * observation.excess_variance / observation.count
    }
}

/// The robust time of each segment; segments without samples are left out.
///
/// Noise is first taken from medians and median deviations, then again from what the biweight keeps.
pub fn observe(samples: &BTreeMap<Segment, Vec<Nanos>>) -> Observations {
    let samples: Vec<(Segment, Vec<f64>)> = samples
        .iter()
        .filter(|(_, durations)| !durations.is_empty())
        .map(|(&segment, durations)| {
            let times = durations
                .iter()
                .map(|time| time.as_nanos() as f64)
                .collect();
            (segment, times)
        })
        .collect();
    let rough: Vec<Scatter> = samples
        .iter()
        .filter_map(|(_, times)| rough_scatter(times))
        .collect();
    let noise = NoiseModel::fit(&rough);
    let fine: Vec<Scatter> = samples
        .iter()
        .filter_map(|(_, times)| fine_scatter(noise, &locate(noise, times)?))
        .collect();
    let noise = NoiseModel::fit(&fine);
    let located: Vec<(Segment, Location)> = samples
        .iter()
        .filter_map(|(segment, times)| Some((*segment, locate(noise, times)?)))
        .collect();
    let variances: Vec<(f64, f64)> = located.iter().map(|(_, location)| own(location)).collect();
    let prior = Prior::of(&variances);
    let segments = located
        .iter()
        .map(|&(segment, location)| {
            let (variance, freedom) = own(&location);
            let (excess_variance, freedom) =
                prior.map_or((1.0, 0.0), |prior| prior.moderate(variance, freedom));
            Observation {
                segment,
                time_ns: noise.time_at(location.place),
                // Samples that agree to the nanosecond are still only known to the nanosecond.
                excess_variance: excess_variance.max(rounding_share(noise, &location)),
                count: location.count,
                freedom,
            }
        })
        .collect();
    Observations {
        noise,
        has_spread: prior.is_some(),
        segments,
    }
}

fn rough_scatter(times: &[f64]) -> Option<Scatter> {
    let time_ns = median(times)?;
    let distances: Vec<f64> = times.iter().map(|time| (time - time_ns).abs()).collect();
    Some(Scatter {
        time_ns,
        variance: (MAD_TO_SIGMA * median(&distances)?).powi(2),
        freedom: times.len() as f64 - 1.0,
    })
}

fn fine_scatter(noise: NoiseModel, location: &Location) -> Option<Scatter> {
    let time_ns = noise.time_at(location.place);
    Some(Scatter {
        time_ns,
        variance: location.variance? * noise.standard_deviation_ns(time_ns).powi(2),
        freedom: location.count - 1.0,
    })
}

fn locate(noise: NoiseModel, times: &[f64]) -> Option<Location> {
    let places: Vec<f64> = times.iter().map(|&time| noise.even_scale(time)).collect();
    biweight(&places)
}

/// A segment's own variance and its degrees of freedom.
fn own(location: &Location) -> (f64, f64) {
    match location.variance {
        Some(variance) => (variance, location.count - 1.0),
        None => (0.0, 0.0),
    }
}

/// The clock's rounding as a share of the variance that the noise model expects.
fn rounding_share(noise: NoiseModel, location: &Location) -> f64 {
    let expected = noise.standard_deviation_ns(noise.time_at(location.place));
    (super::noise::ROUNDING_NS / expected).powi(2)
}

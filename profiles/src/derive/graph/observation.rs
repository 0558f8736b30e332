//! What the samples of each segment say, judged by the noise of all segments together.

use std::collections::BTreeMap;

use super::location::{Location, MAD_TO_SIGMA, biweight, median};
use super::moderation::Prior;
use super::noise::{NoiseModel, Scatter};
use super::quantile::t_95;
use crate::segment::Segment;
use crate::shortcuts::Shortcuts;
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
    /// In how many visits it was timed; 1 where samples were not told apart by visits.
    pub visits: usize,
    /// The relative variance of the time that comes from its visits: what loading it differently each time does, and
    /// what the speeds of its visits do beyond what all segments have in common.
    pub visit_variance: f64,
    /// What is known of the error of the median of all its samples, but for what all medians have in common; `None`
    /// where samples were not told apart by visits.
    pub median: Option<ErrorVariance>,
}

/// A variance, and how well it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorVariance {
    /// The variance, in ns² or, of something relative, in squares of shares.
    pub variance: f64,
    /// From how many independent differences it is known.
    pub freedom: f64,
}

/// The difference of two segments of which one has one layer more than the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NeighbourDifference {
    pub(crate) longer: Segment,
    pub(crate) shorter: Segment,
    /// By how much longer the one takes at the average speed of visits, in ns.
    pub(crate) value_ns: f64,
    /// What is known of its error from the spread of visits, but for what all times have in common.
    pub(crate) error: ErrorVariance,
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
    /// How visits differ from one another.
    pub visits: VisitSpread,
    /// Segments that differ by one layer, in the order of the longer ones.
    pub(crate) neighbours: Vec<NeighbourDifference>,
    /// What passes through segments.
    pub shortcuts: Shortcuts,
}

/// How visits differ: a visit is one loading of a set of segments and the samples taken until they are unloaded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VisitSpread {
    /// How many visits the segment with the most of them had; 0 where samples were not told apart by visits.
    pub count: usize,
    /// The relative variance between loadings of one segment at one speed.
    pub load_variance: f64,
    /// The relative variance of the speed that all segments of a visit have in common.
    pub speed_variance: f64,
    /// The relative error that all segments' times have in common: that the visits of the run were faster or slower
    /// than visits are on average. Segments that no chain of visits connects do not have it in common.
    pub of_times: ErrorVariance,
    /// The same of the medians of all samples, from which the speeds of visits are not taken out.
    pub of_medians: ErrorVariance,
}

impl ErrorVariance {
    /// Half the width of the 95 % interval of a number with this error.
    pub fn half_width(self) -> f64 {
        t_95(self.freedom.max(1.0)) * self.variance.sqrt()
    }

    /// The error of a multiple.
    pub(crate) fn times(self, factor: f64) -> ErrorVariance {
        ErrorVariance {
            variance: factor * factor * self.variance,
            ..self
        }
    }

    /// The error of a difference of two numbers that nothing connects, such as those of two profiles: of what is known of
    /// both, more is known than of either (Welch 1947).
    pub(crate) fn of_difference(one: ErrorVariance, other: ErrorVariance) -> ErrorVariance {
        let variance = one.variance + other.variance;
        let square = |part: ErrorVariance| part.variance * part.variance / part.freedom.max(1.0);
        let squares = square(one) + square(other);
        ErrorVariance {
            variance,
            freedom: match squares > 0.0 {
                true => variance * variance / squares,
                false => one.freedom.max(other.freedom),
            },
        }
    }

    /// The sum of independent errors' variances, with its degrees of freedom (Satterthwaite 1946).
    pub(crate) fn sum(parts: impl IntoIterator<Item = ErrorVariance>) -> ErrorVariance {
        let (mut variance, mut squares, mut most) = (0.0, 0.0, 0.0_f64);
        for part in parts {
            variance += part.variance;
            most = most.max(part.freedom);
            if part.variance > 0.0 {
                squares += part.variance * part.variance / part.freedom.max(f64::MIN_POSITIVE);
            }
        }
        let freedom = match squares > 0.0 {
            true => (variance * variance / squares).min(most),
            false => most,
        };
        ErrorVariance { variance, freedom }
    }
}

impl Observations {
    /// The variance in ns² that one more visit with so many samples of a segment that takes `time_ns` would have, apart
    /// from what is common to all segments of a visit.
    pub fn visit_variance(&self, time_ns: f64, samples: u64) -> f64 {
        let inference = self.noise.standard_deviation_ns(time_ns).powi(2) / samples.max(1) as f64;
        inference + self.visits.load_variance * time_ns * time_ns
    }

    /// The relative variance that is common to all segments of a visit.
    pub fn speed_variance(&self) -> f64 {
        self.visits.speed_variance
    }

    /// How many visits the segment with the most of them had; 0 where samples were not told apart by visits.
    pub fn visits(&self) -> usize {
        self.visits.count
    }

    /// The variance of a segment's time in ns², for a segment that really takes `time_ns`.
    pub(super) fn variance(&self, observation: &Observation, time_ns: f64) -> f64 {
        let deviation = self.noise.standard_deviation_ns(time_ns);
        deviation * deviation * observation.excess_variance / observation.count
            + observation.visit_variance * time_ns * time_ns
    }

    /// The observation of a segment.
    pub fn of(&self, segment: Segment) -> Option<&Observation> {
        let place = self
            .segments
            .binary_search_by_key(&segment, |one| one.segment);
        place.ok().map(|place| &self.segments[place])
    }

    /// The 95 % interval of the median of all samples of a segment, which is `median`; `None` where visits do not give it.
    pub fn of_median(&self, segment: Segment, median: Nanos) -> Option<(Nanos, Nanos)> {
        let value_ns = median.as_nanos() as f64;
        let half_width = self.error_of_median(segment, value_ns)?.half_width();
        Some((
            Nanos::from_nanos((value_ns - half_width).floor().max(0.0) as u64),
            Nanos::from_nanos((value_ns + half_width).ceil() as u64),
        ))
    }

    /// The error of the median of all samples of a segment, which is `value_ns`; `None` where visits do not give it.
    pub(crate) fn error_of_median(&self, segment: Segment, value_ns: f64) -> Option<ErrorVariance> {
        let own = self.of(segment)?.median?;
        Some(ErrorVariance::sum([own, self.shared_by_medians(value_ns)]))
    }

    /// The error of the sum of the medians of these segments, given each with its median in ns; `None` where visits do not
    /// give it.
    pub(crate) fn error_of_medians(&self, medians: &[(Segment, f64)]) -> Option<ErrorVariance> {
        let own = |&(segment, _): &(Segment, f64)| self.of(segment)?.median;
        let own: Vec<ErrorVariance> = medians.iter().map(own).collect::<Option<_>>()?;
        let sum: f64 = medians.iter().map(|(_, value_ns)| value_ns).sum();
        let shared = self.shared_by_medians(sum);
        Some(ErrorVariance::sum(own.into_iter().chain([shared])))
    }

    /// The robust time of a segment in ns, and its error but for what all times have in common; `None` of one that was not
    /// timed.
    pub(crate) fn own_error(&self, segment: Segment) -> Option<(f64, ErrorVariance)> {
        let observation = self.of(segment)?;
        let error = ErrorVariance {
            variance: self.variance(observation, observation.time_ns),
            freedom: observation.freedom,
        };
        Some((observation.time_ns, error))
    }

    /// By how much longer a segment takes than the same without its first or last layer, where enough visits timed both.
    pub(crate) fn difference(
        &self,
        longer: Segment,
        shorter: Segment,
    ) -> Option<&NeighbourDifference> {
        let from = self.neighbours.partition_point(|one| one.longer < longer);
        let of_longer = self.neighbours[from..]
            .iter()
            .take_while(|one| one.longer == longer);
        of_longer.into_iter().find(|one| one.shorter == shorter)
    }

    /// What a number derived from robust times errs because all of them err together: in proportion to itself, in ns².
    pub(crate) fn shared_by_times(&self, value_ns: f64) -> ErrorVariance {
        let of_times = self.visits.of_times;
        ErrorVariance {
            variance: of_times.variance * value_ns * value_ns,
            ..of_times
        }
    }

    /// What a number derived from medians errs because all of them err together: in proportion to itself, in ns².
    fn shared_by_medians(&self, value_ns: f64) -> ErrorVariance {
        let of_medians = self.visits.of_medians;
        ErrorVariance {
            variance: of_medians.variance * value_ns * value_ns,
            ..of_medians
        }
    }

    /// Those of the segments within a stretch, as of a model of its own.
    pub fn within(&self, stretch: Segment) -> Observations {
        let segments = self.segments.iter().filter_map(|observation| {
            Some(Observation {
                segment: observation.segment.numbered_from(stretch)?,
                ..*observation
            })
        });
        let neighbours = self.neighbours.iter().filter_map(|difference| {
            Some(NeighbourDifference {
                longer: difference.longer.numbered_from(stretch)?,
                shorter: difference.shorter.numbered_from(stretch)?,
                ..*difference
            })
        });
        Observations {
            noise: self.noise,
            has_spread: self.has_spread,
            segments: segments.collect(),
            visits: self.visits,
            neighbours: neighbours.collect(),
            shortcuts: self.shortcuts.within(stretch),
        }
    }

    /// The same of a model with these shortcuts.
    pub fn with_shortcuts(self, shortcuts: Shortcuts) -> Observations {
        Observations { shortcuts, ..self }
    }

    /// The variance by which an observation is weighed, were its true time `time_ns`. Without any spread to
    /// go by, noise is taken to be proportional, which is what it mostly is.
    pub(super) fn weighable(&self, observation: &Observation, time_ns: f64) -> f64 {
        if self.has_spread {
            self.variance(observation, time_ns)
        } else {
            (0.01 * time_ns).powi(2).max(1.0) / observation.count
        }
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
                excess_variance: excess_variance.max(rounding_share(noise, location.place)),
                count: location.count,
                freedom,
                visits: 1,
                visit_variance: 0.0,
                median: None,
            }
        })
        .collect();
    Observations {
        noise,
        has_spread: prior.is_some(),
        segments,
        visits: VisitSpread::default(),
        neighbours: Vec::new(),
        shortcuts: Shortcuts::default(),
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
pub(super) fn rounding_share(noise: NoiseModel, place: f64) -> f64 {
    let expected = noise.standard_deviation_ns(noise.time_at(place));
    (super::noise::ROUNDING_NS / expected).powi(2)
}

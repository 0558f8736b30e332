//! What the samples of each segment say where it was loaded several times: samples of one visit agree with each other and
//! are wrong together, so that the spread between visits counts, too (Kalibera and Jones, ISMM 2013).
//!
//! Each segment has one robust time for each of its visits, from samples without what the speed of the moment adds to them;
//! the two-way analysis of these tells the speeds of visits from what single loadings do. docs/method.md §4 says it in words.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::FRAC_PI_2;

use super::cell::Cell;
use super::location::{Location, MAD_TO_SIGMA, biweight_near, median};
use super::moderation::Prior;
use super::moments::at_one_speed;
use super::neighbours::{TimesInVisits, differences};
use super::noise::{NoiseModel, Scatter};
use super::observation::{ErrorVariance, Observation, Observations, VisitSpread, rounding_share};
use super::passes::PassExcess;
use super::serial::of_dependent;
use super::two_way::{SegmentEffect, TwoWay};
use super::visit_samples::{FEWEST_VISITS, Visit, VisitSamples};
use crate::segment::Segment;
use crate::shortcuts::Shortcuts;
use crate::units::Nanos;

/// How many single samples the two ends of a visit are worth, of each of which the sentinel is the median of three: the
/// variance of that median is 0.4487 of a normal sample's.
const SENTINEL_COUNT: f64 = 2.0 / 0.4487;

/// The samples of one segment, visit by visit, in ns.
struct SegmentTimes {
    segment: Segment,
    visits: Vec<(usize, Vec<f64>)>,
    /// The median of all its samples.
    middle_ns: f64,
}

/// What the samples of one segment say visit by visit.
struct SegmentCells {
    cells: Vec<(usize, Location)>,
    /// The time in the middle of the cells', in ns.
    time_ns: f64,
    /// The variance of one undisturbed sample within a visit, and its degrees of freedom.
    within: (f64, f64),
}

/// The robust times of all segments in all visits, and what they say of both.
struct VisitAnalysis {
    visits: BTreeMap<Visit, usize>,
    times: Vec<SegmentTimes>,
    noise: NoiseModel,
    located: Vec<SegmentCells>,
    inferences: Vec<Inferences>,
    two_way: TwoWay,
}

impl VisitAnalysis {
    fn of(samples: &VisitSamples) -> VisitAnalysis {
        let visits = visits(samples);
        let times = segment_times(samples, &visits);
        let rough: Vec<Scatter> = times.iter().filter_map(rough_scatter).collect();
        let noise = NoiseModel::fit(&rough);
        let located = locate(noise, &times);
        let fine: Vec<Scatter> = located.iter().map(|cells| cells.scatter(noise)).collect();
        let noise = NoiseModel::fit(&fine);
        let located = locate(noise, &times);
        let within: Vec<(f64, f64)> = located.iter().map(|cells| cells.within).collect();
        let prior = Prior::of(&within);
        let inferences: Vec<Inferences> = located
            .iter()
            .map(|cells| Inferences::of(noise, prior.as_ref(), cells))
            .collect();
        let cells = cells(samples, &visits, noise, &located, &inferences);
        let rows = cells.iter().map(|cell| cell.segment + 1).max().unwrap_or(0);
        let two_way = TwoWay::of(&cells, rows, visits.len());
        VisitAnalysis {
            visits,
            times,
            noise,
            located,
            inferences,
            two_way,
        }
    }
}

/// The speed of each visit: the logarithm of how much slower than the average it was.
pub fn visit_speeds(samples: &VisitSamples) -> BTreeMap<Visit, f64> {
    let VisitAnalysis {
        visits, two_way, ..
    } = VisitAnalysis::of(samples);
    let speed = |(visit, place): (Visit, usize)| (visit, two_way.speeds[place]);
    visits.into_iter().map(speed).collect()
}

/// The robust time of each segment in each of its visits, in ns.
fn visit_times(analysis: &VisitAnalysis) -> BTreeMap<Visit, BTreeMap<Segment, f64>> {
    let mut by_visit: BTreeMap<Visit, BTreeMap<Segment, f64>> = BTreeMap::new();
    let names: Vec<Visit> = analysis.visits.keys().copied().collect();
    for (times, located) in analysis.times.iter().zip(&analysis.located) {
        for (visit, location) in &located.cells {
            let of_visit = by_visit.entry(names[*visit]).or_default();
            of_visit.insert(times.segment, analysis.noise.time_at(location.place));
        }
    }
    by_visit
}

/// The robust time of each segment in each of its visits without the speed of the visit.
fn times_at_average_speed(analysis: &VisitAnalysis) -> TimesInVisits {
    let segments = analysis.times.iter().zip(&analysis.located);
    segments
        .map(|(times, located)| {
            let in_visits = located.cells.iter().map(|&(visit, location)| {
                let time_ns = analysis.noise.time_at(location.place);
                (visit, time_ns * (-analysis.two_way.speeds[visit]).exp())
            });
            (times.segment, in_visits.collect())
        })
        .collect()
}

/// The robust time of each segment, with what is known of its error from the spread of visits. There are no intervals
/// where no segment was visited three times.
///
/// Medians are of the samples as they are, and so is what is known of them.
pub fn observe_visits(samples: &VisitSamples) -> Observations {
    let as_they_are = observations(VisitAnalysis::of(samples), of_dependent);
    let Some(steady) = at_one_speed(samples) else {
        return as_they_are;
    };
    let mut observations = observations(VisitAnalysis::of(&steady), of_dependent);
    for (observation, raw) in observations.segments.iter_mut().zip(&as_they_are.segments) {
        observation.median = raw.median;
    }
    observations.visits.of_medians = as_they_are.visits.of_medians;
    observations
}

/// Likewise of probes, of which each visit has one. Visits in a row are of probes that differ, so that their speeds do not say
/// whether they depend on each other.
pub fn observe_probes(samples: &VisitSamples) -> Observations {
    observations(VisitAnalysis::of(samples), |_, error| error)
}

/// Likewise of layers that were timed in passes over all of them: their times add up to the passes. What visits differ by counts
/// `run_inflation` times, 1 where the visits of one run differ as much as those of several.
pub fn observe_passes(samples: &VisitSamples, run_inflation: f64) -> Observations {
    let analysis = VisitAnalysis::of(samples);
    let excess = PassExcess::of(samples, &visit_times(&analysis));
    let mut observations = observations(analysis, of_dependent);
    for observation in &mut observations.segments {
        observation.time_ns *= excess.mean.exp();
        observation.visit_variance *= run_inflation;
    }
    let mut of_times = observations.visits.of_times;
    of_times.variance *= run_inflation;
    let excess = ErrorVariance {
        variance: excess.variance,
        freedom: excess.freedom,
    };
    observations.visits.of_times = ErrorVariance::sum([of_times, excess]);
    observations
}

/// `of_mean` is given the speeds of the visits in the order of time, and the error of their mean were they independent.
fn observations(
    analysis: VisitAnalysis,
    of_mean: fn(&[f64], ErrorVariance) -> ErrorVariance,
) -> Observations {
    let neighbours = differences(&times_at_average_speed(&analysis), analysis.noise);
    let VisitAnalysis {
        visits,
        times,
        noise,
        located,
        inferences,
        two_way,
    } = analysis;
    let count = located.iter().map(|cells| cells.cells.len()).max();
    let count = count.unwrap_or(0);
    let has_spread = count >= FEWEST_VISITS && two_way.load_freedom > 0.0;
    let scatters: Vec<(f64, f64)> = two_way.segments[..located.len()]
        .iter()
        .map(|effect| (effect.scatter, effect.freedom))
        .collect();
    let prior = Prior::of(&scatters);
    let shares = Shares::of(&times, visits.len());
    let segment = |place: usize| {
        let (effect, inferences) = (two_way.segments[place], &inferences[place]);
        let scatter = moderated(prior.as_ref(), effect, &two_way);
        let time_ns = effect.value.exp();
        let visits = located[place].cells.len();
        let loads = of_loads(effect, inferences, scatter);
        let known = known(effect, inferences, loads);
        Observation {
            segment: times[place].segment,
            time_ns,
            excess_variance: inferences.excess,
            count: inferences.count,
            freedom: known.freedom,
            visits,
            visit_variance: (known.variance - inferences.variance).max(0.0),
            median: has_spread.then(|| {
                let of_one = ErrorVariance {
                    variance: loads.variance * visits as f64,
                    ..loads
                };
                let speed = two_way.speed_variance;
                inferences.of_median(time_ns, of_one, speed, &shares, place)
            }),
        }
    };
    let segments = (0..located.len()).map(segment).collect();
    // The places of visits are in the order of time.
    let common = |variance| {
        let freedom = two_way.speed_freedom.max(1.0);
        of_mean(&two_way.speeds, ErrorVariance { variance, freedom })
    };
    Observations {
        noise,
        has_spread,
        segments,
        visits: VisitSpread {
            count,
            load_variance: two_way.load_variance,
            speed_variance: two_way.speed_variance,
            of_times: common(two_way.common_variance),
            of_medians: common(two_way.speed_variance * shares.common),
        },
        neighbours,
        shortcuts: Shortcuts::default(),
    }
}

fn locate(noise: NoiseModel, times: &[SegmentTimes]) -> Vec<SegmentCells> {
    let all = times.iter();
    all.map(|times| SegmentCells::of(noise, times)).collect()
}

/// The visits, each with its place.
fn visits(samples: &VisitSamples) -> BTreeMap<Visit, usize> {
    let of_segments = samples.segments.values().flat_map(BTreeMap::keys);
    let visits: BTreeSet<Visit> = of_segments.copied().collect();
    visits.into_iter().zip(0..).collect()
}

fn segment_times(samples: &VisitSamples, visits: &BTreeMap<Visit, usize>) -> Vec<SegmentTimes> {
    let segments = samples.segments.iter();
    segments
        .filter_map(|(&segment, by_visit)| {
            let of_visits: Vec<(usize, Vec<f64>)> = by_visit
                .iter()
                .filter(|(_, durations)| !durations.is_empty())
                .map(|(visit, durations)| (visits[visit], durations.iter().map(nanos).collect()))
                .collect();
            let all: Vec<f64> = of_visits
                .iter()
                .flat_map(|(_, times)| times)
                .copied()
                .collect();
            Some(SegmentTimes {
                segment,
                middle_ns: median(&all)?,
                visits: of_visits,
            })
        })
        .collect()
}

fn nanos(time: &Nanos) -> f64 {
    // An inference that took no time has no logarithm; a clock of whole nanoseconds cannot tell it from half of one.
    (time.as_nanos() as f64).max(0.5)
}

/// How a segment's samples scatter around the medians of their visits.
fn rough_scatter(times: &SegmentTimes) -> Option<Scatter> {
    let mut distances = Vec::new();
    for (_, times) in times.visits.iter().filter(|(_, times)| times.len() > 1) {
        let middle = median(times)?;
        // Around a median of few samples they scatter less than around the truth.
        let widening = (times.len() as f64 / (times.len() as f64 - 1.0)).sqrt();
        distances.extend(times.iter().map(|time| widening * (time - middle).abs()));
    }
    let freedom = distances.len() as f64 - times.visits.len() as f64;
    Some(Scatter {
        time_ns: times.middle_ns,
        variance: (MAD_TO_SIGMA * median(&distances)?).powi(2),
        freedom: freedom.max(1.0),
    })
}

impl SegmentCells {
    fn of(noise: NoiseModel, times: &SegmentTimes) -> SegmentCells {
        let usual = noise.even_scale(times.middle_ns);
        let cells: Vec<(usize, Location)> = times
            .visits
            .iter()
            .filter_map(|(visit, times)| {
                let places: Vec<f64> = times.iter().map(|&time| noise.even_scale(time)).collect();
                Some((*visit, biweight_near(&places, usual)?))
            })
            .collect();
        let (mut squares, mut freedom) = (0.0, 0.0);
        for (_, location) in &cells {
            squares += location.variance.unwrap_or(0.0) * (location.count - 1.0);
            freedom += location.count - 1.0;
        }
        let places: Vec<f64> = cells.iter().map(|(_, location)| location.place).collect();
        SegmentCells {
            time_ns: noise.time_at(median(&places).unwrap_or(usual)),
            within: match freedom > 0.0 {
                true => (squares / freedom, freedom),
                false => (0.0, 0.0),
            },
            cells,
        }
    }

    fn scatter(&self, noise: NoiseModel) -> Scatter {
        let (variance, freedom) = self.within;
        Scatter {
            time_ns: self.time_ns,
            variance: variance * noise.standard_deviation_ns(self.time_ns).powi(2),
            freedom,
        }
    }
}

/// What the spread of inferences within visits says of one segment.
struct Inferences {
    /// The variance of one undisturbed sample, in units of what the noise model expects.
    excess: f64,
    /// The relative variance of one undisturbed sample.
    of_sample: f64,
    /// How many undisturbed samples there are.
    count: f64,
    /// The relative variance of the segment's time that inferences alone give it.
    variance: f64,
    freedom: f64,
}

impl Inferences {
    fn of(noise: NoiseModel, prior: Option<&Prior>, cells: &SegmentCells) -> Inferences {
        let (variance, freedom) = cells.within;
        let (excess, freedom) = match prior {
            Some(prior) => prior.moderate(variance, freedom),
            None => (1.0, 0.0),
        };
        let excess = excess.max(rounding_share(noise, noise.even_scale(cells.time_ns)));
        let deviation = noise.standard_deviation_ns(cells.time_ns) / cells.time_ns;
        let of_sample = deviation * deviation * excess;
        let count: f64 = cells.cells.iter().map(|(_, location)| location.count).sum();
        Inferences {
            excess,
            of_sample,
            count,
            variance: of_sample / count,
            freedom,
        }
    }

    /// The error of the median of all samples, apart from what all medians have in common. Against what visits do the
    /// median is as good as the mean of the visits where they differ little beside inferences, and as good as their
    /// median, worth 2/π of it, where they differ much.
    fn of_median(
        &self,
        time_ns: f64,
        load: ErrorVariance,
        speed: f64,
        shares: &Shares,
        place: usize,
    ) -> ErrorVariance {
        let between = load.variance + speed;
        let all = (between + self.of_sample).max(f64::MIN_POSITIVE);
        let loss = 1.0 + (FRAC_PI_2 - 1.0) * between / all;
        let visits = loss * (load.variance * shares.squares[place] + speed * shares.own[place]);
        let square = time_ns * time_ns;
        let visits = ErrorVariance {
            variance: visits * square,
            freedom: load.freedom,
        };
        let inferences = ErrorVariance {
            variance: FRAC_PI_2 * self.variance * square,
            freedom: match self.freedom > 0.0 {
                true => self.freedom,
                false => load.freedom,
            },
        };
        ErrorVariance::sum([visits, inferences])
    }
}

/// How each segment's samples are divided among the visits.
struct Shares {
    /// The sum of the squares of a segment's shares.
    squares: Vec<f64>,
    /// The sum of squares of the shares' means over all segments.
    common: f64,
    /// What a segment's shares have of squares beyond that.
    own: Vec<f64>,
}

impl Shares {
    fn of(times: &[SegmentTimes], visits: usize) -> Shares {
        let shares = |times: &SegmentTimes| -> Vec<(usize, f64)> {
            let all: usize = times.visits.iter().map(|(_, times)| times.len()).sum();
            let visits = times.visits.iter();
            visits
                .map(|(visit, times)| (*visit, times.len() as f64 / all as f64))
                .collect()
        };
        let mut mean = vec![0.0; visits];
        for (visit, share) in times.iter().flat_map(shares) {
            mean[visit] += share / times.len() as f64;
        }
        let common: f64 = mean.iter().map(|mean| mean * mean).sum();
        let of = |times: &SegmentTimes| -> f64 {
            shares(times).iter().map(|(_, share)| share * share).sum()
        };
        let squares: Vec<f64> = times.iter().map(of).collect();
        let own = squares
            .iter()
            .map(|squares| (squares - common).max(0.0))
            .collect();
        Shares {
            squares,
            common,
            own,
        }
    }
}

/// The cells of the two-way analysis: those of each segment, and the sentinel's as a row of its own. At the ends of a
/// visit the sentinel is timed several times in a row, which is not how its segment is timed in turn with others.
fn cells(
    samples: &VisitSamples,
    visits: &BTreeMap<Visit, usize>,
    noise: NoiseModel,
    located: &[SegmentCells],
    inferences: &[Inferences],
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (segment, (of_segment, inferences)) in located.iter().zip(inferences).enumerate() {
        cells.extend(of_segment.cells.iter().map(|(visit, location)| Cell {
            segment,
            visit: *visit,
            value: noise.time_at(location.place).ln(),
            inference: inferences.of_sample / location.count,
        }));
    }
    for (visit, ends) in &samples.sentinels {
        let Some(&visit) = visits.get(visit) else {
            continue;
        };
        let [before, after] = ends.each_ref().map(nanos);
        let time_ns = (before * after).sqrt();
        let deviation = noise.standard_deviation_ns(time_ns) / time_ns;
        cells.push(Cell {
            segment: located.len(),
            visit,
            value: time_ns.ln(),
            inference: deviation * deviation / SENTINEL_COUNT,
        });
    }
    cells
}

/// How far a segment's visits scatter in units of what is expected, moderated by how far all segments' do.
fn moderated(prior: Option<&Prior>, effect: SegmentEffect, two_way: &TwoWay) -> ErrorVariance {
    let (variance, freedom) = match prior {
        Some(prior) => prior.moderate(effect.scatter, effect.freedom),
        None => (1.0, two_way.load_freedom),
    };
    ErrorVariance { variance, freedom }
}

/// The relative variance that its loadings give a segment's time: what is known of loadings and inferences together, less
/// what inferences alone give it.
fn of_loads(
    effect: SegmentEffect,
    inferences: &Inferences,
    scatter: ErrorVariance,
) -> ErrorVariance {
    let both = scatter.variance / effect.weight;
    ErrorVariance {
        variance: (both - inferences.variance).max(0.0),
        ..scatter
    }
}

/// The relative variance of a segment's time: of its loadings, of its inferences, and of the speeds of just its visits.
fn known(effect: SegmentEffect, inferences: &Inferences, loads: ErrorVariance) -> ErrorVariance {
    let visits = ErrorVariance {
        variance: loads.variance + effect.own_speed_variance,
        ..loads
    };
    let inferences = ErrorVariance {
        variance: inferences.variance,
        // With one sample in each visit all that is known of inferences is in the spread of visits.
        freedom: match inferences.freedom > 0.0 {
            true => inferences.freedom,
            false => loads.freedom,
        },
    };
    ErrorVariance::sum([visits, inferences])
}

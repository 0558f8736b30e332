//! By how much longer a segment takes than the same without its first or its last layer, where visits timed both: what a visit
//! does to both alike goes out of their difference. Benchmarks are compared in pairs for the same reason.

use std::collections::BTreeMap;

use super::moderation::Prior;
use super::noise::{NoiseModel, ROUNDING_NS};
use super::observation::{ErrorVariance, NeighbourDifference};
use super::visit_samples::FEWEST_VISITS;
use crate::segment::Segment;

/// The robust times of each segment in its visits at the average speed, in ns, by the places of visits.
pub(super) type TimesInVisits = BTreeMap<Segment, BTreeMap<usize, f64>>;

/// The differences of all such segments that enough visits timed both, in the order of the longer ones.
///
/// How far the visits of one scatter is moderated by how far those of all do, in units of what inferences of the longer segment
/// do.
pub(super) fn differences(times: &TimesInVisits, noise: NoiseModel) -> Vec<NeighbourDifference> {
    let spreads: Vec<Spread> = times
        .iter()
        .flat_map(|(&longer, of_longer)| {
            shorter_by_one(longer).filter_map(move |shorter| {
                Spread::of((longer, of_longer), (shorter, times.get(&shorter)?), noise)
            })
        })
        .collect();
    let variances: Vec<(f64, f64)> = spreads.iter().map(Spread::variance).collect();
    let Some(prior) = Prior::of(&variances) else {
        return Vec::new();
    };
    let differences = spreads.iter().map(|spread| {
        let (variance, freedom) = spread.variance();
        let (variance, freedom) = prior.moderate(variance, freedom);
        let of_one = (variance * spread.unit).max(ROUNDING_NS * ROUNDING_NS);
        NeighbourDifference {
            longer: spread.longer,
            shorter: spread.shorter,
            value_ns: spread.mean,
            error: ErrorVariance {
                variance: of_one / spread.visits,
                freedom,
            },
        }
    });
    differences.collect()
}

/// A segment without its last and without its first layer.
fn shorter_by_one(segment: Segment) -> impl Iterator<Item = Segment> {
    let (first, last) = (segment.first(), segment.last());
    [(first, last - 1), (first + 1, last)]
        .into_iter()
        .filter_map(|(first, last)| Segment::new(first, last).ok())
}

/// The differences of two segments in the visits that timed both.
struct Spread {
    longer: Segment,
    shorter: Segment,
    visits: f64,
    mean: f64,
    /// The sum of the squares of what they differ from their mean by.
    squares: f64,
    /// The variance of an inference of the longer segment.
    unit: f64,
}

impl Spread {
    fn of(
        (longer, of_longer): (Segment, &BTreeMap<usize, f64>),
        (shorter, of_shorter): (Segment, &BTreeMap<usize, f64>),
        noise: NoiseModel,
    ) -> Option<Spread> {
        let both: Vec<(f64, f64)> = of_longer
            .iter()
            .filter_map(|(visit, &time)| Some((time, *of_shorter.get(visit)?)))
            .collect();
        if both.len() < FEWEST_VISITS {
            return None;
        }
        let visits = both.len() as f64;
        let mean = both.iter().map(|(one, other)| one - other).sum::<f64>() / visits;
        let squares = both
            .iter()
            .map(|(one, other)| (one - other - mean).powi(2))
            .sum();
        let time_ns = both.iter().map(|(one, _)| one).sum::<f64>() / visits;
        Some(Spread {
            longer,
            shorter,
            visits,
            mean,
            squares,
            unit: noise.standard_deviation_ns(time_ns).powi(2),
        })
    }

    /// The variance of the difference in one visit, in units, and its degrees of freedom.
    fn variance(&self) -> (f64, f64) {
        let freedom = self.visits - 1.0;
        (self.squares / freedom / self.unit, freedom)
    }
}

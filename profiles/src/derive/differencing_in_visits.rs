//! The papers' differencing of prefix and suffix times (mlmp §4.2.2) where samples are told apart by visits (docs/method.md §2):
//! their formulas, of robust times at the average speed of visits, with the difference of two prefixes or suffixes that differ by one
//! layer taken within the visits that timed both.

use super::graph::{DerivedNumber, ErrorVariance, LayerNumbers, Observations};
use super::{DifferencingError, LayerTime};
use crate::segment::Segment;

/// The times of layers 1..=`layers` from the observed segments, layer 1 first. Their intervals come from the spread of visits; there
/// are none where no segment has three.
///
/// With D(l) = S(l,n) - S(l+1,n) and E(l) = S(1,l) - S(1,l-1), the paper's t_p(l) is (D(l) + E(l)) / 2, where S of no layers is 0.
pub fn differencing_in_visits(
    layers: u32,
    observations: &Observations,
) -> Result<Vec<LayerTime>, DifferencingError> {
    if layers == 0 {
        return Err(DifferencingError::NoLayers);
    }
    let times = TimesOfVisits {
        layers,
        observations,
    };
    let mut numbers: Vec<LayerNumbers> = (1..=layers)
        .map(|layer| times.layer(layer))
        .collect::<Result<_, _>>()?;
    round_sums(numbers.iter_mut().map(|numbers| &mut numbers.compute));
    let numbers = numbers.iter();
    Ok(numbers.map(|numbers| numbers.layer_time(true)).collect())
}

/// Rounds numbers to whole nanoseconds so that the sum of any that follow each other is right to one.
fn round_sums<'a>(numbers: impl Iterator<Item = &'a mut DerivedNumber>) {
    let (mut exact_ns, mut rounded_ns) = (0.0_f64, 0.0_f64);
    for number in numbers {
        exact_ns += number.value_ns;
        number.value_ns = exact_ns.round() - rounded_ns;
        rounded_ns += number.value_ns;
    }
}

struct TimesOfVisits<'a> {
    layers: u32,
    observations: &'a Observations,
}

/// A time or a difference of times in ns, with its error but for what all times have in common.
struct Term {
    value_ns: f64,
    error: ErrorVariance,
}

impl TimesOfVisits<'_> {
    /// S(first,last).
    fn time(&self, first: u32, last: u32) -> Result<Term, DifferencingError> {
        let segment = segment(first, last)?;
        let known = self.observations.own_error(segment);
        let (value_ns, error) = known.ok_or(DifferencingError::Missing { segment })?;
        Ok(Term { value_ns, error })
    }

    /// S of the one less S of the other, which has one layer less: within visits, where enough of them timed both.
    fn difference(
        &self,
        longer: (u32, u32),
        shorter: (u32, u32),
    ) -> Result<Term, DifferencingError> {
        let segments = (segment(longer.0, longer.1)?, segment(shorter.0, shorter.1)?);
        if let Some(within) = self.observations.difference(segments.0, segments.1) {
            return Ok(Term {
                value_ns: within.value_ns,
                error: within.error,
            });
        }
        let (longer, shorter) = (
            self.time(longer.0, longer.1)?,
            self.time(shorter.0, shorter.1)?,
        );
        Ok(Term {
            value_ns: longer.value_ns - shorter.value_ns,
            error: ErrorVariance::sum([longer.error, shorter.error]),
        })
    }

    /// E(l) = S(1,l) - S(1,l-1).
    fn of_prefixes(&self, layer: u32) -> Result<Term, DifferencingError> {
        match layer {
            1 => self.time(1, 1),
            _ => self.difference((1, layer), (1, layer - 1)),
        }
    }

    /// D(l) = S(l,n) - S(l+1,n).
    fn of_suffixes(&self, layer: u32) -> Result<Term, DifferencingError> {
        match layer {
            last if last == self.layers => self.time(last, last),
            _ => self.difference((layer, self.layers), (layer + 1, self.layers)),
        }
    }

    /// t_d(l) = (S(1,l-1) + S(l,n) - S(1,n)) / 2.
    fn transfer_into(&self, layer: u32) -> Result<DerivedNumber, DifferencingError> {
        let before = self.time(1, layer - 1)?;
        let after = self.time(layer, self.layers)?;
        let all = self.time(1, self.layers)?;
        let value_ns = (before.value_ns + after.value_ns - all.value_ns) / 2.0;
        Ok(self.half_sum(value_ns.round(), [before, after, all]))
    }

    fn layer(&self, layer: u32) -> Result<LayerNumbers, DifferencingError> {
        let (first, last) = (layer == 1, layer == self.layers);
        let (suffixes, prefixes) = (self.of_suffixes(layer)?, self.of_prefixes(layer)?);
        let compute = (suffixes.value_ns + prefixes.value_ns) / 2.0;
        Ok(LayerNumbers {
            compute: match first && last {
                // Both are the same time.
                true => self.number(compute, suffixes.error),
                false => self.half_sum(compute, [suffixes, prefixes]),
            },
            to_processor: (!first).then(|| self.transfer_into(layer)).transpose()?,
            from_processor: (!last).then(|| self.transfer_into(layer + 1)).transpose()?,
        })
    }

    /// `value_ns`, known to be half of a signed sum of different terms.
    fn half_sum(&self, value_ns: f64, terms: impl IntoIterator<Item = Term>) -> DerivedNumber {
        let errors = terms.into_iter().map(|term| term.error.times(0.5));
        self.number(value_ns, ErrorVariance::sum(errors))
    }

    /// `value_ns` with its own error and what all times have in common.
    fn number(&self, value_ns: f64, own: ErrorVariance) -> DerivedNumber {
        let shared = self.observations.shared_by_times(value_ns);
        DerivedNumber {
            value_ns,
            error: (self.observations.has_spread).then(|| ErrorVariance::sum([own, shared])),
        }
    }
}

fn segment(first: u32, last: u32) -> Result<Segment, DifferencingError> {
    Segment::new(first, last).map_err(|_| DifferencingError::NoLayers)
}

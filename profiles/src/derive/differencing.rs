//! The papers' differencing of prefix and suffix medians, to the letter (mlmp §4.2.2; docs/method.md §2), for samples that are not
//! told apart by visits.
//!
//! It assumes that moving the same bytes costs the same both ways: t_d(l) = t_r(l-1).

use std::collections::BTreeMap;

use super::{Includes, LayerTime};
use crate::segment::Segment;
use crate::summary::{Estimate, Summary};
use crate::units::{Nanos, SignedNanos};

/// A prefix or suffix that differencing needs and the measurement lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DifferencingError {
    /// A segment was not measured.
    #[error(
        "differencing needs the time of layers {segment}, which was not measured; \
         measure with the design prefix-suffix or grouped"
    )]
    Missing {
        /// The segment without samples.
        segment: Segment,
    },
    /// There is no layer to derive a time for.
    #[error("a model without layers has no layer times")]
    NoLayers,
}

impl DifferencingError {
    /// The same of the whole model, where it was found in `stretch` as in a model of its own.
    pub(crate) fn moved_into(self, stretch: Segment) -> DifferencingError {
        match self {
            DifferencingError::Missing { segment } => DifferencingError::Missing {
                segment: segment.moved_into(stretch),
            },
            DifferencingError::NoLayers => self,
        }
    }
}

/// The times of layers 1..=`layers` from the measured `segments`, layer 1 first.
///
/// Every derived number is a signed half sum of different segments' medians, whose errors are taken as independent and
/// normal.
pub fn differencing(
    layers: u32,
    segments: &BTreeMap<Segment, Summary>,
) -> Result<Vec<LayerTime>, DifferencingError> {
    if layers == 0 {
        return Err(DifferencingError::NoLayers);
    }
    let table = SegmentMedians { layers, segments };
    let all = table.prefix(layers)?;
    if layers == 1 {
        return Ok(vec![LayerTime {
            compute: SegmentMedians::sum(all.median.signed(), 1.0, &[all]),
            compute_includes: Includes {
                to_processor: true,
                from_processor: true,
            },
            to_processor: None,
            from_processor: None,
        }]);
    }
    (1..=layers).map(|layer| table.layer(layer)).collect()
}

struct SegmentMedians<'a> {
    layers: u32,
    segments: &'a BTreeMap<Segment, Summary>,
}

/// The median of one segment.
#[derive(Clone, Copy)]
struct SegmentMedian {
    median: Nanos,
    /// As if all samples were independent.
    standard_error_ns: Option<f64>,
}

impl SegmentMedians<'_> {
    fn segment(&self, first: u32, last: u32) -> Result<SegmentMedian, DifferencingError> {
        let segment = Segment::new(first, last).map_err(|_| DifferencingError::NoLayers)?;
        let summary = self.segments.get(&segment);
        let summary = summary.ok_or(DifferencingError::Missing { segment })?;
        Ok(SegmentMedian {
            median: summary.median,
            standard_error_ns: summary.median_standard_error_ns(),
        })
    }

    /// T_prev(l) = S(1,l).
    fn prefix(&self, layer: u32) -> Result<SegmentMedian, DifferencingError> {
        self.segment(1, layer)
    }

    /// T_last(l) = S(l,n).
    fn suffix(&self, layer: u32) -> Result<SegmentMedian, DifferencingError> {
        self.segment(layer, self.layers)
    }

    /// t_d(l) = (T_prev(l-1) + T_last(l) - T_all) / 2, for l = 2..n.
    fn transfer_into(&self, layer: u32) -> Result<Estimate, DifferencingError> {
        let terms = [
            self.prefix(layer - 1)?,
            self.suffix(layer)?,
            self.prefix(self.layers)?,
        ];
        let [before, after, all] = terms.map(|term| term.median.signed());
        Ok(Self::half_sum((before + after - all).half(), &terms))
    }

    /// t_p(l) = (T_last(l) - t_d(l)) - (T_last(l+1) - t_d(l+1)) for inner layers; the first and the
    /// last layer's one transfer is not separable from their compute time.
    fn compute(&self, layer: u32) -> Result<Estimate, DifferencingError> {
        let all = self.prefix(self.layers)?;
        if layer == 1 {
            let rest = self.suffix_without_transfer(2)?;
            let terms = [all, self.suffix(2)?, self.prefix(1)?];
            return Ok(Self::half_sum(all.median.signed() - rest, &terms));
        }
        let from_here = self.suffix_without_transfer(layer)?;
        if layer == self.layers {
            let terms = [self.suffix(layer)?, self.prefix(layer - 1)?, all];
            return Ok(Self::half_sum(from_here, &terms));
        }
        let after = self.suffix_without_transfer(layer + 1)?;
        let terms = [
            self.suffix(layer)?,
            self.suffix(layer + 1)?,
            self.prefix(layer)?,
            self.prefix(layer - 1)?,
        ];
        Ok(Self::half_sum(from_here - after, &terms))
    }

    /// T_last(l) - t_d(l).
    fn suffix_without_transfer(&self, layer: u32) -> Result<SignedNanos, DifferencingError> {
        Ok(self.suffix(layer)?.median.signed() - self.transfer_into(layer)?.value)
    }

    fn layer(&self, layer: u32) -> Result<LayerTime, DifferencingError> {
        let (first, last) = (layer == 1, layer == self.layers);
        Ok(LayerTime {
            compute: self.compute(layer)?,
            compute_includes: Includes {
                to_processor: first,
                from_processor: last,
            },
            to_processor: (!first).then(|| self.transfer_into(layer)).transpose()?,
            from_processor: (!last).then(|| self.transfer_into(layer + 1)).transpose()?,
        })
    }

    /// `value`, known to be half of a signed sum of different segments' medians, with its interval.
    fn half_sum(value: SignedNanos, terms: &[SegmentMedian]) -> Estimate {
        Self::sum(value, 0.5, terms)
    }

    /// `value`, known to be a signed sum of different segments' medians, each times `factor`, with its interval.
    fn sum(value: SignedNanos, factor: f64, terms: &[SegmentMedian]) -> Estimate {
        let errors = terms.iter().map(|term| term.standard_error_ns);
        let variance: Option<f64> = errors.map(|error| error.map(|error| error * error)).sum();
        Estimate::normal(value, variance.map(|variance| variance.sqrt() * factor))
    }
}

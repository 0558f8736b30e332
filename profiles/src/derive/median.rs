//! Layer times of a processor that is read layer by layer: the median of each layer's own samples.

use std::collections::BTreeMap;

use super::{Includes, LayerTime};
use crate::segment::Segment;
use crate::summary::{Estimate, Summary};

/// A layer that has no samples of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("layer {layer} was not measured by itself; measure with the design layer-pass")]
pub struct MissingLayer {
    /// The layer's number.
    pub layer: u32,
}

/// The times of layers 1..=`layers` from the measured `segments`, layer 1 first. Nothing is moved.
pub fn medians(
    layers: u32,
    segments: &BTreeMap<Segment, Summary>,
) -> Result<Vec<LayerTime>, MissingLayer> {
    (1..=layers)
        .map(|layer| {
            let summary = segments
                .get(&Segment::single(layer))
                .ok_or(MissingLayer { layer })?;
            Ok(LayerTime {
                compute: Estimate {
                    value: summary.median.signed(),
                    // The median's own interval.
                    ci95: summary
                        .median_ci95
                        .map(|(low, high)| (low.signed(), high.signed())),
                },
                compute_includes: Includes::default(),
                to_processor: None,
                from_processor: None,
            })
        })
        .collect()
}

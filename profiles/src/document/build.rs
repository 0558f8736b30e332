//! From raw samples to a profile: pure, so that the same samples give the same profile, byte for byte.

use std::collections::BTreeMap;

use super::{
    Header, LayerTimeRow, Measurement, Method, ProcessorKind, Profile, Sample, SegmentRow,
    encode_histogram,
};
use crate::derive::{DifferencingError, LayerTime, MissingLayer, differencing, medians};
use crate::design::Design;
use crate::layer::Layer;
use crate::segment::Segment;
use crate::summary::Summary;
use crate::units::Nanos;

/// Why samples make no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The header and the layer table are of different models.
    #[error("the header speaks of {header} layers and the layer table has {table}")]
    LayerCount {
        /// Layers according to the header.
        header: u32,
        /// Rows of the layer table.
        table: usize,
    },
    /// There are samples of a processor that the header does not name.
    #[error("there are samples of the processor `{processor}`, which the header does not name")]
    UnknownProcessor {
        /// The processor that the samples name.
        processor: String,
    },
    /// The header does not say how a processor was measured.
    #[error("the header does not say how the processor `{processor}` was measured")]
    NoMeasurement {
        /// The processor that the header names.
        processor: String,
    },
    /// Layer times do not follow from this design by this method.
    #[error(
        "processor `{processor}`: the method {method} does not apply to the design {design}; \
         layer-pass goes with median, prefix-suffix and grouped go with differencing"
    )]
    Method {
        /// The processor.
        processor: String,
        /// Which segments were measured.
        design: Design,
        /// How layer times were to be derived.
        method: Method,
    },
    /// A design that shows no transfers was used where there are transfers.
    #[error(
        "processor `{processor}` is an accelerator, whose transfers the design layer-pass cannot show; \
         measure with prefix-suffix or grouped"
    )]
    TransfersHidden {
        /// The processor.
        processor: String,
    },
    /// Differencing lacks samples.
    #[error("processor `{processor}`: {reason}")]
    Differencing {
        /// The processor.
        processor: String,
        /// The segment that it lacks.
        reason: DifferencingError,
    },
    /// A layer pass lacks samples.
    #[error("processor `{processor}`: {reason}")]
    Median {
        /// The processor.
        processor: String,
        /// The layer that it lacks.
        reason: MissingLayer,
    },
}

impl Profile {
    /// Groups the samples by processor and segment, summarises them, and derives the times of layers
    /// as the header's `measurements` say. Samples may come in any order.
    pub fn build(
        header: Header,
        layers: Vec<Layer>,
        mut samples: Vec<Sample>,
    ) -> Result<Profile, BuildError> {
        if layers.len() as u64 != u64::from(header.model.layers) {
            return Err(BuildError::LayerCount {
                header: header.model.layers,
                table: layers.len(),
            });
        }
        sort_samples(&header, &mut samples)?;
        let segments = summarise(&samples);
        let times = times(&header, &segments)?;
        Ok(Profile {
            header,
            layers,
            times,
            segments,
            samples,
        })
    }
}

/// Sorts by processor in the header's order, then segment, then order and index.
fn sort_samples(header: &Header, samples: &mut [Sample]) -> Result<(), BuildError> {
    let places: BTreeMap<&str, usize> = header.places();
    if let Some(stray) = samples
        .iter()
        .find(|sample| !places.contains_key(sample.processor.as_str()))
    {
        return Err(BuildError::UnknownProcessor {
            processor: stray.processor.clone(),
        });
    }
    samples.sort_by_cached_key(|sample| {
        let place = places.get(sample.processor.as_str()).copied();
        // The start and the duration matter only if a sample was stored twice under one index; they
        // keep even that profile independent of the order in which samples came.
        (
            place,
            sample.segment,
            sample.order,
            sample.index,
            sample.started,
            sample.duration,
        )
    });
    Ok(())
}

/// One row for each run of samples of the same processor and segment.
fn summarise(samples: &[Sample]) -> Vec<SegmentRow> {
    samples
        .chunk_by(|a, b| a.segment == b.segment && a.processor == b.processor)
        .filter_map(|group| {
            let durations: Vec<Nanos> = group.iter().map(|sample| sample.duration).collect();
            let first = group.first()?;
            Some(SegmentRow {
                processor: first.processor.clone(),
                segment: first.segment,
                summary: Summary::of(&durations)?,
                histogram: encode_histogram(&durations)?,
            })
        })
        .collect()
}

fn times(header: &Header, segments: &[SegmentRow]) -> Result<Vec<LayerTimeRow>, BuildError> {
    let mut rows = Vec::new();
    for processor in &header.processors {
        let name = &processor.name;
        let measurement = header
            .measurements
            .iter()
            .find(|measurement| &measurement.processor == name)
            .ok_or_else(|| BuildError::NoMeasurement {
                processor: name.clone(),
            })?;
        let summaries = segments
            .iter()
            .filter(|row| &row.processor == name)
            .map(|row| (row.segment, row.summary))
            .collect();
        let layer_times =
            layer_times(processor.kind, measurement, header.model.layers, &summaries)?;
        rows.extend((1..).zip(layer_times).map(|(layer, time)| LayerTimeRow {
            layer,
            processor: name.clone(),
            time,
            method: measurement.method,
        }));
    }
    Ok(rows)
}

/// The times of layers 1..=`layers` on one processor, as its measurement says.
pub(crate) fn layer_times(
    kind: ProcessorKind,
    measurement: &Measurement,
    layers: u32,
    segments: &BTreeMap<Segment, Summary>,
) -> Result<Vec<LayerTime>, BuildError> {
    refuse_unless_derivable(kind, measurement)?;
    let processor = || measurement.processor.clone();
    match measurement.method {
        Method::Median => medians(layers, segments).map_err(|reason| BuildError::Median {
            processor: processor(),
            reason,
        }),
        Method::Differencing => {
            differencing(layers, segments).map_err(|reason| BuildError::Differencing {
                processor: processor(),
                reason,
            })
        }
    }
}

/// Refuses a measurement from whose design its method does not get the times of such a processor.
pub(crate) fn refuse_unless_derivable(
    kind: ProcessorKind,
    measurement: &Measurement,
) -> Result<(), BuildError> {
    let processor = || measurement.processor.clone();
    match (measurement.design, measurement.method, kind) {
        (Design::LayerPass, Method::Median, ProcessorKind::Accelerator) => {
            Err(BuildError::TransfersHidden {
                processor: processor(),
            })
        }
        (Design::LayerPass, Method::Median, ProcessorKind::Cpu)
        | (Design::PrefixSuffix | Design::Grouped, Method::Differencing, _) => Ok(()),
        (design, method, _) => Err(BuildError::Method {
            processor: processor(),
            design,
            method,
        }),
    }
}

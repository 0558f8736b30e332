//! From raw samples to a profile: pure, so that the same samples give the same profile, byte for byte.

use std::collections::BTreeMap;

use super::{
    Additivity, CutRow, Header, LayerTimeRow, Measured, Measurement, Method, ProcessorKind,
    Profile, Sample, SegmentRow, encode_histogram,
};
use crate::derive::graph::{Fit, GraphError, additivity, observe};
use crate::derive::{DifferencingError, LayerTime, MissingLayer, differencing, medians};
use crate::design::{Design, choice};
use crate::layer::Layer;
use crate::segment::Segment;
use crate::summary::{Estimate, Summary};
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
        "processor `{processor}`: the method {method} does not apply to the design {design}, \
         which goes with {}",
        choice(design.methods().iter().map(|method| method.name()))
    )]
    Method {
        /// The name of the processor.
        processor: String,
        /// Which segments were measured.
        design: Design,
        /// How layer times were to be derived.
        method: Method,
    },
    /// A design that shows no transfers was used where there are transfers.
    #[error(
        "processor `{processor}` is an accelerator, whose transfers the design {design} cannot show; \
         measure with {}",
        Design::for_accelerators()
    )]
    TransfersHidden {
        /// The name of the processor.
        processor: String,
        /// The design that was used.
        design: Design,
    },
    /// Differencing lacks samples.
    #[error("processor `{processor}`: {reason}")]
    Differencing {
        /// The name of the processor that lacks samples.
        processor: String,
        /// The segment that it lacks.
        reason: DifferencingError,
    },
    /// Least squares lacks samples.
    #[error("processor `{processor}`: {reason}")]
    Graph {
        /// The name of the processor that lacks samples.
        processor: String,
        /// What it lacks.
        reason: GraphError,
    },
    /// A layer pass lacks samples.
    #[error("processor `{processor}`: {reason}")]
    Median {
        /// The name of the processor that lacks samples.
        processor: String,
        /// The layer that it lacks.
        reason: MissingLayer,
    },
}

impl Profile {
    /// Groups the samples by processor and segment, summarises them, and derives the times of layers
    /// as the header's `measurements` say. Samples and blocks may come in any order.
    pub fn build(
        header: Header,
        layers: Vec<Layer>,
        measured: Measured,
    ) -> Result<Profile, BuildError> {
        if layers.len() as u64 != u64::from(header.model.layers) {
            return Err(BuildError::LayerCount {
                header: header.model.layers,
                table: layers.len(),
            });
        }
        let Measured {
            mut samples,
            mut rejected,
            mut blocks,
        } = measured;
        let of_blocks = blocks.iter().map(|block| block.processor.as_str());
        refuse_strangers(&header, of_blocks)?;
        for samples in [&mut samples, &mut rejected] {
            refuse_strangers(
                &header,
                samples.iter().map(|sample| sample.processor.as_str()),
            )?;
            sort_samples(&header, samples);
        }
        blocks.sort_by_key(|block| (block.order, block.number));
        let segments = summarise(&samples);
        let derivations = derivations(&header, &segments, &samples)?;
        let (mut times, mut cuts, mut tested) = (Vec::new(), Vec::new(), Vec::new());
        for (measurement, derivation) in derivations {
            let (processor, method) = (&measurement.processor, measurement.method);
            times.extend(
                (1..)
                    .zip(derivation.times)
                    .map(|(layer, time)| LayerTimeRow {
                        layer,
                        processor: processor.clone(),
                        time,
                        method,
                    }),
            );
            cuts.extend(
                (1..)
                    .zip(derivation.cuts)
                    .map(|(after_layer, cost)| CutRow {
                        after_layer,
                        processor: processor.clone(),
                        cost,
                        method,
                    }),
            );
            tested.extend(derivation.additivity);
        }
        Ok(Profile {
            header,
            layers,
            times,
            cuts,
            segments,
            samples,
            rejected,
            blocks,
            combinations: Vec::new(),
            evaluations: Vec::new(),
            additivity: tested,
        })
    }

    /// The same samples with layer times by another method, on every processor that was measured in
    /// segments. Processors that were read layer by layer keep their medians.
    pub fn rederive(&self, method: Method) -> Result<Profile, BuildError> {
        let mut header = self.header.clone();
        for measurement in &mut header.measurements {
            if measurement.design.shows_transfers() {
                measurement.method = method;
            }
        }
        let measured = Measured {
            samples: self.samples.clone(),
            rejected: self.rejected.clone(),
            blocks: self.blocks.clone(),
        };
        let rederived = Profile::build(header, self.layers.clone(), measured)?;
        Ok(Profile {
            combinations: self.combinations.clone(),
            evaluations: self.evaluations.clone(),
            ..rederived
        })
    }
}

/// Refuses samples or blocks of processors that the header does not name.
fn refuse_strangers<'a>(
    header: &Header,
    mut processors: impl Iterator<Item = &'a str>,
) -> Result<(), BuildError> {
    let places = header.places();
    match processors.find(|&processor| !places.contains_key(processor)) {
        None => Ok(()),
        Some(stranger) => Err(BuildError::UnknownProcessor {
            processor: stranger.to_owned(),
        }),
    }
}

/// Sorts by processor in the header's order, then segment, then order, index and block: samples of one
/// index are rejected ones.
fn sort_samples(header: &Header, samples: &mut [Sample]) {
    let places = header.places();
    samples.sort_by_cached_key(|sample| {
        let place = places.get(sample.processor.as_str()).copied();
        // The start and the duration matter only if a sample was stored twice under one index; they
        // keep even that profile independent of the order in which samples came.
        (
            place,
            sample.segment,
            sample.order,
            sample.index,
            sample.block,
            sample.started,
            sample.duration,
        )
    });
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

/// What follows from the segments of each processor, in the header's order.
fn derivations<'a>(
    header: &'a Header,
    segments: &[SegmentRow],
    samples: &[Sample],
) -> Result<Vec<(&'a Measurement, Derivation)>, BuildError> {
    let one = |processor: &'a super::Processor| {
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
        let mut durations: BTreeMap<Segment, Vec<Nanos>> = BTreeMap::new();
        if measurement.method == Method::Graph {
            for sample in samples.iter().filter(|sample| &sample.processor == name) {
                let of_segment = durations.entry(sample.segment).or_default();
                of_segment.push(sample.duration);
            }
        }
        let layers = header.model.layers;
        let derivation = derivation(processor.kind, measurement, layers, &summaries, &durations)?;
        Ok((measurement, derivation))
    };
    header.processors.iter().map(one).collect()
}

/// What follows from the segments of one processor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Derivation {
    /// Layer 1 first.
    pub(crate) times: Vec<LayerTime>,
    /// The cut after layer 1 first; none but by least squares.
    pub(crate) cuts: Vec<Estimate>,
    /// How well segment times add up, if that was tested.
    pub(crate) additivity: Option<Additivity>,
    /// Segments that contradict the others and therefore lost their weight.
    pub(crate) suspects: Vec<Segment>,
}

/// The times of layers 1..=`layers` on one processor and what else its measurement gives. Least squares
/// looks at the samples' durations, the other methods at their summaries.
pub(crate) fn derivation(
    kind: ProcessorKind,
    measurement: &Measurement,
    layers: u32,
    segments: &BTreeMap<Segment, Summary>,
    durations: &BTreeMap<Segment, Vec<Nanos>>,
) -> Result<Derivation, BuildError> {
    refuse_unless_derivable(kind, measurement)?;
    let processor = || measurement.processor.clone();
    let times_alone = |times| Derivation {
        times,
        cuts: Vec::new(),
        additivity: None,
        suspects: Vec::new(),
    };
    match measurement.method {
        Method::Median => medians(layers, segments)
            .map(times_alone)
            .map_err(|reason| BuildError::Median {
                processor: processor(),
                reason,
            }),
        Method::Differencing => differencing(layers, segments)
            .map(times_alone)
            .map_err(|reason| BuildError::Differencing {
                processor: processor(),
                reason,
            }),
        Method::Graph => {
            by_least_squares(measurement, layers, durations).map_err(|reason| BuildError::Graph {
                processor: processor(),
                reason,
            })
        }
    }
}

fn by_least_squares(
    measurement: &Measurement,
    layers: u32,
    durations: &BTreeMap<Segment, Vec<Nanos>>,
) -> Result<Derivation, GraphError> {
    let observations = observe(durations);
    let Measurement { design, seed, .. } = *measurement;
    let fit = Fit::new(layers, &observations, &design.held_back(layers, seed))?;
    let tested = additivity(layers, &observations, &design.tested(layers, seed))?;
    Ok(Derivation {
        times: fit.layer_times(),
        cuts: fit.cuts(),
        additivity: tested.map(|tested| Additivity::new(&measurement.processor, &tested)),
        suspects: fit.suspects().to_vec(),
    })
}

impl Profile {
    /// The fit from which a processor's times came, made again from its samples: the time of any segment
    /// and any combination with its interval. `None` when its times did not come from least squares.
    pub fn fit(&self, processor: &str) -> Option<Result<Fit, GraphError>> {
        let measurements = self.header.measurements.iter();
        let measurement = measurements
            .filter(|measurement| measurement.method == Method::Graph)
            .find(|measurement| measurement.processor == processor)?;
        let layers = self.header.model.layers;
        let mut durations: BTreeMap<Segment, Vec<Nanos>> = BTreeMap::new();
        for sample in self
            .samples
            .iter()
            .filter(|sample| sample.processor == processor)
        {
            durations
                .entry(sample.segment)
                .or_default()
                .push(sample.duration);
        }
        let held_back = measurement.design.held_back(layers, measurement.seed);
        Some(Fit::new(layers, &observe(&durations), &held_back))
    }
}

/// Refuses a measurement from whose design its method does not get the times of such a processor.
pub(crate) fn refuse_unless_derivable(
    kind: ProcessorKind,
    measurement: &Measurement,
) -> Result<(), BuildError> {
    let Measurement { design, method, .. } = *measurement;
    let processor = measurement.processor.clone();
    if !design.methods().contains(&method) {
        return Err(BuildError::Method {
            processor,
            design,
            method,
        });
    }
    if kind == ProcessorKind::Accelerator && !design.shows_transfers() {
        return Err(BuildError::TransfersHidden { processor, design });
    }
    Ok(())
}

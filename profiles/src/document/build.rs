//! From raw samples to a profile: pure, so that the same samples give the same profile, byte for byte.

use std::collections::BTreeMap;

use super::derivation::{Derivation, Timings, derivation};
use super::{
    BuildError, CutRow, Header, LayerTimeRow, Measured, Measurement, Method, Profile, Sample,
    SegmentRow, Unsupported, encode_histogram, supported,
};
use crate::layer::Layer;
use crate::segment::Segment;
use crate::summary::Summary;
use crate::units::Nanos;

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
            mut unsupported,
            mut loads,
            mut placements,
            sentinels: _,
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
        let of_unsupported = unsupported.iter().map(|row| row.processor.as_str());
        refuse_strangers(&header, of_unsupported)?;
        super::unsupported::sort(&header, &mut unsupported);
        refuse_strangers(&header, loads.iter().map(|load| load.processor.as_str()))?;
        super::load::sort(&header, &mut loads);
        let of_placements = placements.iter().map(|row| row.processor.as_str());
        refuse_strangers(&header, of_placements)?;
        super::proved_placement::sort(&header, &mut placements);
        let segments = summarise(&samples);
        let derivations = derivations(&header, &segments, &samples, &unsupported)?;
        let (mut times, mut cuts, mut tested) = (Vec::new(), Vec::new(), Vec::new());
        for (measurement, derivation) in derivations {
            let (processor, method) = (&measurement.processor, measurement.method);
            let of_layers = derivation.times.into_iter();
            times.extend(of_layers.map(|(layer, time)| LayerTimeRow {
                layer,
                processor: processor.clone(),
                time,
                method,
            }));
            let of_cuts = derivation.cuts.into_iter();
            cuts.extend(of_cuts.map(|(after_layer, cost)| CutRow {
                after_layer,
                processor: processor.clone(),
                cost,
                method,
            }));
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
            unsupported,
            loads,
            placements,
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
            unsupported: self.unsupported.clone(),
            loads: self.loads.clone(),
            placements: self.placements.clone(),
            ..Measured::default()
        };
        let rederived = Profile::build(header, self.layers.clone(), measured)?;
        Ok(Profile {
            combinations: self.combinations.clone(),
            evaluations: self.evaluations.clone(),
            ..rederived
        })
    }
}

/// Refuses rows of processors that the header does not name.
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
    unsupported: &[Unsupported],
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
        let supported = supported(header.model.layers, name, unsupported);
        let timings = Timings {
            summaries,
            durations,
        };
        let derivation = derivation(processor.kind, measurement, &supported, &timings)?;
        Ok((measurement, derivation))
    };
    header.processors.iter().map(one).collect()
}

//! From raw samples to a profile: pure, so that the same samples give the same profile, byte for byte.

use std::collections::BTreeMap;

use super::derivation::{Derivation, Timings, derivation};
use super::observed::{observed, summary};
use super::states::{Counted, leave_out_other_states};
use super::{
    BuildError, CutRow, Header, LayerTimeRow, Measured, Measurement, Method, ProbeSample, Probed,
    Profile, Sample, SegmentRow, Soaking, Unsupported, encode_histogram, probed, supported,
};
use crate::derive::graph::{MovingModel, Observations};
use crate::layer::Layer;
use crate::probe::frontiers;
use crate::shortcuts::Shortcuts;
use crate::soak::Thermal;
use crate::units::{Bytes, Nanos};

impl Profile {
    /// Groups the samples by processor and segment, summarises them, and derives the times of layers
    /// as the header's `measurements` say. Samples and blocks may come in any order.
    pub fn build(
        mut header: Header,
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
            mut probes,
            sentinels: _,
            soak,
            // A run of its own, whose windows come later.
            energy: _,
            meter: _,
        } = measured;
        let of_blocks = blocks.iter().map(|block| block.processor.as_str());
        refuse_strangers(&header, of_blocks)?;
        for samples in [&samples, &rejected] {
            let of_samples = samples.iter().map(|sample| sample.processor.as_str());
            refuse_strangers(&header, of_samples)?;
        }
        let mut counted = Counted {
            samples: &mut samples,
            rejected: &mut rejected,
            blocks: &mut blocks,
            unsupported: &unsupported,
        };
        leave_out_other_states(&header, &mut counted)?;
        for samples in [&mut samples, &mut rejected] {
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
        let of_probes = probes.iter().map(|row| row.processor.as_str());
        refuse_strangers(&header, of_probes)?;
        super::probe_sample::sort(&header, &mut probes);
        refuse_strangers(&header, soak.iter().map(|row| row.processor.as_str()))?;
        header.thermal = match soak.is_empty() {
            true => Thermal::Cold,
            false => Thermal::Steady,
        };
        let soaking = Soaking::of(&header, soak)?;
        let frontiers = frontiers(&layers);
        let moving = settle_methods(&mut header, &probes, &frontiers);
        let shortcuts = Shortcuts::of(&layers);
        let observed = header.measurements.iter().filter_map(|measurement| {
            let observations = observed(header.device.clock, measurement, samples.iter(), &blocks)?;
            let observations = observations.with_shortcuts(shortcuts.clone());
            Some((measurement.processor.as_str(), observations))
        });
        let observed: BTreeMap<&str, Observations> = observed.collect();
        let segments = summarise(&header, &observed, &samples);
        let given = Given {
            segments: &segments,
            observed: &observed,
            unsupported: &unsupported,
            moving: &moving,
            frontiers: &frontiers,
        };
        let derivations = derivations(&header, &given)?;
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
            probes,
            moving: moving.into_iter().map(|one| one.moving).collect(),
            soaking,
            energy: None,
            steady: None,
        })
    }

    /// The same samples with layer times by another method, on every processor that was measured in
    /// segments. Processors that were read layer by layer keep their medians.
    pub fn rederive(&self, method: Method) -> Result<Profile, BuildError> {
        let mut header = self.header.clone();
        let frontiers = frontiers(&self.layers);
        for measurement in &mut header.measurements {
            if measurement.design.shows_transfers() {
                let processor = &measurement.processor;
                let refusal = || probed(&self.probes, processor, &frontiers).moving.refusal;
                if method == Method::Probed
                    && let Some(refusal) = refusal()
                {
                    return Err(BuildError::ProbesRefuse {
                        processor: processor.clone(),
                        refusal,
                    });
                }
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
            probes: self.probes.clone(),
            soak: self.soaking.rows.clone(),
            ..Measured::default()
        };
        let rederived = Profile::build(header, self.layers.clone(), measured)?;
        let steady = self.steady.as_ref().map(|steady| steady.rederive(method));
        Ok(Profile {
            steady: steady.transpose()?.map(Box::new),
            combinations: self.combinations.clone(),
            evaluations: self.evaluations.clone(),
            energy: self.energy.clone(),
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
fn summarise(
    header: &Header,
    observed: &BTreeMap<&str, Observations>,
    samples: &[Sample],
) -> Vec<SegmentRow> {
    samples
        .chunk_by(|a, b| a.segment == b.segment && a.processor == b.processor)
        .filter_map(|group| {
            let durations: Vec<Nanos> = group.iter().map(|sample| sample.duration).collect();
            let first = group.first()?;
            let processor = first.processor.as_str();
            let mut measurements = header.measurements.iter();
            let measurement = measurements.find(|one| one.processor == processor);
            let observations = observed.get(processor);
            Some(SegmentRow {
                processor: first.processor.clone(),
                segment: first.segment,
                summary: summary(measurement, observations, first.segment, &durations)?,
                histogram: encode_histogram(&durations)?,
            })
        })
        .collect()
}

/// What the probes say of each processor that they are to divide the cuts of; where they cannot, the header's method
/// becomes least squares with the papers' assumption.
fn settle_methods(header: &mut Header, probes: &[ProbeSample], frontiers: &[Bytes]) -> Vec<Probed> {
    let mut all = Vec::new();
    for measurement in &mut header.measurements {
        let has_samples = probes
            .iter()
            .any(|one| one.processor == measurement.processor);
        if measurement.method != Method::Probed && !has_samples {
            continue;
        }
        let found = probed(probes, &measurement.processor, frontiers);
        if measurement.method == Method::Probed && found.model.is_none() {
            measurement.method = Method::Graph;
        }
        all.push(found);
    }
    all
}

/// What times are derived from.
struct Given<'a> {
    segments: &'a [SegmentRow],
    observed: &'a BTreeMap<&'a str, Observations>,
    unsupported: &'a [Unsupported],
    moving: &'a [Probed],
    frontiers: &'a [Bytes],
}

impl Given<'_> {
    fn moving_on(&self, processor: &str) -> Option<MovingModel> {
        let mut known = self.moving.iter();
        let found = known.find(|one| one.moving.processor == processor)?;
        found.model.clone()
    }
}

/// What follows from the segments of each processor, in the header's order.
fn derivations<'a>(
    header: &'a Header,
    given: &Given<'_>,
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
        let summaries = given
            .segments
            .iter()
            .filter(|row| &row.processor == name)
            .map(|row| (row.segment, row.summary))
            .collect();
        let supported = supported(header.model.layers, name, given.unsupported);
        let timings = Timings {
            summaries,
            observations: given.observed.get(name.as_str()).cloned(),
            moving: given.moving_on(name),
            frontiers: given.frontiers.to_vec(),
        };
        let derivation = derivation(processor.kind, measurement, &supported, &timings)?;
        Ok((measurement, derivation))
    };
    header.processors.iter().map(one).collect()
}

//! What follows from the segments of one processor: the times of its layers, stretch by stretch of those that it can
//! run.

use std::collections::BTreeMap;

use super::{Additivity, BuildError, Measurement, Method, ProcessorKind, Profile};
use crate::derive::graph::{
    self, DerivedNumber, ErrorVariance, Fit, GraphError, InShares, LayerNumbers, MovingModel,
    Observations, additivity,
};
use crate::derive::{
    DifferencingError, Includes, LayerTime, MissingLayer, differencing, differencing_in_visits,
    medians,
};
use crate::segment::Segment;
use crate::summary::{Estimate, Summary};
use crate::supported::{StretchLayers, SupportedLayers};
use crate::units::Bytes;

/// The measured segments of one processor. Medians come from summaries, and where visits are not told apart differencing does;
/// all else comes from observations, and so do errors wherever visits are told apart.
#[derive(Debug, Default)]
pub(crate) struct Timings {
    pub(crate) summaries: BTreeMap<Segment, Summary>,
    pub(crate) observations: Option<Observations>,
    /// What moving data costs, where probes say it.
    pub(crate) moving: Option<MovingModel>,
    /// What crosses each cut, the cut after layer 1 first.
    pub(crate) frontiers: Vec<Bytes>,
}

/// What follows from the segments of one processor.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Derivation {
    /// The times of each layer that the processor can run, by its number.
    pub(crate) times: BTreeMap<u32, LayerTime>,
    /// The cost of each cut between two such layers, by the number of the one before it; none but by least squares.
    pub(crate) cuts: BTreeMap<u32, Estimate>,
    /// What is known of the errors of these numbers, degrees of freedom included.
    pub(crate) numbers: DerivedNumbers,
    /// How well segment times add up on the longest stretch, if that was tested.
    pub(crate) additivity: Option<Additivity>,
    /// Segments that contradict the others and therefore lost their weight.
    pub(crate) suspects: Vec<Segment>,
}

/// The numbers of one processor with the degrees of freedom of their errors, as far as those are known: those of medians
/// where visits are told apart, and those of least squares.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DerivedNumbers {
    /// The times of layers, by their numbers.
    pub(crate) layers: BTreeMap<u32, LayerNumbers>,
    /// The costs of cuts, by the number of the layer before each.
    pub(crate) cuts: BTreeMap<u32, DerivedNumber>,
    /// The whole model, where the processor can run all of it.
    pub(crate) whole: Option<DerivedNumber>,
    /// Of times that are published as medians: the robust times of the same samples, which err less. A median wastes a third
    /// of the samples, and has the speeds of visits in it.
    pub(crate) robust: Option<RobustTimes>,
}

/// Robust times of layers that are timed one by one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RobustTimes {
    /// By the layers' numbers.
    pub(crate) layers: BTreeMap<u32, DerivedNumber>,
    /// Their sum.
    pub(crate) whole: DerivedNumber,
}

/// The times of the layers that a processor can run, and what else its measurement gives. Each stretch of neighbouring
/// layers is a model of its own: no segment reaches beyond it, and its first and last layer keep their transfers as the
/// model's do.
pub(crate) fn derivation(
    kind: ProcessorKind,
    measurement: &Measurement,
    supported: &SupportedLayers,
    timings: &Timings,
) -> Result<Derivation, BuildError> {
    refuse_unless_derivable(kind, measurement)?;
    timings.refuse_strangers(measurement, supported)?;
    let mut all = Derivation::default();
    for &stretch in supported.stretches() {
        let before = stretch.first() - 1;
        let layers = supported.stretch(stretch);
        let found = of_stretch(measurement, &layers, &timings.within(stretch))
            .map_err(|reason| reason.of_stretch(&measurement.processor, stretch))?;
        let times = (stretch.first()..).zip(found.times);
        all.times.extend(times);
        all.cuts.extend((stretch.first()..).zip(found.cuts));
        let numbers = (stretch.first()..).zip(found.numbers);
        all.numbers.layers.extend(numbers);
        let cut_numbers = (stretch.first()..).zip(found.cut_numbers);
        all.numbers.cuts.extend(cut_numbers);
        if supported.holds_whole() {
            all.numbers.whole = found.whole;
            all.numbers.robust = found.robust;
        }
        if supported.longest() == Some(stretch) {
            let tested = found.additivity;
            all.additivity = tested
                .map(|tested| Additivity::new(&measurement.processor, &tested).moved_by(before));
        }
        let suspects = found.suspects.into_iter();
        all.suspects
            .extend(suspects.map(|segment| segment.moved_into(stretch)));
    }
    Ok(all)
}

impl Timings {
    /// Refuses segments of another model, and such as the processor cannot run.
    fn refuse_strangers(
        &self,
        measurement: &Measurement,
        supported: &SupportedLayers,
    ) -> Result<(), BuildError> {
        let layers = supported.layers();
        let processor = || measurement.processor.clone();
        let mut beyond = self.observed().filter(|one| one.last() > layers);
        if let Some(segment) = beyond.next() {
            return Err(BuildError::Graph {
                processor: processor(),
                reason: GraphError::UnknownLayer { segment, layers },
            });
        }
        let mut measured = self.summaries.keys().copied().chain(self.observed());
        let crosses = |one: &Segment| one.last() <= layers && supported.stretch_of(*one).is_none();
        match measured.find(crosses) {
            None => Ok(()),
            Some(segment) => Err(BuildError::RanUnsupported {
                processor: processor(),
                segment,
            }),
        }
    }

    /// The segments that least squares looks at.
    fn observed(&self) -> impl Iterator<Item = Segment> {
        let observations = self.observations.iter();
        observations.flat_map(|all| all.segments.iter().map(|one| one.segment))
    }

    /// Those of the segments within a stretch, as of a model of its own.
    fn within(&self, stretch: Segment) -> Timings {
        let summaries = self
            .summaries
            .iter()
            .filter_map(|(segment, summary)| Some((segment.numbered_from(stretch)?, *summary)));
        let observations = self.observations.as_ref();
        Timings {
            summaries: summaries.collect(),
            observations: observations.map(|all| all.within(stretch)),
            moving: self.moving.clone(),
            frontiers: (self.frontiers.iter().copied())
                .skip(stretch.first() as usize - 1)
                .take(stretch.layers() as usize - 1)
                .collect(),
        }
    }

    /// How the costs of the cuts divide, where probes say it.
    fn in_shares(&self) -> Option<InShares> {
        InShares::probed(self.moving.as_ref()?, &self.frontiers).ok()
    }
}

/// What follows from the segments of one stretch, whose layers are numbered from 1.
struct OfStretch {
    times: Vec<LayerTime>,
    cuts: Vec<Estimate>,
    numbers: Vec<LayerNumbers>,
    cut_numbers: Vec<DerivedNumber>,
    /// The stretch as a whole.
    whole: Option<DerivedNumber>,
    /// Where times are medians.
    robust: Option<RobustTimes>,
    additivity: Option<graph::AdditivityTest>,
    suspects: Vec<Segment>,
}

impl From<Vec<LayerTime>> for OfStretch {
    fn from(times: Vec<LayerTime>) -> OfStretch {
        OfStretch {
            times,
            cuts: Vec::new(),
            numbers: Vec::new(),
            cut_numbers: Vec::new(),
            whole: None,
            robust: None,
            additivity: None,
            suspects: Vec::new(),
        }
    }
}

/// What the samples of a stretch lack.
enum Lacks {
    Median(MissingLayer),
    Differencing(DifferencingError),
    Graph(GraphError),
    Probes,
}

impl Lacks {
    /// The same in the layers of the whole model.
    fn of_stretch(self, processor: &str, stretch: Segment) -> BuildError {
        let processor = processor.to_owned();
        let before = stretch.first() - 1;
        match self {
            Lacks::Median(MissingLayer { layer }) => BuildError::Median {
                processor,
                reason: MissingLayer {
                    layer: layer + before,
                },
            },
            Lacks::Differencing(reason) => BuildError::Differencing {
                processor,
                reason: reason.moved_into(stretch),
            },
            Lacks::Probes => BuildError::NoProbes { processor },
            Lacks::Graph(reason) => BuildError::Graph {
                processor,
                reason: reason.moved_into(stretch),
            },
        }
    }
}

fn of_stretch(
    measurement: &Measurement,
    stretch: &StretchLayers,
    timings: &Timings,
) -> Result<OfStretch, Lacks> {
    let layers = stretch.layers();
    match measurement.method {
        Method::Robust => of_robust_times(layers, timings).map_err(Lacks::Median),
        Method::Median => medians(layers, &timings.summaries)
            .map(|times| of_medians(times, timings.observations.as_ref()))
            .map_err(Lacks::Median),
        Method::Differencing => {
            let times = match &timings.observations {
                Some(observations) => differencing_in_visits(layers, observations),
                None => differencing(layers, &timings.summaries),
            };
            times.map(OfStretch::from).map_err(Lacks::Differencing)
        }
        Method::Graph => by_least_squares(measurement, stretch, timings, &InShares::symmetric())
            .map_err(Lacks::Graph),
        Method::Probed => {
            let shares = timings.in_shares().ok_or(Lacks::Probes)?;
            by_least_squares(measurement, stretch, timings, &shares).map_err(Lacks::Graph)
        }
    }
}

/// Layer times that are the robust times of each layer's samples, with their errors where those are known.
fn of_robust_times(layers: u32, timings: &Timings) -> Result<OfStretch, MissingLayer> {
    let observations = timings.observations.as_ref();
    let observations = observations.ok_or(MissingLayer { layer: 1 })?;
    let own = |layer| {
        let own = observations.own_error(Segment::single(layer));
        own.ok_or(MissingLayer { layer })
    };
    let known = |error| observations.has_spread.then_some(error);
    let (mut sum, mut errors, mut numbers) = (0.0, Vec::new(), Vec::new());
    for layer in 1..=layers {
        let (value_ns, error) = own(layer)?;
        sum += value_ns;
        errors.push(error);
        let error = ErrorVariance::sum([error, observations.shared_by_times(value_ns)]);
        numbers.push(LayerNumbers {
            compute: DerivedNumber {
                value_ns,
                error: known(error),
            },
            to_processor: None,
            from_processor: None,
        });
    }
    errors.push(observations.shared_by_times(sum));
    let time = |numbers: &LayerNumbers| LayerTime {
        compute: numbers.compute.estimate(),
        compute_includes: Includes::default(),
        to_processor: None,
        from_processor: None,
    };
    let times: Vec<LayerTime> = numbers.iter().map(time).collect();
    Ok(OfStretch {
        numbers,
        whole: Some(DerivedNumber {
            value_ns: sum,
            error: known(ErrorVariance::sum(errors)),
        }),
        ..OfStretch::from(times)
    })
}

/// Layer times that are medians, with their errors where visits tell them.
fn of_medians(times: Vec<LayerTime>, visits: Option<&Observations>) -> OfStretch {
    let medians: Vec<(Segment, f64)> = (1..)
        .zip(&times)
        .map(|(layer, time)| {
            let median = time.compute.value.as_nanos() as f64;
            (Segment::single(layer), median)
        })
        .collect();
    let number = |&(segment, value_ns): &(Segment, f64)| {
        let error = visits?.error_of_median(segment, value_ns)?;
        Some(LayerNumbers {
            compute: DerivedNumber {
                value_ns,
                error: Some(error),
            },
            to_processor: None,
            from_processor: None,
        })
    };
    let numbers: Option<Vec<LayerNumbers>> = medians.iter().map(number).collect();
    let whole = visits.and_then(|visits| visits.error_of_medians(&medians));
    OfStretch {
        numbers: numbers.unwrap_or_default(),
        robust: visits.and_then(|visits| robust_times(visits, medians.len() as u32)),
        whole: whole.map(|error| DerivedNumber {
            value_ns: medians.iter().map(|(_, value_ns)| value_ns).sum(),
            error: Some(error),
        }),
        ..OfStretch::from(times)
    }
}

/// The robust time of each layer and of all of them; `None` where visits do not give their errors.
fn robust_times(visits: &Observations, layers: u32) -> Option<RobustTimes> {
    if !visits.has_spread {
        return None;
    }
    let (mut sum, mut errors) = (0.0, Vec::new());
    let layer = |layer: u32| {
        let (value_ns, own) = visits.own_error(Segment::single(layer))?;
        sum += value_ns;
        errors.push(own);
        let error = ErrorVariance::sum([own, visits.shared_by_times(value_ns)]);
        let error = Some(error);
        Some((layer, DerivedNumber { value_ns, error }))
    };
    let layers: BTreeMap<u32, DerivedNumber> = (1..=layers).map(layer).collect::<Option<_>>()?;
    errors.push(visits.shared_by_times(sum));
    let whole = DerivedNumber {
        value_ns: sum,
        error: Some(ErrorVariance::sum(errors)),
    };
    Some(RobustTimes { layers, whole })
}

fn by_least_squares(
    measurement: &Measurement,
    stretch: &StretchLayers,
    timings: &Timings,
    shares: &InShares,
) -> Result<OfStretch, GraphError> {
    let layers = stretch.layers();
    let observations = timings.observations.as_ref().ok_or(GraphError::NoLayers)?;
    let Measurement { design, seed, .. } = *measurement;
    let fit = Fit::new(layers, observations, &design.held_back(stretch, seed))?;
    let tested = additivity(layers, observations, &design.tested(stretch, seed))?;
    let numbers = fit.layer_numbers_with(shares);
    let cut_numbers = fit.cut_numbers();
    let time = |numbers: &LayerNumbers| numbers.layer_time(shares.are_assumed());
    Ok(OfStretch {
        times: numbers.iter().map(time).collect(),
        cuts: cut_numbers.iter().map(DerivedNumber::estimate).collect(),
        numbers,
        cut_numbers,
        whole: Some(fit.whole_number()),
        robust: None,
        additivity: tested,
        suspects: fit.suspects().to_vec(),
    })
}

impl Profile {
    /// The fit from which a processor's times came, made again from its samples: the time of any segment
    /// and any combination with its interval. `None` when its times did not come from least squares, or when it
    /// cannot run every layer with the next: then each stretch of layers had a fit of its own.
    pub fn fit(&self, processor: &str) -> Option<Result<Fit, GraphError>> {
        let measurements = self.header.measurements.iter();
        let measurement = measurements
            .filter(|measurement| measurement.method.is_least_squares())
            .find(|measurement| measurement.processor == processor)?;
        let supported = self.supported(processor);
        if !supported.is_all() {
            return None;
        }
        let layers = self.header.model.layers;
        let observations = self.observed(measurement)?;
        let stretch = supported.stretch(Segment::whole(layers.max(1)));
        let held_back = measurement.design.held_back(&stretch, measurement.seed);
        Some(Fit::new(layers, &observations, &held_back))
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

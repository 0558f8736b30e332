//! How well the numbers of a processor are known, calculated again from its samples: a published interval does not tell
//! from how many independent differences it is known, and intervals of few visits are wide for that alone.

use super::{
    CutRow, DerivedNumbers, LayerTimeRow, Measurement, Method, Profile, Timings, derivation, probed,
};
use crate::derive::graph::{DerivedNumber, ErrorVariance, LayerNumbers, MovingModel};
use crate::probe::frontiers;
use crate::segment::Segment;
use crate::summary::{Estimate, Z_95};

/// The errors of the numbers of one processor. Where samples do not give them, an interval is taken for a normal one.
pub(crate) struct KnownErrors<'a> {
    profile: &'a Profile,
    processor: &'a str,
    numbers: DerivedNumbers,
}

/// The errors of a layer's times; `None` of a number without interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerErrors {
    pub(crate) compute: Option<ErrorVariance>,
    pub(crate) to_processor: Option<ErrorVariance>,
    pub(crate) from_processor: Option<ErrorVariance>,
}

impl Profile {
    /// The errors of the numbers of a processor.
    pub(crate) fn known_errors<'a>(&'a self, processor: &'a str) -> KnownErrors<'a> {
        let numbers = self.measurement(processor).and_then(|measurement| {
            self.derived_numbers(measurement, self.moving_model(processor))
        });
        self.with_numbers(processor, numbers)
    }

    /// The same of the compute times that follow where the cuts of an accelerator divide as another profile's `moving` says,
    /// or half and half without one. Nothing where the processor's times are not by least squares.
    pub(crate) fn known_errors_divided<'a>(
        &'a self,
        processor: &'a str,
        moving: Option<MovingModel>,
    ) -> Option<KnownErrors<'a>> {
        let measurement = self.measurement(processor)?;
        if !measurement.method.is_least_squares() {
            return None;
        }
        let measurement = Measurement {
            method: match moving {
                Some(_) => Method::Probed,
                None => Method::Graph,
            },
            ..measurement.clone()
        };
        let numbers = self.derived_numbers(&measurement, moving)?;
        Some(self.with_numbers(processor, Some(numbers)))
    }

    /// What moving data to a processor and from it costs, where the times of its layers follow from what probes say of that.
    pub(crate) fn moving_of_times(&self, processor: &str) -> Option<MovingModel> {
        let measurement = self.measurement(processor)?;
        (measurement.method == Method::Probed)
            .then(|| self.moving_model(processor))
            .flatten()
    }

    fn with_numbers<'a>(
        &'a self,
        processor: &'a str,
        numbers: Option<DerivedNumbers>,
    ) -> KnownErrors<'a> {
        KnownErrors {
            profile: self,
            processor,
            numbers: numbers.unwrap_or_default(),
        }
    }

    fn measurement(&self, processor: &str) -> Option<&Measurement> {
        let mut measurements = self.header.measurements.iter();
        measurements.find(|one| one.processor == processor)
    }

    fn moving_model(&self, processor: &str) -> Option<MovingModel> {
        probed(&self.probes, processor, &frontiers(&self.layers)).model
    }

    /// What the samples of a processor give; `None` where its times do not follow from them.
    fn derived_numbers(
        &self,
        measurement: &Measurement,
        moving: Option<MovingModel>,
    ) -> Option<DerivedNumbers> {
        let processor = &measurement.processor;
        let mut processors = self.header.processors.iter();
        let kind = processors.find(|one| one.name == *processor)?.kind;
        let segments = self.segments.iter();
        let timings = Timings {
            summaries: segments
                .filter(|row| row.processor == *processor)
                .map(|row| (row.segment, row.summary))
                .collect(),
            observations: self.observed(measurement),
            moving,
            frontiers: frontiers(&self.layers),
        };
        let supported = self.supported(processor);
        let found = derivation(kind, measurement, &supported, &timings).ok()?;
        Some(found.numbers)
    }
}

impl KnownErrors<'_> {
    /// Those of a layer's times.
    pub(crate) fn of_layer(&self, row: &LayerTimeRow) -> LayerErrors {
        let time = &row.time;
        let numbers = self.numbers.layers.get(&row.layer);
        let of = |of: fn(&LayerNumbers) -> Option<DerivedNumber>, estimate: Option<Estimate>| {
            error(numbers.and_then(of), estimate?)
        };
        LayerErrors {
            compute: of(|numbers| Some(numbers.compute), Some(time.compute)),
            to_processor: of(|numbers| numbers.to_processor, time.to_processor),
            from_processor: of(|numbers| numbers.from_processor, time.from_processor),
        }
    }

    /// The compute time of a layer as the samples give it, in ns, and its error.
    pub(crate) fn compute(&self, layer: u32) -> Option<(f64, ErrorVariance)> {
        known(&self.numbers.layers.get(&layer)?.compute)
    }

    /// The robust time of a layer, in ns, and its error, where the layer's published time is a median that errs more.
    pub(crate) fn robust_layer(&self, layer: u32) -> Option<(f64, ErrorVariance)> {
        self.numbers
            .robust
            .as_ref()?
            .layers
            .get(&layer)
            .and_then(known)
    }

    /// The sum of these of all layers.
    pub(crate) fn robust_whole(&self) -> Option<(f64, ErrorVariance)> {
        known(&self.numbers.robust.as_ref()?.whole)
    }

    /// That of the cost of a cut.
    pub(crate) fn of_cut(&self, row: &CutRow) -> Option<ErrorVariance> {
        let number = self.numbers.cuts.get(&row.after_layer);
        error(number.copied(), row.cost)
    }

    /// The time of the whole model on the processor, in ns, and its error; `None` where it cannot run all of it, or where
    /// nothing says it.
    pub(crate) fn whole(&self) -> Option<(f64, ErrorVariance)> {
        if let Some(DerivedNumber {
            value_ns,
            error: Some(error),
        }) = self.numbers.whole
        {
            return Some((value_ns, rounded(error)));
        }
        let whole = Segment::whole(self.profile.header.model.layers);
        let mut rows = self.profile.segments.iter();
        let row = rows.find(|row| row.processor == self.processor && row.segment == whole)?;
        let median = Estimate {
            value: row.summary.median.signed(),
            ci95: row
                .summary
                .median_ci95
                .map(|(low, high)| (low.signed(), high.signed())),
        };
        Some((
            median.value.as_nanos() as f64,
            rounded(of_interval(median)?),
        ))
    }
}

fn known(number: &DerivedNumber) -> Option<(f64, ErrorVariance)> {
    Some((number.value_ns, rounded(number.error?)))
}

/// The error of a published number: as its samples give it, if they give this number.
fn error(number: Option<DerivedNumber>, published: Estimate) -> Option<ErrorVariance> {
    let of_interval = of_interval(published)?;
    let same = number.filter(|number| number.estimate().value == published.value);
    let known = same.and_then(|number| number.error).unwrap_or(of_interval);
    Some(rounded(known))
}

fn rounded(error: ErrorVariance) -> ErrorVariance {
    ErrorVariance {
        variance: error.variance.max(ROUNDING_VARIANCE),
        ..error
    }
}

/// Numbers are published as whole nanoseconds: they are known to half of one.
const ROUNDING_VARIANCE: f64 = 0.25;

/// The error that a normal interval as wide as this estimate's stands for.
fn of_interval(estimate: Estimate) -> Option<ErrorVariance> {
    let (low, high) = estimate.ci95?;
    let deviation = (high - low).as_nanos() as f64 / (2.0 * Z_95);
    Some(ErrorVariance {
        variance: deviation * deviation,
        freedom: f64::INFINITY,
    })
}

//! `moving` in `profile.json`: what moving data in and out costs, as probes say (docs/method.md §10).

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ProbeSample;
use super::decimals::round;
use crate::derive::graph::{
    InShares, MovingModel, MovingTerm, Undivided, Visit, VisitSamples, observe_probes,
};
use crate::probe::Probe;
use crate::segment::Segment;
use crate::summary::Estimate;
use crate::units::{Bytes, SignedNanos};

/// What moving data to and from one processor costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moving {
    /// The processor, by its name.
    pub processor: String,
    /// How many layers of probes have samples.
    pub probe_layers: u64,
    /// Why the costs of cuts are not divided by the probes; `null` where they may be.
    pub refusal: Option<MovingRefusal>,
    /// The straight line through the probes' times; `null` where they are too few for one.
    pub line: Option<MovingLine>,
    /// What crosses each cut of the model, and what moving that costs by the line; empty without a line.
    pub cuts: Vec<MovedCut>,
}

/// Why probes do not say how the costs of cuts divide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MovingRefusal {
    /// Too few of them have samples: the processor cannot run them, or the budget left no time.
    Incomplete,
    /// Their times lie on no straight line.
    NotLinear,
    /// The cost of some cut does not follow from them to 10 %.
    Uncertain,
    /// One way would cost less than nothing.
    Implausible,
}

/// S = f + bytes in / B_in + bytes out / B_out + w x operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MovingLine {
    /// f: what any invocation costs.
    pub fixed_ns: MovingNumber,
    /// 1 / B_in: what each byte costs on its way in.
    pub in_ns_per_byte: MovingNumber,
    /// 1 / B_out: what each byte costs on its way out.
    pub out_ns_per_byte: MovingNumber,
    /// w: what each of the probes' own operations costs.
    pub ns_per_operation: MovingNumber,
    /// The root mean square of what is left of the probes' times, in per cent of each; three decimals.
    pub misfit_percent: f64,
    /// How probable a misfit at least as large is if the line is true; six decimals. `null` when samples are too few to
    /// say.
    pub p_value: Option<f64>,
}

/// One part of what moving costs, in ns; nine decimals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MovingNumber {
    /// The number.
    pub value: f64,
    /// The lower end of its 95 % confidence interval; `null` when samples are too few to say.
    pub ci95_low: Option<f64>,
    /// The upper end.
    pub ci95_high: Option<f64>,
}

/// What moving the tensors of one cut costs by the line, each way with half of the fixed cost, without what the layers
/// beside the cut save by running together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MovedCut {
    /// The layer before the cut.
    pub after_layer: u32,
    /// What crosses the cut.
    pub bytes: Bytes,
    /// Moving that in.
    pub in_ns: SignedNanos,
    /// The lower end of its 95 % confidence interval.
    pub in_ci95_low_ns: Option<SignedNanos>,
    /// The upper end.
    pub in_ci95_high_ns: Option<SignedNanos>,
    /// Moving that out.
    pub out_ns: SignedNanos,
    /// The lower end of its 95 % confidence interval.
    pub out_ci95_low_ns: Option<SignedNanos>,
    /// The upper end.
    pub out_ci95_high_ns: Option<SignedNanos>,
}

/// What the probes of one processor say of a model's cuts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Probed {
    pub(crate) moving: Moving,
    /// Of all cuts, unless that is refused.
    pub(crate) model: Option<MovingModel>,
}

/// What follows from the samples of the probes on `processor` for cuts that these bytes cross, the cut after layer 1
/// first.
pub(crate) fn probed(samples: &[ProbeSample], processor: &str, frontiers: &[Bytes]) -> Probed {
    let counted = || {
        samples
            .iter()
            .filter(|one| one.processor == processor && one.rejection.is_none())
    };
    // To the noise model each layer of a probe is a segment like any other.
    let known: BTreeSet<(Probe, u32)> = counted().map(|one| (one.probe, one.layer)).collect();
    let layers: Vec<(Probe, u32)> = known.into_iter().collect();
    let mut by_visit = VisitSamples::default();
    for one in counted() {
        if let Ok(place) = layers.binary_search(&(one.probe, one.layer)) {
            let visit = Visit {
                order: one.order,
                block: one.block,
            };
            by_visit.push(Segment::single(place as u32 + 1), visit, one.duration);
        }
    }
    let layer_of = |segment: Segment| layers.get(segment.first() as usize - 1).copied();
    let sizes: BTreeSet<Probe> = layers.iter().map(|&(probe, _)| probe).collect();
    let model = MovingModel::fit(&observe_probes(&by_visit), layer_of)
        .filter(|_| sizes.len() >= LEAST_SIZES);
    let refusal = match &model {
        None => Some(MovingRefusal::Incomplete),
        Some(model) if model.bends() => Some(MovingRefusal::NotLinear),
        Some(model) => InShares::probed(model, frontiers).err().map(Into::into),
    };
    let cuts = model.iter().flat_map(|model| {
        let cuts = (1..).zip(frontiers);
        cuts.map(|(after_layer, &bytes)| MovedCut::new(after_layer, bytes, model.moving(bytes)))
    });
    Probed {
        moving: Moving {
            processor: processor.to_owned(),
            probe_layers: layers.len() as u64,
            refusal,
            line: model.as_ref().map(MovingLine::from),
            cuts: cuts.collect(),
        },
        model: model.filter(|_| refusal.is_none()),
    }
}

/// A bend shows in three sizes at least.
const LEAST_SIZES: usize = 3;

impl MovingRefusal {
    /// What is wrong, as the end of a sentence about the probes.
    fn words(self) -> &'static str {
        match self {
            MovingRefusal::Incomplete => "too few of them could be timed",
            MovingRefusal::NotLinear => "their times lie on no straight line",
            MovingRefusal::Uncertain => "the cost of some cut does not follow from them to 10 %",
            MovingRefusal::Implausible => "by them one way would cost less than nothing",
        }
    }
}

impl fmt::Display for MovingRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

impl From<Undivided> for MovingRefusal {
    fn from(undivided: Undivided) -> MovingRefusal {
        match undivided {
            Undivided::Uncertain => MovingRefusal::Uncertain,
            Undivided::Implausible => MovingRefusal::Implausible,
        }
    }
}

impl From<&MovingModel> for MovingLine {
    fn from(model: &MovingModel) -> MovingLine {
        let [fixed_ns, in_ns_per_byte, out_ns_per_byte, ns_per_operation] =
            model.terms().map(MovingNumber::from);
        MovingLine {
            fixed_ns,
            in_ns_per_byte,
            out_ns_per_byte,
            ns_per_operation,
            misfit_percent: round(model.misfit_percent, 1e3),
            p_value: model.p_value.map(|p| round(p, 1e6)),
        }
    }
}

impl From<MovingTerm> for MovingNumber {
    fn from(MovingTerm { value, half_width }: MovingTerm) -> MovingNumber {
        let number = |number: f64| round(number, NUMBER);
        MovingNumber {
            value: number(value),
            ci95_low: half_width.map(|half| number(value - half)),
            ci95_high: half_width.map(|half| number(value + half)),
        }
    }
}

impl MovedCut {
    fn new(after_layer: u32, bytes: Bytes, [inward, outward]: [Estimate; 2]) -> MovedCut {
        let (in_low, in_high) = inward.ci95.unzip();
        let (out_low, out_high) = outward.ci95.unzip();
        MovedCut {
            after_layer,
            bytes,
            in_ns: inward.value,
            in_ci95_low_ns: in_low,
            in_ci95_high_ns: in_high,
            out_ns: outward.value,
            out_ci95_low_ns: out_low,
            out_ci95_high_ns: out_high,
        }
    }

    fn numbers(&self) -> [Option<SignedNanos>; 6] {
        [
            Some(self.in_ns),
            self.in_ci95_low_ns,
            self.in_ci95_high_ns,
            Some(self.out_ns),
            self.out_ci95_low_ns,
            self.out_ci95_high_ns,
        ]
    }
}

/// One part in so many is the last digit of a number of the line.
const NUMBER: f64 = 1e9;

impl Moving {
    /// Whether `other` is the same but for the last digits, which another machine may round otherwise.
    pub(crate) fn is_about(&self, other: &Moving) -> bool {
        let lines = match (&self.line, &other.line) {
            (Some(a), Some(b)) => a.is_about(b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let near = |a: Option<SignedNanos>, b: Option<SignedNanos>| match (a, b) {
            (Some(a), Some(b)) => (a - b).as_nanos().unsigned_abs() <= 1,
            (a, b) => a.is_none() && b.is_none(),
        };
        let cuts = |(a, b): (&MovedCut, &MovedCut)| {
            let mut numbers = a.numbers().into_iter().zip(b.numbers());
            (a.after_layer, a.bytes) == (b.after_layer, b.bytes) && numbers.all(|(a, b)| near(a, b))
        };
        (&self.processor, self.probe_layers, self.refusal)
            == (&other.processor, other.probe_layers, other.refusal)
            && lines
            && self.cuts.len() == other.cuts.len()
            && self.cuts.iter().zip(&other.cuts).all(cuts)
    }
}

impl MovingLine {
    fn is_about(&self, other: &MovingLine) -> bool {
        let near = |a: Option<f64>, b: Option<f64>, unit: f64| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() <= 1.5 * unit + 1e-9 * a.abs(),
            (a, b) => a.is_none() && b.is_none(),
        };
        let numbers = |line: &MovingLine| {
            let all = [
                &line.fixed_ns,
                &line.in_ns_per_byte,
                &line.out_ns_per_byte,
                &line.ns_per_operation,
            ];
            all.map(|one| [Some(one.value), one.ci95_low, one.ci95_high])
        };
        let pairs = numbers(self)
            .into_iter()
            .flatten()
            .zip(numbers(other).into_iter().flatten());
        pairs.into_iter().all(|(a, b)| near(a, b, 1.0 / NUMBER))
            && near(Some(self.misfit_percent), Some(other.misfit_percent), 1e-3)
            && near(self.p_value, other.p_value, 1e-6)
    }
}

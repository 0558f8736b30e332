//! `additivity` in `profile.json`: how well the times of segments add up (docs/method.md §3).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::decimals::round;
use super::moving::MovingNumber;
use crate::derive::graph;
use crate::units::{Nanos, SignedNanos};

/// How well the times of segments add up on one processor: long segments against what all others predict
/// for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Additivity {
    /// The processor, by its name.
    pub processor: String,
    /// The segments that were tested, ascending.
    pub segments: Vec<TestedSegment>,
    /// The root mean square of the deviations of prediction from measurement, in per cent of the measured
    /// time; three decimals.
    pub misfit_percent: f64,
    /// How probable a misfit at least as large is if times do add up; six decimals. `null` when samples are
    /// too few to say.
    pub p_value: Option<f64>,
    /// What each byte costs that passes through a segment, beside moving in and out, below 0 where passing is cheaper
    /// (docs/method.md §3). Absent where nothing passes, or the segments do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_passing_byte: Option<MovingNumber>,
}

/// One tested segment: measured, and predicted from all segments that were not tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestedSegment {
    /// Its first layer.
    pub first_layer: u32,
    /// Its last layer.
    pub last_layer: u32,
    /// Its time, from its own samples.
    pub measured_ns: Nanos,
    /// Its time, from the others.
    pub predicted_ns: SignedNanos,
    /// The lower end of the prediction's 95 % confidence interval.
    pub predicted_ci95_low_ns: Option<SignedNanos>,
    /// The upper end.
    pub predicted_ci95_high_ns: Option<SignedNanos>,
}

impl Additivity {
    /// Rounded to what is published: no digit that another machine's arithmetic would give otherwise.
    pub(crate) fn new(processor: &str, tested: &graph::AdditivityTest) -> Additivity {
        Additivity {
            processor: processor.to_owned(),
            segments: tested.held_back.iter().map(TestedSegment::from).collect(),
            misfit_percent: round(tested.misfit_percent, 1e3),
            p_value: tested.p_value.map(|p| round(p, 1e6)),
            ns_per_passing_byte: tested.ns_per_passing_byte.map(MovingNumber::from),
        }
    }

    /// The same of segments that begin and end so many layers later.
    pub(crate) fn moved_by(mut self, layers: u32) -> Additivity {
        for segment in &mut self.segments {
            segment.first_layer += layers;
            segment.last_layer += layers;
        }
        self
    }
}

impl From<&graph::HeldBack> for TestedSegment {
    fn from(held_back: &graph::HeldBack) -> Self {
        let (low, high) = held_back.predicted.ci95.unzip();
        TestedSegment {
            first_layer: held_back.segment.first(),
            last_layer: held_back.segment.last(),
            measured_ns: held_back.measured,
            predicted_ns: held_back.predicted.value,
            predicted_ci95_low_ns: low,
            predicted_ci95_high_ns: high,
        }
    }
}

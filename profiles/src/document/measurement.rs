//! How one processor was measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::segment_object::{self, SegmentObject};
use crate::design::Design;
use crate::method::Method;
use crate::segment::Segment;
use crate::units::Nanos;

/// How one processor was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The processor, by its name.
    pub processor: String,
    /// Which segments were measured.
    pub design: Design,
    /// How many samples each segment has; with the design adaptive, at least. The sentinel may have
    /// more with any design.
    pub samples_per_segment: u64,
    /// In how many visits each segment was timed, loaded anew for each; with the design adaptive, at least. Absent where
    /// nobody noted it: then no interval holds what differs between visits.
    pub visits: Option<u64>,
    /// The idle time before each inference.
    pub gap_ns: Nanos,
    /// How layer times came from the samples.
    pub method: Method,
    /// The seed of the order in which segments were run and of their inputs.
    pub seed: u64,
    /// The half width that every interval should have, as a share, where the design chooses as it goes; absent with
    /// other designs, and where it was not recorded.
    pub target: Option<f64>,
    /// How much device time there was, where the design chooses as it goes; absent likewise.
    pub budget_ns: Option<Nanos>,
    /// The segment that was timed at both ends of every block to see whether the device stayed as it was; absent where
    /// the processor can run no layer.
    #[serde(with = "segment_object")]
    #[schemars(with = "Option<SegmentObject>")]
    pub sentinel: Option<Segment>,
}

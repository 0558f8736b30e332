//! Journal entries: what the agent did, in the order in which it did it.

use std::fmt;

use layerlab_profiles::Segment;
use layerlab_profiles::accuracy::Tally;
use layerlab_profiles::document;
use layerlab_profiles::energy::{EnergyWindow, Meter};
use layerlab_profiles::units::{Bytes, NanoJoules, Nanos};
use serde::{Deserialize, Serialize};

use crate::conditions::Conditions;
use crate::frames::FormAnswer;
use crate::order::Order;
use crate::placed::Placed;
use crate::tensors::PackedTensor;

/// One line of a run's journal. Entries of a run are numbered from 1 without gaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The entry's number in its run.
    pub sequence: u64,
    /// The number of the order that it is about.
    pub order: u32,
    /// What happened, with its particulars.
    pub event: Event,
}

/// What happened to an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The order is in the queue; from here on it survives the agent's death.
    Accepted {
        /// The order itself.
        order: Order,
    },
    /// A processor cannot run a segment, which is therefore not timed. The order goes on without it.
    Unsupported {
        /// The processor, by the name that the agent's hello gave it.
        processor: String,
        /// The segment that it cannot run.
        segment: Segment,
        /// What of the segment it lacks, for a person.
        reason: String,
        /// What the segment needs of the processor's memory, where that does not hold it; absent where another reason
        /// says why it cannot run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needed_bytes: Option<Bytes>,
    },
    /// The sentinel of the order is this segment, because the processor cannot run the whole model or its memory does
    /// not hold it. Absent where the whole model is the sentinel.
    Sentinel {
        /// The longest segment that the processor runs and holds; of several, the first.
        segment: Segment,
    },
    /// A segment was loaded.
    Loaded {
        /// The processor that it was loaded on.
        processor: String,
        /// The segment that was loaded.
        segment: Segment,
        /// How long loading took.
        load_ns: Nanos,
        /// The processor's memory that it takes.
        memory_bytes: Bytes,
        /// Whether it was compiled for this load, rather than read from the compile cache; absent where nothing is compiled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        compiled: Option<bool>,
        /// Where the runtime placed the segment's nodes; absent for runtimes that are part of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        placed: Option<Placed>,
    },
    /// A segment is warm.
    Warm {
        /// The segment that is warm.
        segment: Segment,
        /// How many runs it took.
        runs: u32,
    },
    /// A block begins: segments that are loaded together take turns.
    BlockStarted {
        /// The block's number in its order, counted from 0. A block that is measured again is another.
        block: u32,
        /// The segments that take turns.
        segments: Vec<Segment>,
        /// How long the sentinel took: the median of a few runs.
        sentinel_ns: Nanos,
        /// The state of the device.
        conditions: Conditions,
    },
    /// One inference was timed.
    Sample {
        /// The block that it belongs to.
        block: u32,
        /// The sample's number in its order: the segment's place in the order times the samples per
        /// segment, plus the repetition. Each occurs once, however often the agent was restarted.
        index: u64,
        /// The layers that ran as one unit.
        segment: Segment,
        /// When it started, on the phone's monotonic clock.
        started_ns: Nanos,
        /// How long it took.
        duration_ns: Nanos,
    },
    /// A block is over.
    BlockEnded {
        /// The block's number in its order, as [`Event::BlockStarted`] gave it.
        block: u32,
        /// How long the sentinel took.
        sentinel_ns: Nanos,
        /// The state of the device.
        conditions: Conditions,
        /// Why the block's samples must not be used; absent when they may.
        rejection: Option<Rejection>,
        /// What else ran meanwhile; absent where the device does not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disturbance: Option<Disturbance>,
    },
    /// The processor begins to be kept busy. What was journaled of that before, by an agent that was killed, is void.
    SoakBegun,
    /// Inferences of the whole model, one after the other.
    SoakSlice {
        /// Whether it is one inference after a rest, before the processor is kept busy.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        rested: bool,
        /// When the first began, on the device's monotonic clock.
        started_ns: Nanos,
        /// How many there were.
        runs: u64,
        /// How long they took: their median.
        median_ns: Nanos,
        /// The state of the device before the first, where it was looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conditions: Option<Conditions>,
    },
    /// Energy begins to be measured. What was journaled of that before, by an agent that was killed, is void.
    EnergyBegun {
        /// The power meter that is read.
        meter: Meter,
    },
    /// The meter was read for a while.
    EnergyWindow {
        /// The segment that was run over and over; absent where the device idled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        segment: Option<Segment>,
        /// When it began, on the device's monotonic clock.
        started_ns: Nanos,
        /// How long it was.
        duration_ns: Nanos,
        /// How many inferences it holds.
        runs: u64,
        /// What the device drew, by the meter.
        energy_nj: NanoJoules,
        /// From how many readings that is known.
        readings: u64,
        /// The standard deviation of the readings, in µW.
        scatter_uw: u64,
        /// What all readings until now are multiples of, in µW; absent where that is not told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_uw: Option<u64>,
    },
    /// Numbers that a placement answered, where the order keeps them. Those of an answer come before it is judged, and once
    /// more if the agent was killed in between.
    Answered {
        /// The answer, by its place in the evaluation set.
        answer: u64,
        /// The placement, by its place in the order's.
        placement: u32,
        /// How many numbers of the answer under this placement come before these.
        first: u64,
        /// Each the bits of a 32-bit float: numbers in decimal would lose NaN.
        value_bits: Vec<u32>,
    },
    /// One answer was given under each of the order's placements, and judged.
    Judged {
        /// The answer, by its place in the evaluation set.
        answer: u64,
        /// What each placement got right and wrong, in the order of the order's placements.
        tallies: Vec<Tally>,
        /// Floating-point operations that were executed; placements share those that they have in common.
        flop: u64,
    },
    /// An image was answered, and each of the order's forms of it.
    FramesAnswered {
        /// The image, by its place in the evaluation set.
        image: u64,
        /// How long the inference on the image as it is took.
        infer_ns: Nanos,
        /// The scores of all classes, each the bits of a 32-bit float: numbers in decimal would lose NaN.
        score_bits: Vec<u32>,
        /// What came of each form, in the order's order.
        forms: Vec<FormAnswer>,
    },
    /// The tensors of an image were packed and unpacked, and each came back as it was sent.
    TensorsPacked {
        /// The image, by its place in the evaluation set.
        image: u64,
        /// What came of each tensor that is compressed, by the layer that gives it.
        tensors: Vec<PackedTensor>,
        /// What the answer in 32 bits got right and wrong; absent where nothing is judged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole: Option<Tally>,
        /// What the answers got right and wrong of which one cut's tensors were rounded to 8 bits, for each cut that has any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        crossed: Vec<Tally>,
    },
    /// The device has rested.
    CooledDown {
        /// How long the device rested, all polls together.
        rested_ns: Nanos,
        /// The state that it is in now.
        conditions: Conditions,
    },
    /// The order is done.
    Finished,
    /// The order cannot be done. No more entries of this order follow.
    Failed {
        /// What went wrong, as a kind and as a sentence for a person.
        failure: Failure,
    },
}

impl Event {
    /// Whether nothing more will be said about the order.
    pub fn is_final(&self) -> bool {
        matches!(self, Event::Finished | Event::Failed { .. })
    }

    /// The window that it is about, of an order that measures this processor; `None` of any other event.
    pub fn energy_window(&self, processor: &str, order: u32) -> Option<EnergyWindow> {
        let Event::EnergyWindow {
            segment,
            started_ns,
            duration_ns,
            runs,
            energy_nj,
            readings,
            scatter_uw,
            step_uw,
        } = *self
        else {
            return None;
        };
        Some(EnergyWindow {
            processor: processor.to_owned(),
            order,
            segment,
            started: started_ns,
            duration: duration_ns,
            runs,
            energy: energy_nj,
            readings,
            scatter_uw,
            step_uw,
        })
    }
}

/// Why the samples of a block must not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Rejection {
    /// The sentinel was not as fast as in the run's accepted blocks.
    SentinelMoved {
        /// The median of the sentinels of the run's accepted blocks.
        baseline_ns: Nanos,
        /// The one that differs.
        sentinel_ns: Nanos,
    },
    /// The device throttled.
    Throttling {
        /// Its thermal status.
        thermal_status: u8,
    },
    /// A clock cap changed during the block.
    ClockCapChanged {
        /// The group of cores.
        group: String,
    },
    /// Something else ran on the device.
    Disturbed {
        /// As in [`Disturbance::crowded_samples`].
        crowded_samples: u64,
        /// How many samples the block has.
        samples: u64,
        /// As in [`Disturbance::stolen_percent`].
        stolen_percent: u64,
    },
}

/// What else ran on the device during a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disturbance {
    /// How many samples began while other programs ran on cores that they need.
    pub crowded_samples: u64,
    /// The share of its cores' time that a virtual machine's host gave to others.
    pub stolen_percent: u64,
}

impl Disturbance {
    /// Whether a block of so many samples is to be measured again.
    pub fn is_too_much(&self, samples: u64) -> bool {
        document::Disturbance::from(*self).is_too_much(samples)
    }
}

impl From<Disturbance> for document::Disturbance {
    fn from(disturbance: Disturbance) -> Self {
        document::Disturbance {
            crowded_samples: disturbance.crowded_samples,
            stolen_percent: disturbance.stolen_percent,
        }
    }
}

impl Rejection {
    /// Whether the device was slower than it is to be, which rest may mend.
    pub fn is_slower(&self) -> bool {
        match self {
            Rejection::SentinelMoved {
                baseline_ns,
                sentinel_ns,
            } => sentinel_ns > baseline_ns,
            Rejection::Throttling { .. } | Rejection::ClockCapChanged { .. } => true,
            Rejection::Disturbed { .. } => false,
        }
    }
}

impl From<&Rejection> for document::Rejected {
    fn from(rejection: &Rejection) -> Self {
        match rejection {
            Rejection::SentinelMoved { .. } => document::Rejected::SentinelMoved,
            Rejection::Throttling { .. } => document::Rejected::Throttling,
            Rejection::ClockCapChanged { .. } => document::Rejected::ClockCapChanged,
            Rejection::Disturbed { .. } => document::Rejected::Disturbed,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::SentinelMoved {
                baseline_ns,
                sentinel_ns,
            } => {
                write!(
                    f,
                    "the whole model took {sentinel_ns} instead of {baseline_ns}"
                )
            }
            Rejection::Throttling { thermal_status } => {
                write!(f, "the device throttled (thermal status {thermal_status})")
            }
            Rejection::ClockCapChanged { group } => {
                write!(f, "the highest frequency of {group} changed")
            }
            Rejection::Disturbed {
                crowded_samples,
                samples,
                stolen_percent,
            } => {
                write!(
                    f,
                    "{crowded_samples} of {samples} samples began while other programs ran on the cores that they need, and the \
                     machine's host took {stolen_percent} % of their time"
                )
            }
        }
    }
}

/// Why an order cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// What sort of failure it is.
    pub kind: FailureKind,
    /// One sentence that names the thing and the remedy.
    pub message: String,
}

/// Sorts of failure, as far as the daemon must tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The model cannot be read, cut or run.
    Model,
    /// The processor's memory does not hold a single segment of the order.
    OutOfMemory,
    /// The order names a processor, segment or other thing that does not exist.
    Order,
    /// The order needs a segment that its processor cannot run.
    Unsupported,
    /// The processor or its runtime failed.
    Device,
    /// The device stayed hot or unsteady however long it rested: no number of it would be a good one.
    Throttled,
}

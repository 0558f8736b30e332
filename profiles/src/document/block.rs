//! Blocks: in which turns samples were taken, and whether they count (docs/method.md §5).

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Load, ProbeSample, ProvedPlacement, Sample, SoakRow, Unsupported};
use crate::energy::{EnergyWindow, Meter};
use crate::segment::Segment;
use crate::units::{MilliCelsius, Nanos};

/// One block: segments that were loaded together and took turns, between two looks at the sentinel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The processor, by the name that the header gives it.
    pub processor: String,
    /// The order that it belongs to.
    pub order: u32,
    /// Its number in the order, counted from 0. A block that was measured again is another.
    pub number: u32,
    /// How long the device rested before it, to cool down.
    pub rested: Nanos,
    /// How things were before its first sample.
    pub before: BlockEnd,
    /// How things were after its last sample.
    pub after: BlockEnd,
    /// Why its samples are not used; absent when they are.
    pub rejection: Option<Rejected>,
    /// What else ran meanwhile; absent where the device did not tell.
    pub disturbance: Option<Disturbance>,
}

/// What else ran on the device during a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disturbance {
    /// How many samples began while other programs ran on cores that they need.
    pub crowded_samples: u64,
    /// The share of its cores' time that a virtual machine's host gave to others.
    pub stolen_percent: u64,
}

/// So many per cent of a block's samples may be crowded, and so much time be stolen.
const TOLERATED_PERCENT: u64 = 5;

impl Disturbance {
    /// Whether a block of so many samples is to be measured again.
    pub fn is_too_much(&self, samples: u64) -> bool {
        self.crowded_samples.saturating_mul(100) > samples.saturating_mul(TOLERATED_PERCENT)
            || self.stolen_percent > TOLERATED_PERCENT
    }
}

/// The sentinel and the device at one end of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockEnd {
    /// How long the whole model took: the median of a few runs.
    pub sentinel: Nanos,
    /// The state of the device.
    pub conditions: Conditions,
}

/// The state of a device between inferences. What it does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Android's thermal status: 0 none, 1 light, 2 moderate, 3 severe, 4 critical, 5 emergency, 6 shutdown.
    pub thermal_status: Option<u8>,
    /// The temperature of the hottest sensor that can be read.
    pub temperature_millicelsius: Option<MilliCelsius>,
    /// The temperature of its skin: what Android throttles by.
    pub skin_temperature_millicelsius: Option<MilliCelsius>,
    /// The temperature of the hottest part of its SoC.
    pub soc_temperature_millicelsius: Option<MilliCelsius>,
    /// The temperature of its battery.
    pub battery_temperature_millicelsius: Option<MilliCelsius>,
    /// How full the battery is.
    pub battery_percent: Option<u8>,
    /// Whether it gets power, and its battery is not emptied in spite of that.
    pub charging: Option<bool>,
    /// The highest frequency that each group of cores may have now, by the group's name.
    pub frequency_caps_khz: BTreeMap<String, u64>,
    /// The frequency that each group of cores, and each accelerator that the kernel tells of, has now, by its name.
    pub frequencies_khz: BTreeMap<String, u64>,
}

/// Why the samples of a block are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rejected {
    /// The sentinel was not as fast as in the blocks that count.
    SentinelMoved,
    /// The device throttled.
    Throttling,
    /// A clock cap changed during the block.
    ClockCapChanged,
    /// The processor was in another state than most of the time.
    OtherState,
    /// Something else ran on the device.
    Disturbed,
}

impl Rejected {
    /// The word in `blocks.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Rejected::SentinelMoved => "sentinel-moved",
            Rejected::Throttling => "throttling",
            Rejected::ClockCapChanged => "clock-cap-changed",
            Rejected::OtherState => "other-state",
            Rejected::Disturbed => "disturbed",
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was measured: the samples to use, those not to use, the blocks that they were taken in, what could not be run
/// and what loading took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// The samples of accepted blocks.
    pub samples: Vec<Sample>,
    /// The samples of rejected blocks. They are kept as evidence and used for nothing.
    pub rejected: Vec<Sample>,
    /// Every block that ended, accepted or not.
    pub blocks: Vec<Block>,
    /// What processors turned out not to run.
    pub unsupported: Vec<Unsupported>,
    /// The sentinels that were not the whole model, by processor, for the header's measurements.
    pub sentinels: BTreeMap<String, Segment>,
    /// What it took to load segments, in the order of time; only the first load of each counts.
    pub loads: Vec<Load>,
    /// Where runtimes placed the nodes of loaded segments, in the order of time; only the first load of each counts.
    pub placements: Vec<ProvedPlacement>,
    /// The samples of probes, those of rejected blocks among them.
    pub probes: Vec<ProbeSample>,
    /// What was timed while the device was kept busy, to be steady.
    pub soak: Vec<SoakRow>,
    /// The windows in which a power meter was read.
    pub energy: Vec<EnergyWindow>,
    /// That meter.
    pub meter: Option<Meter>,
}

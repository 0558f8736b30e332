//! A checker that shares nothing with the solvers: it walks a plan layer by layer, moves each tensor when it is first
//! needed on the other side, and adds up again what that costs.

mod accuracy;

use std::cmp::Ordering;

use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::{Bytes, Segment};

use super::energy::Power;
use super::link::Link;
use super::network::{Group, SplitNetwork, Tensor};
use super::packing::Packing;
use super::plan::SplitPlan;
use super::quantity::Quantity;
use super::side::{Direction, Side};

pub use accuracy::{AccuracyFault, check_accuracy};

/// What is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitFault {
    /// Layers are skipped, repeated or not there.
    #[error("group {segment} follows layer {after}")]
    OutOfOrder {
        /// The group.
        segment: Segment,
        /// The last layer that ran before it; 0 is none.
        after: u32,
    },
    /// The plan ends too early.
    #[error("layers after {after} do not run")]
    Unfinished {
        /// The last layer that runs.
        after: u32,
    },
    /// A side cannot run a group as one unit.
    #[error("the {side} cannot run {segment} as one unit")]
    NoSuchGroup {
        /// The group.
        segment: Segment,
        /// The side.
        side: Side,
    },
    /// Something that is made within a group is needed after it.
    #[error("tensor {tensor}, made within {segment}, is needed after it")]
    NotSplit {
        /// The group.
        segment: Segment,
        /// The tensor's place in the network's list.
        tensor: usize,
    },
    /// A tensor is moved in vain, or not at all.
    #[error("tensor {tensor} is planned to cross as {planned:?}, and needed as {needed:?}")]
    Transfer {
        /// The tensor's place in the network's list.
        tensor: usize,
        /// The ways that it is planned to go.
        planned: Vec<Direction>,
        /// The ways that it must go.
        needed: Vec<Direction>,
    },
    /// A tensor cannot be packed so.
    #[error("tensor {tensor} is planned to be packed by {codec}, for which it has no packing")]
    NoSuchPacking {
        /// The tensor's place in the network's list.
        tensor: usize,
        /// What it is said to be packed by.
        codec: TensorCodec,
    },
    /// A sum is wrong; in ns or nJ.
    #[error("{quantity} is planned as {planned}, and is {recalculated}")]
    Cost {
        /// Which.
        quantity: Quantity,
        /// What the plan says.
        planned: u64,
        /// What it is.
        recalculated: u128,
    },
    /// The parts of the latency are wrong, in ns: phone, server, upload, download.
    #[error("the latency is planned as {planned:?}, and is {recalculated:?}")]
    Shares {
        /// What the plan says.
        planned: [u64; 4],
        /// What they are.
        recalculated: [u128; 4],
    },
    /// A limit is not kept; in ns or nJ.
    #[error("{quantity} is {recalculated}, above its limit {limit}")]
    Limit {
        /// Of what.
        quantity: Quantity,
        /// The limit.
        limit: u64,
        /// What it is.
        recalculated: u128,
    },
}

/// What the walk adds up, in ns and nJ.
#[derive(Default)]
struct Ledger {
    phone: u128,
    server: u128,
    upload: u128,
    download: u128,
    energy: u128,
}

impl Ledger {
    /// Pays for one transfer: its wait and S/B, the radio at α t + β for S/B, and the idle phone for the wait (jointdnn
    /// Eq. 21).
    fn cross(&mut self, link: &Link, idle: Power, direction: Direction, bytes: Bytes) {
        let (bps, wait, slope, total) = match direction {
            Direction::Upload => {
                let slope = link.radio.upload_microwatts_per_mbps;
                (link.upload_bps, link.upload_wait, slope, &mut self.upload)
            }
            Direction::Download => {
                let slope = link.radio.download_microwatts_per_mbps;
                (
                    link.download_bps,
                    link.download_wait,
                    slope,
                    &mut self.download,
                )
            }
        };
        let bps = u128::from(bps);
        let (few, many) = (bytes.as_bytes(), wait.large_from.as_bytes());
        // Between the two waits in proportion, which is the last from so many bytes on.
        let wait = match few.cmp(&many) {
            Ordering::Less => {
                let shares = [(wait.smallest, many - few), (wait.large, few)];
                let weighted =
                    shares.map(|(time, share)| u128::from(time.as_nanos()) * u128::from(share));
                rounded(weighted.iter().sum(), u128::from(many))
            }
            Ordering::Equal | Ordering::Greater => u128::from(wait.large.as_nanos()),
        };
        let sending = rounded(u128::from(bytes.as_bytes()) * 8 * 1_000_000_000, bps);
        let rising = rounded(u128::from(slope) * bps, 1_000_000);
        let power = rising + u128::from(link.radio.base.as_microwatts());
        *total += wait + sending;
        self.energy += rounded(power * sending, 1_000_000) + self::spent(idle, wait);
    }

    /// Pays for a tensor's transfer, in the form in which the plan has it cross.
    fn carry(
        &mut self,
        over: (&Link, Power),
        plan: &SplitPlan,
        moved: (usize, Direction, &Tensor),
        packings: &[Packing],
    ) {
        let ((link, idle), (place, way, tensor)) = (over, moved);
        let planned = plan.transfers().iter().find(|one| one.tensor == place);
        let packing = packings
            .iter()
            .find(|packing| planned.is_some_and(|one| one.codec == Some(packing.codec)));
        let Some(packing) = packing else {
            return self.cross(link, idle, way, tensor.bytes);
        };
        let (packed, sent_by_phone) = match way {
            Direction::Upload => (packing.upload, true),
            Direction::Download => (packing.download, false),
        };
        let times = [packed.pack, packed.unpack].map(|time| u128::from(time.as_nanos()));
        let [on_phone, on_server] = match sent_by_phone {
            true => times,
            false => [times[1], times[0]],
        };
        self.phone += on_phone;
        self.server += on_server;
        self.energy += spent(idle, on_server);
        self.cross(link, idle, way, packed.bytes);
    }
}

/// The nearest whole number to `one / other`, halves up; 0 for 0 / 0, as a link without bandwidth has no plan.
fn rounded(one: u128, other: u128) -> u128 {
    (2 * one + other).checked_div(2 * other).unwrap_or(0)
}

/// What a power spends in some ns, in nJ.
fn spent(power: Power, nanos: u128) -> u128 {
    rounded(u128::from(power.as_microwatts()) * nanos, 1_000_000)
}

/// Recalculates a plan from what was measured; empty where it is sound. What is structurally wrong is found before sums
/// are.
pub fn check_split(
    plan: &SplitPlan,
    network: &SplitNetwork,
    link: &Link,
    idle: Power,
) -> Vec<SplitFault> {
    let (mut faults, mut ledger) = (structure(plan, network), Ledger::default());
    if !faults.is_empty() {
        return faults;
    }
    // By layer, 0 being the input: where it ran.
    let mut side_of = vec![Side::Phone];
    let mut crossed: Vec<Vec<Direction>> = vec![Vec::new(); network.tensors().len()];
    for placed in plan.groups() {
        let group = network
            .groups()
            .iter()
            .find(|one| one.segment == placed.segment);
        compute(&mut ledger, idle, placed.side, group);
        for layer in placed.segment.first()..=placed.segment.last() {
            side_of.push(placed.side);
            let weights = network.returned_weights()[layer as usize - 1];
            if placed.side == Side::Server && weights > Bytes::ZERO {
                ledger.cross(link, idle, Direction::Download, weights);
            }
            for (place, (tensor, ways)) in network.tensors().iter().zip(&mut crossed).enumerate() {
                let is_used = tensor.consumers.contains(&layer);
                // A consumer comes after its producer, which has run.
                let is_away = || side_of[tensor.producer as usize] != placed.side;
                if is_used && ways.is_empty() && is_away() {
                    let way = placed.side.arrival();
                    let packings = &network.packings()[place];
                    ledger.carry((link, idle), plan, (place, way, tensor), packings);
                    ways.push(way);
                }
            }
        }
    }
    for (place, (tensor, ways)) in network.tensors().iter().zip(&mut crossed).enumerate() {
        let is_away = side_of[tensor.producer as usize] == Side::Server;
        if tensor.is_result && is_away && ways.is_empty() {
            let way = Direction::Download;
            let packings = &network.packings()[place];
            ledger.carry((link, idle), plan, (place, way, tensor), packings);
            ways.push(way);
        }
    }
    for (tensor, needed) in crossed.into_iter().enumerate() {
        let planned = plan.transfers().iter().filter(|one| one.tensor == tensor);
        for codec in planned.clone().filter_map(|one| one.codec) {
            let mut packings = network.packings()[tensor].iter();
            if !packings.any(|packing| packing.codec == codec) {
                faults.push(SplitFault::NoSuchPacking { tensor, codec });
            }
        }
        let planned: Vec<Direction> = planned.map(|one| one.direction).collect();
        if planned != needed {
            faults.push(SplitFault::Transfer {
                tensor,
                planned,
                needed,
            });
        }
    }
    sums(plan, &ledger, &mut faults);
    faults
}

/// Pays for what a group computes.
fn compute(ledger: &mut Ledger, idle: Power, side: Side, group: Option<&Group>) {
    match (
        side,
        group.and_then(|one| one.phone),
        group.and_then(|one| one.server),
    ) {
        (Side::Phone, Some(phone), _) => {
            ledger.phone += u128::from(phone.time.as_nanos());
            ledger.energy += u128::from(phone.energy.as_nanojoules());
        }
        (Side::Server, _, Some(server)) => {
            let nanos = u128::from(server.as_nanos());
            ledger.server += nanos;
            ledger.energy += spent(idle, nanos);
        }
        // Which `structure` has found.
        (Side::Phone, None, _) | (Side::Server, _, None) => {}
    }
}

/// Whether the groups are the network's and each layer runs once, in order.
fn structure(plan: &SplitPlan, network: &SplitNetwork) -> Vec<SplitFault> {
    let (mut faults, mut after) = (Vec::new(), 0);
    for placed in plan.groups() {
        let (segment, side) = (placed.segment, placed.side);
        if segment.first() != after + 1 || segment.last() > network.layers() {
            faults.push(SplitFault::OutOfOrder { segment, after });
        }
        let can_run = |group: &Group| match side {
            Side::Phone => group.phone.is_some(),
            Side::Server => group.server.is_some(),
        };
        let mut same = network.groups().iter().filter(|one| one.segment == segment);
        if !same.any(can_run) {
            faults.push(SplitFault::NoSuchGroup { segment, side });
        }
        for (tensor, one) in network.tensors().iter().enumerate() {
            let is_within = one.producer >= segment.first() && one.producer < segment.last();
            let is_later = one.consumers.iter().any(|&to| to > segment.last());
            if is_within && (is_later || one.is_result) {
                faults.push(SplitFault::NotSplit { segment, tensor });
            }
        }
        after = segment.last();
    }
    if after < network.layers() {
        faults.push(SplitFault::Unfinished { after });
    }
    faults
}

/// Compares the sums, and them with the limits.
fn sums(plan: &SplitPlan, ledger: &Ledger, faults: &mut Vec<SplitFault>) {
    let parts = [ledger.phone, ledger.server, ledger.upload, ledger.download];
    let latency: u128 = parts.iter().sum();
    let recalculated = [latency, ledger.energy, ledger.server];
    for (quantity, recalculated) in Quantity::ALL.into_iter().zip(recalculated) {
        let planned = plan.cost().of(quantity);
        if u128::from(planned) != recalculated {
            faults.push(SplitFault::Cost {
                quantity,
                planned,
                recalculated,
            });
        }
        match plan.goal().limits.of(quantity) {
            Some(limit) if recalculated > u128::from(limit) => faults.push(SplitFault::Limit {
                quantity,
                limit,
                recalculated,
            }),
            _ => {}
        }
    }
    let shares = plan.shares();
    let shares = [shares.phone, shares.server, shares.upload, shares.download];
    let planned = shares.map(layerlab_profiles::Nanos::as_nanos);
    if planned.map(u128::from) != parts {
        faults.push(SplitFault::Shares {
            planned,
            recalculated: parts,
        });
    }
}

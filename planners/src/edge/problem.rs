//! A network over a link, as the solvers see it: each group's and each transfer's cost, and how runs of layers follow
//! one another.

use std::ops::Add;

use layerlab_profiles::tensors::TensorCodec;
use layerlab_profiles::{Bytes, Nanos};

use super::cost::SplitCost;
use super::energy::Power;
use super::error::SplitError;
use super::goal::SplitGoal;
use super::link::Link;
use super::network::SplitNetwork;
use super::packing::Packing;
use super::quantity::Quantity;
use super::side::{Direction, Side};

/// The most tensors across one cut: each lies on one of the sides or on both, so that there are 3^12 = 531,441 states.
const MOST_OPEN: usize = 12;

/// The most that one group or transfer may cost, in ns or nJ: over a week, or a megajoule.
const MOST_COST: u64 = 1_000_000_000_000_000;

/// Where each tensor lies that is alive across a cut: two bits for each, in the order of [`SplitProblem::open`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TensorSides(u32);

/// The bit of a side; both bits are set where a tensor was transferred.
const fn bit(side: Side) -> u32 {
    match side {
        Side::Phone => 1,
        Side::Server => 2,
    }
}

impl TensorSides {
    fn at(self, place: usize) -> u32 {
        self.0 >> (2 * place) & 3
    }

    fn with(self, place: usize, sides: u32) -> TensorSides {
        TensorSides(self.0 | sides << (2 * place))
    }
}

/// A tensor and what each arrival of it costs.
#[derive(Clone, Debug)]
struct MovedTensor {
    consumers: Vec<usize>,
    /// 0 where no layer uses it.
    last_consumer: usize,
    is_result: bool,
    /// On the phone and on the server.
    arrivals: [Arrival; 2],
}

/// How a tensor arrives on a side: in the form in which it is there soonest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// What it is packed by; nothing where it crosses as it is.
    pub(super) codec: Option<TensorCodec>,
    /// All that it costs.
    pub(super) cost: SplitCost,
    /// Of the latency: what the phone computes.
    pub(super) phone: Nanos,
    /// Of the latency: what the link takes.
    pub(super) link: Nanos,
}

/// What a joint planner plans for: a network, a link, and what an idle phone draws.
#[derive(Clone, Debug)]
pub struct SplitProblem {
    network: SplitNetwork,
    /// Of groups i..=j in triangular order, on each side; nothing where they cannot run as one unit.
    groups: Vec<[Option<SplitCost>; 2]>,
    tensors: Vec<MovedTensor>,
    /// Of each layer, 0 being the input: the places of the tensors that it makes.
    made: Vec<Vec<usize>>,
    /// After each layer: the places of the tensors that a later layer uses, those of earlier producers first.
    open: Vec<Vec<usize>>,
}

impl SplitProblem {
    /// Prices the network's groups and transfers. While the server computes, the phone draws `idle` power (0 in the
    /// paper).
    ///
    /// A group that makes, before its last layer, a tensor that is needed after it is left out: it would have to be
    /// split there, and its two halves are groups of their own.
    ///
    /// # Errors
    /// A link without bandwidth, costs beyond 10^15 ns or nJ, more than 12 tensors alive across a cut.
    pub fn new(
        network: SplitNetwork,
        link: &Link,
        idle: Power,
    ) -> Result<SplitProblem, SplitError> {
        let layers = network.layers() as usize;
        let mut tensors = Vec::with_capacity(network.tensors().len());
        let mut made = vec![Vec::new(); layers + 1];
        let packings = network.packings().iter();
        for (place, (tensor, packings)) in network.tensors().iter().zip(packings).enumerate() {
            let arrival = |side| soonest_arrival(link, side, tensor.bytes, packings, idle);
            made[tensor.producer as usize].push(place);
            let consumers: Vec<usize> = tensor.consumers.iter().map(|&to| to as usize).collect();
            tensors.push(MovedTensor {
                last_consumer: consumers.iter().copied().max().unwrap_or(0),
                consumers,
                is_result: tensor.is_result,
                arrivals: [arrival(Side::Phone)?, arrival(Side::Server)?],
            });
        }
        let by_producer: Vec<usize> = made.concat();
        let open_after = |layer: usize| -> Vec<usize> {
            let open = by_producer.iter().copied().filter(|&place| {
                network.tensors()[place].producer as usize <= layer
                    && tensors[place].last_consumer > layer
            });
            open.collect()
        };
        let open: Vec<Vec<usize>> = (0..=layers).map(open_after).collect();
        let too_many = |(layer, open): (usize, &Vec<usize>)| SplitError::TooManyOpen {
            layer,
            open: open.len(),
            most: MOST_OPEN,
        };
        let mut cuts = open.iter().enumerate();
        if let Some(cut) = cuts.find(|(_, open)| open.len() > MOST_OPEN) {
            return Err(too_many(cut));
        }
        let groups = group_costs(&network, link, idle)?;
        Ok(SplitProblem {
            network,
            groups,
            tensors,
            made,
            open,
        })
    }

    /// What is split.
    pub fn network(&self) -> &SplitNetwork {
        &self.network
    }

    /// N.
    pub(super) fn layers(&self) -> usize {
        self.open.len() - 1
    }

    /// The state before the first layer: the input is on the phone.
    pub(super) fn start(&self) -> TensorSides {
        let places = 0..self.open[0].len();
        places.fold(TensorSides::default(), |sides, place| {
            sides.with(place, bit(Side::Phone))
        })
    }

    /// What it costs to run layers `first..=last` as one group on `side`, after everything before lies as `before`
    /// says, and how tensors lie then; nothing where the side cannot run them as one unit.
    ///
    /// A tensor arrives where it is first used on the other side, and lies on both sides from then on. A result is
    /// downloaded as soon as the server has it, since it must be in any case.
    pub(super) fn step(
        &self,
        before: TensorSides,
        (first, last): (usize, usize),
        side: Side,
    ) -> Option<(TensorSides, SplitCost)> {
        let mut cost = self.group_cost((first, last), side)?;
        let (here, both) = (bit(side), bit(Side::Phone) | bit(Side::Server));
        let (mut after, mut kept) = (TensorSides::default(), 0);
        for (place, &index) in self.open[first - 1].iter().enumerate() {
            let (tensor, mut sides) = (&self.tensors[index], before.at(place));
            let mut consumers = tensor.consumers.iter();
            if sides & here == 0 && consumers.any(|&to| to >= first && to <= last) {
                cost = cost + self.arrival(index, side).cost;
                sides = both;
            }
            if tensor.last_consumer > last {
                after = after.with(kept, sides);
                kept += 1;
            }
        }
        // What earlier layers of the group make is used within it.
        for &index in &self.made[last] {
            let (tensor, mut sides) = (&self.tensors[index], here);
            if tensor.is_result && side == Side::Server {
                cost = cost + self.arrival(index, Side::Phone).cost;
                sides = both;
            }
            if tensor.last_consumer > last {
                after = after.with(kept, sides);
                kept += 1;
            }
        }
        Some((after, cost))
    }

    /// What a group computes and returns, without tensors that cross the link; nothing where the side cannot run it as
    /// one unit.
    pub(super) fn group_cost(
        &self,
        (first, last): (usize, usize),
        side: Side,
    ) -> Option<SplitCost> {
        self.groups[triangular(first, last)][side as usize]
    }

    /// The same tensors with other groups, which cost so much.
    pub(super) fn with_groups(
        &self,
        cost: impl Fn((usize, usize), Side) -> Option<SplitCost>,
    ) -> SplitProblem {
        let mut groups = self.groups.clone();
        for last in 1..=self.layers() {
            for first in 1..=last {
                groups[triangular(first, last)] = Side::ALL.map(|side| cost((first, last), side));
            }
        }
        SplitProblem {
            groups,
            ..self.clone()
        }
    }

    /// How the tensor at a place of the network's list is moved to a side.
    pub(super) fn arrival(&self, tensor: usize, side: Side) -> Arrival {
        self.tensors[tensor].arrivals[side as usize]
    }

    /// Refuses a goal that asks for more of packed tensors than that they arrive soon.
    pub(super) fn refuse_packed(&self, goal: &SplitGoal) -> Result<(), SplitError> {
        let asked = goal.limits.limited().map(|(quantity, _)| quantity);
        let mut others = asked
            .chain([goal.minimise])
            .filter(|&it| it != Quantity::Latency);
        match others.next() {
            Some(other) if self.has_packings() => Err(SplitError::PackedGoal(other)),
            _ => Ok(()),
        }
    }

    /// Whether some tensor may be packed.
    pub(super) fn has_packings(&self) -> bool {
        self.network.packings().iter().any(|it| !it.is_empty())
    }
}

/// The place of group first..=last in triangular order.
const fn triangular(first: usize, last: usize) -> usize {
    last * (last - 1) / 2 + first - 1
}

/// The form in which a tensor of so many bytes is soonest on a side; of two that are as soon the first, which is that as it is.
fn soonest_arrival(
    link: &Link,
    side: Side,
    bytes: Bytes,
    packings: &[Packing],
    idle: Power,
) -> Result<Arrival, SplitError> {
    let direction = side.arrival();
    let moved = transfer_cost(link, direction, bytes, idle)?;
    let mut soonest = Arrival {
        codec: None,
        cost: moved,
        phone: Nanos::ZERO,
        link: moved.latency,
    };
    for packing in packings {
        let packed = packing.one_way(direction);
        let moved = transfer_cost(link, direction, packed.bytes, idle)?;
        let [phone, server] = Side::ALL.map(|one| packed.on(one, side));
        let cost = SplitCost {
            latency: moved.latency + phone + server,
            energy: moved.energy + idle.over(server),
            server_time: server,
        };
        if !is_moderate(&cost) {
            return Err(SplitError::TransferTooCostly {
                direction,
                bytes: packed.bytes.as_bytes(),
            });
        }
        if cost.latency < soonest.cost.latency {
            soonest = Arrival {
                codec: Some(packing.codec),
                cost,
                phone,
                link: moved.latency,
            };
        }
    }
    Ok(soonest)
}

fn transfer_cost(
    link: &Link,
    direction: Direction,
    bytes: Bytes,
    idle: Power,
) -> Result<SplitCost, SplitError> {
    let (latency, energy) = link.transfer(direction, bytes, idle)?;
    let cost = SplitCost {
        latency,
        energy,
        server_time: Nanos::ZERO,
    };
    let too_costly = SplitError::TransferTooCostly {
        direction,
        bytes: bytes.as_bytes(),
    };
    is_moderate(&cost).then_some(cost).ok_or(too_costly)
}

fn is_moderate(cost: &SplitCost) -> bool {
    cost.latency.as_nanos() <= MOST_COST && cost.energy.as_nanojoules() <= MOST_COST
}

/// What each group costs on each side, with the weights that the server returns; nothing where it must be split.
fn group_costs(
    network: &SplitNetwork,
    link: &Link,
    idle: Power,
) -> Result<Vec<[Option<SplitCost>; 2]>, SplitError> {
    let layers = network.layers() as usize;
    let mut returned = Vec::with_capacity(layers);
    for &bytes in network.returned_weights() {
        returned.push(match bytes == Bytes::ZERO {
            true => SplitCost::ZERO,
            false => transfer_cost(link, Direction::Download, bytes, idle)?,
        });
    }
    let mut costs = vec![[None; 2]; layers * (layers + 1) / 2];
    for group in network.groups() {
        let segment = group.segment;
        let must_be_split = network.tensors().iter().any(|tensor| {
            let is_inside = (segment.first()..segment.last()).contains(&tensor.producer);
            is_inside && tensor.is_needed_after(segment.last())
        });
        let phone = group.phone.map(|phone| SplitCost {
            latency: phone.time,
            energy: phone.energy,
            server_time: Nanos::ZERO,
        });
        let server = group.server.map(|time| SplitCost {
            latency: time,
            energy: idle.over(time),
            server_time: time,
        });
        for (cost, side) in [phone, server].iter().zip(Side::ALL) {
            if cost.is_some_and(|cost| !is_moderate(&cost)) {
                return Err(SplitError::GroupTooCostly { segment, side });
            }
        }
        if must_be_split {
            continue;
        }
        let (first, last) = (segment.first() as usize, segment.last() as usize);
        let weights = returned[first - 1..last].iter().copied();
        let server = server.map(|server| weights.fold(server, SplitCost::add));
        costs[triangular(first, last)] = [phone, server];
    }
    Ok(costs)
}

//! What a split planner answers: a plan with what it moves and where its time goes, or why there is none. Neither can
//! be changed.

use std::fmt;

use layerlab_profiles::Nanos;

use super::algorithm::SplitAlgorithm;
use super::cost::SplitCost;
use super::goal::SplitGoal;
use super::placed_group::PlacedGroup;
use super::problem::SplitProblem;
use super::quantity::Quantity;
use super::side::{Direction, Side};
use super::transfer::TensorTransfer;

/// The answer of one algorithm to one goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitOutcome {
    /// A split that keeps the goal's limits.
    Planned(SplitPlan),
    /// No split that the algorithm knows keeps them.
    Infeasible(SplitInfeasible),
}

impl SplitOutcome {
    /// The plan, if there is one.
    pub fn plan(&self) -> Option<&SplitPlan> {
        match self {
            SplitOutcome::Planned(plan) => Some(plan),
            SplitOutcome::Infeasible(_) => None,
        }
    }
}

/// Where a plan's latency goes; the parts add up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyShares {
    /// Computing on the phone, packing and unpacking too.
    pub phone: Nanos,
    /// Computing on the server, likewise.
    pub server: Nanos,
    /// Uploading tensors.
    pub upload: Nanos,
    /// Downloading tensors, and weights that the server updated.
    pub download: Nanos,
}

impl LatencyShares {
    /// The share of the link in the latency, as a fraction (jointdnn §4.1); 0 where nothing takes any time.
    pub fn communication(&self) -> f64 {
        let link = (self.upload + self.download).as_nanos() as f64;
        let total = link + (self.phone + self.server).as_nanos() as f64;
        if total > 0.0 { link / total } else { 0.0 }
    }
}

/// A split with its predicted costs, and what crosses the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPlan {
    algorithm: SplitAlgorithm,
    goal: SplitGoal,
    groups: Vec<PlacedGroup>,
    transfers: Vec<TensorTransfer>,
    cost: SplitCost,
    shares: LatencyShares,
}

impl SplitPlan {
    /// The plan of these groups, which cost so much.
    pub(super) fn new(
        problem: &SplitProblem,
        (algorithm, goal): (SplitAlgorithm, SplitGoal),
        cost: SplitCost,
        groups: Vec<PlacedGroup>,
    ) -> SplitPlan {
        let transfers = transfers(problem, &groups);
        let uploads = transfers
            .iter()
            .filter(|one| one.direction == Direction::Upload);
        let upload: Nanos = uploads
            .map(|one| problem.arrival(one.tensor, Side::Server).link)
            .sum();
        let packing = transfers
            .iter()
            .map(|one| problem.arrival(one.tensor, one.direction.to()).phone);
        let phone = groups.iter().filter(|group| group.side == Side::Phone);
        let phone = phone.filter_map(|group| {
            let (first, last) = (group.segment.first(), group.segment.last());
            problem.group_cost((first as usize, last as usize), group.side)
        });
        let phone = phone.map(|cost| cost.latency).chain(packing).sum();
        let shares = LatencyShares {
            phone,
            server: cost.server_time,
            upload,
            download: cost.latency - phone - cost.server_time - upload,
        };
        SplitPlan {
            algorithm,
            goal,
            groups,
            transfers,
            cost,
            shares,
        }
    }

    /// What found it.
    pub fn algorithm(&self) -> SplitAlgorithm {
        self.algorithm
    }

    /// What it is to achieve.
    pub fn goal(&self) -> SplitGoal {
        self.goal
    }

    /// Which layers run as one unit and where, in order.
    pub fn groups(&self) -> &[PlacedGroup] {
        &self.groups
    }

    /// What crosses the link, in the order of the network's tensors; returned weights are not among them.
    pub fn transfers(&self) -> &[TensorTransfer] {
        &self.transfers
    }

    /// Latency, energy and server time.
    pub fn cost(&self) -> SplitCost {
        self.cost
    }

    /// Where the latency goes.
    pub fn shares(&self) -> LatencyShares {
        self.shares
    }

    /// The sides in order, without repetition: `phone, server` of a network that is cut once.
    pub fn pattern(&self) -> Vec<Side> {
        let mut sides: Vec<Side> = self.groups.iter().map(|group| group.side).collect();
        sides.dedup();
        sides
    }
}

/// The tensors that some layer on the other side than their producer uses, or the phone wants.
fn transfers(problem: &SplitProblem, groups: &[PlacedGroup]) -> Vec<TensorTransfer> {
    // The input, "layer 0", is on the phone.
    let mut sides = vec![Side::Phone];
    for group in groups {
        sides.extend(std::iter::repeat_n(
            group.side,
            group.segment.layers() as usize,
        ));
    }
    let moved = |(tensor, one): (usize, &super::network::Tensor)| {
        let producer = sides[one.producer as usize];
        let wanted = one.is_result.then_some(Side::Phone);
        let consumers = one
            .consumers
            .iter()
            .map(|&consumer| sides[consumer as usize]);
        let to = consumers.chain(wanted).find(|&side| side != producer)?;
        Some(TensorTransfer {
            tensor,
            direction: to.arrival(),
            codec: problem.arrival(tensor, to).codec,
        })
    };
    let tensors = problem.network().tensors();
    tensors.iter().enumerate().filter_map(moved).collect()
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitInfeasible {
    pub(super) algorithm: SplitAlgorithm,
    pub(super) goal: SplitGoal,
    pub(super) why: WhyNoSplit,
}

/// Why an algorithm has no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNoSplit {
    /// No sequence of groups that the sides can run as one unit, where the algorithm may run them, covers all layers.
    NoGroups,
    /// Even the split that is least in one cost is above its limit; all in ns or nJ.
    Unreachable {
        /// The cost.
        quantity: Quantity,
        /// Its limit.
        limit: u64,
        /// The least of all splits that the algorithm considers.
        least: u64,
    },
    /// Each limit can be kept alone, but not all of them by one split.
    NotTogether,
}

impl SplitInfeasible {
    /// What found nothing.
    pub fn algorithm(&self) -> SplitAlgorithm {
        self.algorithm
    }

    /// What was to be achieved.
    pub fn goal(&self) -> SplitGoal {
        self.goal
    }

    /// Why there is no plan.
    pub fn why(&self) -> WhyNoSplit {
        self.why
    }
}

impl fmt::Display for SplitInfeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no plan: ", self.algorithm)?;
        match self.why {
            WhyNoSplit::NoGroups => {
                write!(
                    f,
                    "no groups that may run where it runs them cover all layers"
                )
            }
            WhyNoSplit::Unreachable {
                quantity,
                limit,
                least,
            } => {
                let unit = match quantity {
                    Quantity::Energy => "nJ",
                    Quantity::Latency | Quantity::ServerTime => "ns",
                };
                write!(
                    f,
                    "{quantity} is at least {least} {unit}, above the limit of {limit} {unit}"
                )
            }
            WhyNoSplit::NotTogether => write!(
                f,
                "each limit can be kept alone, but no split keeps all of them"
            ),
        }
    }
}

//! Why no split problem could be made of what was given, or no goal be looked for.

use layerlab_profiles::Segment;

use super::quantity::Quantity;
use super::side::{Direction, Side};

/// Why a network, a link or a goal is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// A network without layers has nothing to place.
    #[error("the network has no layers; give at least one")]
    NoLayers,
    /// Sums could leave 64 bits, and tables grow with the square of the layers.
    #[error("the network has {given} {what}; at most {most} are planned for")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many were given.
        given: usize,
        /// How many there may be.
        most: usize,
    },
    /// A group of layers that the network does not have.
    #[error("group {segment} is beyond the network's {layers} layers")]
    GroupBeyond {
        /// The group.
        segment: Segment,
        /// The network's layers.
        layers: u32,
    },
    /// Two costs for the same group.
    #[error("group {segment} is given twice; give each group once")]
    GroupTwice {
        /// The group.
        segment: Segment,
    },
    /// A group's time or energy is too large to be one inference's.
    #[error("group {segment} on the {side} costs more than 10^15 ns or nJ; check the units")]
    GroupTooCostly {
        /// The group.
        segment: Segment,
        /// The side.
        side: Side,
    },
    /// A tensor whose producer is no layer.
    #[error(
        "tensor {tensor} is produced by layer {producer}; producers are 0, the input, up to {layers}"
    )]
    Producer {
        /// The tensor's place in the list, from 0.
        tensor: usize,
        /// What was given.
        producer: u32,
        /// The network's layers.
        layers: u32,
    },
    /// A tensor that is used before it is there, or by no layer of the network.
    #[error(
        "tensor {tensor} of layer {producer} is used by layer {consumer}; users come after their producer, up to \
         layer {layers}"
    )]
    Consumer {
        /// The tensor's place in the list, from 0.
        tensor: usize,
        /// The layer that produces it.
        producer: u32,
        /// The layer that is said to use it.
        consumer: u32,
        /// The network's layers.
        layers: u32,
    },
    /// Weights are listed per layer.
    #[error("{given} sizes of weights are given for {layers} layers; give one for each")]
    Weights {
        /// How many were given.
        given: usize,
        /// The network's layers.
        layers: u32,
    },
    /// Packings are listed per tensor.
    #[error("packings are given for {given} tensors of {tensors}; give a list for each")]
    Packings {
        /// For how many they were given.
        given: usize,
        /// The network's tensors.
        tensors: usize,
    },
    /// What packing draws is not known, and the form that arrives soonest need not be the best for another quantity.
    #[error(
        "tensors are packed where they arrive sooner so, which is planned for the latency alone; leave out what is asked of \
         the {0}, or the packings"
    )]
    PackedGoal(Quantity),
    /// Nothing ever arrives over such a link.
    #[error("the {0} bandwidth is 0 bit/s; give what the link carries")]
    NoBandwidth(Direction),
    /// A transfer that takes longer than any inference.
    #[error("the {direction} of {bytes} bytes costs more than 10^15 ns or nJ; check the units")]
    TransferTooCostly {
        /// Which way.
        direction: Direction,
        /// The size.
        bytes: u64,
    },
    /// There are too many states of where tensors lie.
    #[error("{open} tensors are alive after layer {layer}; at most {most} are planned for")]
    TooManyOpen {
        /// The layer before the cut; 0 is before the first.
        layer: usize,
        /// How many tensors cross the cut.
        open: usize,
        /// How many may.
        most: usize,
    },
    /// Nothing takes no time, and nothing runs on no energy.
    #[error("the limit of {0} is 0; give a limit above 0, or none")]
    ZeroLimit(Quantity),
    /// What layers cost on one processor, and on another, is not of one network.
    #[error(
        "the network of the placements' digit {digit} has other layers, tensors or packings than that of digit 0; all must be of one \
         network"
    )]
    OtherNetwork {
        /// The digit.
        digit: u8,
    },
    /// Accuracies and costs are not of one model.
    #[error(
        "there are accuracies of {given} layers and the network has {layers}; both must be of one model"
    )]
    OtherAccuracies {
        /// The layers of the model whose accuracies were given.
        given: usize,
        /// The network's layers.
        layers: usize,
    },
    /// Accuracies and costs are not of the same processors.
    #[error(
        "the accuracies are of placements with other digits than the costs; both must be of the same processors"
    )]
    OtherDigits,
    /// LARAC relaxes costs.
    #[error("larac does not plan for an accuracy; use joint")]
    LaracAccuracy,
    /// LARAC relaxes one limit.
    #[error("larac keeps exactly one limit, and there are {given}; use joint for any others")]
    NotOneLimit {
        /// How many limits the goal has.
        given: usize,
    },
}

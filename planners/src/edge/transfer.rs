//! What a plan moves over the link.

use layerlab_profiles::tensors::TensorCodec;

use super::side::Direction;

/// A tensor that crosses the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorTransfer {
    /// Its place in the network's list, from 0.
    pub tensor: usize,
    /// Which way.
    pub direction: Direction,
    /// What it is packed by; nothing where it crosses as it is.
    pub codec: Option<TensorCodec>,
}

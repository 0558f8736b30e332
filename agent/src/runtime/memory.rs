//! How much memory a loaded segment takes, where a runtime does not tell.

use layerlab_model::{Network, TensorSpec};
use layerlab_profiles::{Bytes, Segment};

/// An estimate: weights once, inputs and outputs once. Runtimes also repack weights and reuse buffers, and say nothing
/// about either.
pub(super) fn estimated_memory(network: &Network, segment: Segment) -> Bytes {
    let tensors = |cut| network.frontier(cut).iter().map(TensorSpec::bytes).sum();
    let layers = &network.layers()[segment.first() as usize - 1..segment.last() as usize];
    let weights: Bytes = layers.iter().map(|layer| layer.parameter_bytes).sum();
    weights + tensors(segment.first() - 1) + tensors(segment.last())
}

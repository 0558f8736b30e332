//! How much memory a loaded segment takes, where a runtime does not tell.

use layerlab_model::Network;
use layerlab_profiles::{Bytes, Segment};

/// An estimate: weights once, what crosses the cuts around the segment once, and what each layer takes and gives beside them.
/// Runtimes also repack weights and reuse buffers, and say nothing
/// about either.
pub(super) fn estimated_memory(network: &Network, segment: Segment) -> Bytes {
    let layers = &network.layers()[segment.first() as usize - 1..segment.last() as usize];
    let weights: Bytes = layers.iter().map(|layer| layer.parameter_bytes).sum();
    let beside = layers
        .iter()
        .map(|layer| layer.model_input_bytes + layer.model_output_bytes);
    let crossing = layers[0].input_bytes + layers[layers.len() - 1].output_bytes;
    weights + crossing + beside.sum()
}

//! Training as a network of twice the layers: one inference, then the gradients in reverse (jointdnn §2.3, §2.4.3).
//!
//! As in the paper the server has the newest weights and whatever the backward layers remember of the forward ones;
//! only gradients cross the link, and weights that were updated on the server. Eq. 13 and 16 as printed download one
//! layer's weights for a whole group; here each backward layer that runs on the server is charged its own.

use layerlab_profiles::{Bytes, Segment};

use super::error::SplitError;
use super::network::{Group, SplitNetwork, Tensor};

/// The backward half of a training step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackwardPass {
    /// Groups that hold backward layers, numbered N+1..=2N; layer 2N+1-k is the gradient of layer k.
    pub groups: Vec<Group>,
    /// What the phone downloads of each forward layer's weights, layer 1 first, if the server updates them.
    pub updated_weights: Vec<Bytes>,
    /// Whether the phone wants the results of the forward pass besides: the download that Eq. 13 leaves out.
    pub is_result_wanted: bool,
}

/// One training step of `forward`: 2N layers.
///
/// Each tensor that layer k uses and layer p made has a gradient of its size, which layer 2N+1-k makes and layer 2N+1-p
/// uses. The input needs none. The backward pass begins from the results, at the layer that mirrors the one that made
/// them. All tensors cross as they are.
///
/// # Errors
/// Those of [`SplitNetwork::new`], and another number of weights than of forward layers.
pub fn training_network(
    forward: &SplitNetwork,
    backward: BackwardPass,
) -> Result<SplitNetwork, SplitError> {
    let layers = forward.layers();
    let mirrored = |layer: u32| 2 * layers + 1 - layer;
    if backward.updated_weights.len() != layers as usize {
        return Err(SplitError::Weights {
            given: backward.updated_weights.len(),
            layers,
        });
    }
    let mut groups: Vec<Group> = forward.groups().to_vec();
    groups.extend(backward.groups);
    let mut tensors: Vec<Tensor> = Vec::new();
    for tensor in forward.tensors() {
        let mut forth = tensor.clone();
        if tensor.producer > 0 {
            tensors.extend(tensor.consumers.iter().map(|&consumer| Tensor {
                producer: mirrored(consumer),
                consumers: vec![mirrored(tensor.producer)],
                bytes: tensor.bytes,
                is_result: false,
            }));
            let is_unused = tensor.consumers.is_empty() && tensor.producer == layers;
            let is_end = tensor.is_result || is_unused;
            forth
                .consumers
                .extend(is_end.then_some(mirrored(tensor.producer)));
        }
        forth.is_result = tensor.is_result && backward.is_result_wanted;
        tensors.push(forth);
    }
    let weights = [
        forward.returned_weights().to_vec(),
        backward.updated_weights.into_iter().rev().collect(),
    ];
    SplitNetwork::new(2 * layers, groups, tensors)?.with_returned_weights(weights.concat())
}

/// The backward layers that mirror the forward layers `segment` of a network of `layers` layers; nothing where the
/// network does not have those layers.
pub fn mirrored_segment(segment: Segment, layers: u32) -> Option<Segment> {
    let after = layers.checked_mul(2)?.checked_add(1)?;
    let is_forward = segment.last() <= layers;
    let mirrored = Segment::new(after.checked_sub(segment.last())?, after - segment.first());
    mirrored.ok().filter(|_| is_forward)
}

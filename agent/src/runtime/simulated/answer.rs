//! What a segment answered. Timing runs each from the same inputs, in one loading after the other, and the numerics cost real
//! time.

use layerlab_profiles::Segment;

use crate::runtime::Tensor;

/// What a segment answered to its inputs.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) segment: Segment,
    pub(super) inputs: Vec<Tensor>,
    pub(super) outputs: Vec<Tensor>,
}

impl Answer {
    /// What its tensors take.
    pub(super) fn bytes(&self) -> u64 {
        let tensors = self.inputs.iter().chain(&self.outputs);
        tensors.map(|tensor| tensor.bytes().len() as u64).sum()
    }
}

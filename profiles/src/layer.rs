//! What a layer is: its name, its operators, and the sizes and operation counts that planners use.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// A convolution, fully connected, pooling or recurrent node together with the cheap nodes that follow it
/// (mlmp §4.2.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The layer's number, counted from 1 in topological order.
    pub number: u32,
    /// The name of its convolution, fully connected, pooling or recurrent node, or of that node's first output.
    pub name: String,
    /// ONNX operator types in the order in which they run, the defining one and those that follow it.
    pub operators: Vec<String>,
    /// Weights and other constants that the layer reads.
    pub parameter_bytes: Bytes,
    /// All tensors alive across the cut before the layer: what an accelerator must take in.
    pub input_bytes: Bytes,
    /// All tensors alive across the cut after the layer: what an accelerator must give out.
    pub output_bytes: Bytes,
    /// Floating-point additions, subtractions and comparisons of one inference.
    pub additions: u64,
    /// Floating-point multiplications and divisions of one inference.
    pub multiplications: u64,
}

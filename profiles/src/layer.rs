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
    /// All tensors that cross the cut before the layer: what an accelerator must take in to start here. Before layer 1, the
    /// model's inputs that it reads.
    pub input_bytes: Bytes,
    /// All tensors that cross the cut after the layer: what an accelerator must give out to stop here. After the last layer, the
    /// model's outputs that it gives.
    pub output_bytes: Bytes,
    /// The model's inputs that the layer reads beside `input_bytes`, such as a block's cache of keys and values: they lie in main
    /// memory until it runs, wherever the layers before it do. 0 of layer 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub model_input_bytes: Bytes,
    /// The model's outputs that the layer gives to main memory, whether or not later layers read them as well. 0 of the last
    /// layer, whose outputs are its `output_bytes`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub model_output_bytes: Bytes,
    /// What it gives to layers beyond the next one, by the last that reads it, ascending: all of it crosses the cuts between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortcuts: Vec<Shortcut>,
    /// Floating-point additions, subtractions and comparisons of one inference.
    pub additions: u64,
    /// Floating-point multiplications and divisions of one inference.
    pub multiplications: u64,
}

/// What a layer gives to others than the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortcut {
    /// The last layer that reads it, at least the second after the one that gives it.
    pub to_layer: u32,
    /// All such tensors that this layer is the last to read.
    pub bytes: Bytes,
}

fn is_zero(bytes: &Bytes) -> bool {
    *bytes == Bytes::ZERO
}

impl Layer {
    /// Whether it takes or gives tensors of the model's own beside those that cross the cuts around it.
    pub fn has_tensors_beside_cuts(&self) -> bool {
        self.model_input_bytes != Bytes::ZERO || self.model_output_bytes != Bytes::ZERO
    }
}

//! The tensors that are alive at cuts, each once: what is alive at many cuts is one tensor. Over a link to a server all of them
//! may have to cross: there is no main memory that both sides reach.

use std::collections::HashSet;

use crate::network::Network;
use crate::tensor::{ElementType, TensorSpec};

/// A tensor that is alive at one cut at least, the network's inputs and outputs among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrossingTensor {
    /// What it is.
    pub spec: TensorSpec,
    /// The layer that gives it; 0 of an input.
    pub producer: u32,
    /// The layers behind it that take it, the first one first.
    pub consumers: Vec<u32>,
    /// Whether the network answers with it.
    pub is_output: bool,
}

/// Why a tensor is not compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCompressed {
    /// No more than one of its axes is longer than 1, as of what a fully connected layer gives: jointdnn §4.2 leaves those out,
    /// because they are small.
    OneAxis,
    /// Its elements are no 32-bit floats.
    NoFloats,
}

impl CrossingTensor {
    /// Why it is not compressed; nothing if it is.
    pub fn not_compressed(&self) -> Option<NotCompressed> {
        if self.spec.element != ElementType::F32 {
            return Some(NotCompressed::NoFloats);
        }
        let long = self.spec.shape.iter().filter(|&&axis| axis > 1).count();
        (long <= 1).then_some(NotCompressed::OneAxis)
    }

    /// Whether it is alive at the cut after this layer.
    pub fn crosses(&self, cut: u32) -> bool {
        self.producer <= cut && (self.is_output || self.consumers.iter().any(|&it| it > cut))
    }
}

impl Network {
    /// The tensors that are alive at cuts: by the layer that gives them, and of one layer in the order there.
    pub fn crossing_tensors(&self) -> Vec<CrossingTensor> {
        let outputs: HashSet<&str> = self.graph().outputs.iter().map(String::as_str).collect();
        let mut seen = HashSet::new();
        let mut tensors = Vec::new();
        for cut in 0..=self.layer_count() {
            for spec in self.alive(cut) {
                if !seen.insert(spec.name.as_str()) {
                    continue;
                }
                tensors.push(CrossingTensor {
                    spec: spec.clone(),
                    producer: cut,
                    consumers: (self.readers(&spec.name).into_iter())
                        .filter(|&it| it > cut)
                        .collect(),
                    is_output: outputs.contains(spec.name.as_str()),
                });
            }
        }
        tensors
    }
}

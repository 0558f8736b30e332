//! ONNX in, layers out: reads a network, groups its nodes into layers, says what crosses each cut between
//! them, counts their bytes and operations, and cuts any layers i..=j out as a model of their own.
//!
//! # Layers
//! Nodes are taken in topological order, in the file's order where that leaves a choice. Each convolution,
//! fully connected, pooling or recurrent node starts the next layer. Any other node joins the highest-numbered layer
//! among those that its inputs come from (layer 1 if they come from the model's inputs), so that every
//! tensor goes from a layer to the same or a later one. Nodes that compute the same whatever the input are
//! no part of any layer: what follows from the shapes alone becomes a constant, and what follows from
//! constants goes along with each segment that reads it.
//!
//! A model's file can name layers itself, each by its nodes: these, and what lies between them, are one layer, and the rule
//! is for all others.
//!
//! # Cuts
//! Cut `l` lies after layer `l`; cut 0 lies before the first. Its frontier is what layers gave before it and layers
//! read after it. The network's own inputs and outputs lie in main memory: an input that is read late and an output that is
//! given early, such as a block's cache of keys and values, cross no cut. A segment takes all of its left frontier and
//! the network's inputs that its layers read, and gives all of its right frontier and the network's outputs that its layers
//! give; a tensor that crosses both of its cuts passes through it.
//!
//! # Quantised networks
//! A network can have a twin whose tensors pass QDQ pairs: the same layers, between which floats cross.

// A test that fails to unwrap has failed.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answer;
mod attention;
mod constant;
mod contraction;
mod count;
mod crossing;
mod dims;
mod encode;
mod error;
mod external;
mod frontier;
mod graph;
mod half_gemm;
mod infer;
mod layers;
mod limits;
mod named_layers;
mod network;
mod no_ops;
mod operator;
mod optimize;
mod pairs;
mod premises;
mod probe;
mod quantise;
mod quantise_linear;
mod read;
mod reader;
mod sub_model;
mod tensor;
mod twin;

pub use answer::{AnswerError, answers};
pub use crossing::{CrossingTensor, NotCompressed};
pub use error::ModelError;
pub use layers::OperatorClass;
pub use named_layers::NamedLayer;
pub use network::{ModelSource, Network};
pub use operator::Operator;
pub use probe::{probe_network, probe_twin};
pub use quantise::{
    QuantiseError, QuantiseOptions, Quantised, RangeMethod, WeightScales, quantise,
};
pub use sub_model::SubModel;
pub use tensor::{ElementType, TensorSpec};
pub use twin::{NotATwin, twin_of};

//! An int8 network of a float one, in ONNX's QDQ format: float operators with a `QuantizeLinear` and a
//! `DequantizeLinear` around each, which runtimes take together as one integer operator.
//!
//! - Activations become unsigned, with one scale and zero point for each tensor, from the range that it has on a set's
//!   images. Each tensor between operators passes a pair, the inputs and outputs of the network among them.
//! - Weights of convolutions and fully connected operators become signed, without zero point, with a scale for each
//!   output channel or one for all; biases 32-bit integers in units of input scale x weight scale; other constants that
//!   are added, multiplied or concatenated become unsigned like activations.
//! - A `Relu`, or a `Clip` from zero, whose input nothing else reads goes: its pair cuts off what it would.
//! - Operators that only move or choose values (poolings of maxima, reshapes) give their input's scale on; what only a
//!   concatenation reads has that one's scale.
//! - Batch normalisation behind a convolution, and the factors of a `Gemm`, are folded into weights first.
//!
//! onnxruntime.quantization does much the same, but for the folding and the scales around concatenations.

mod constants;
mod error;
mod observe;
mod prepare;
mod rewrite;
mod scale;
mod structure;

use crate::graph::Graph;
use crate::pairs::{DEQUANTISE, QUANTISE};
use crate::tensor::ElementType;
use crate::{Network, infer, twin_of};

pub use error::QuantiseError;

/// The oldest operator set with `QuantizeLinear`.
const OLDEST_OPSET: i64 = 10;
/// The oldest operator set with a scale for each channel.
const OLDEST_OPSET_OF_CHANNEL_SCALES: i64 = 13;

/// How many scales the weights of one operator have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightScales {
    /// One for all of them.
    PerTensor,
    /// One for each output channel.
    PerChannel,
}

/// What range of an activation its integers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeMethod {
    /// All of it.
    MinMax,
    /// All but the 0.001 % of its values that are farthest from zero, found with a histogram of 2,048 bins.
    Percentile,
}

/// The choices that a quantised network is made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantiseOptions {
    /// How many scales weights have.
    pub weights: WeightScales,
    /// What range activations have.
    pub ranges: RangeMethod,
}

/// A quantised network, and what was quantised.
#[derive(Clone, Debug)]
pub struct Quantised {
    /// The network: the same layers, with floats across each cut.
    pub network: Network,
    /// How many activations pass a pair.
    pub activations: usize,
    /// How many operators have integer weights.
    pub weights: usize,
}

/// Makes an int8 network of `network`, with ranges from `images`: for each all values of the only input, last axis
/// fastest. The same network, images and options give the same bytes.
///
/// # Errors
/// When the network is not one of 32-bit floats with one input, when there is no image, or when the network fails on
/// one.
pub fn quantise(
    network: &Network,
    images: &(impl Iterator<Item = Vec<f32>> + Clone),
    options: QuantiseOptions,
) -> Result<Quantised, QuantiseError> {
    refuse_operators(network.graph())?;
    refuse_opset(network.opset(), options)?;
    let mut specs = infer::infer(&network.model_of(network.graph()))?.specs;
    let inputs = &network.graph().inputs;
    specs.extend(inputs.iter().map(|spec| (spec.name.clone(), spec.clone())));
    let constants = network.graph().constants.values();
    let mut all: Vec<_> = specs.values().chain(constants.map(|c| &c.spec)).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let other_floats = [ElementType::F16, ElementType::F64];
    if let Some(spec) = all.iter().find(|spec| other_floats.contains(&spec.element)) {
        return Err(QuantiseError::NotSingle {
            tensor: spec.name.clone(),
            element: spec.element.to_string(),
        });
    }

    let graph = prepare::prepare(network)?;
    let structure = structure::Structure::of(&graph, &specs);
    let ranges = observe::ranges(network, &graph, &structure.observed, images, options.ranges)?;
    let rewritten = rewrite::rewrite(&graph, &structure, &ranges, options.weights)?;
    let quantised = network.with_graph(&rewritten.graph)?;
    Ok(Quantised {
        network: twin_of(network, &quantised)?,
        activations: rewritten.activations,
        weights: rewritten.weights,
    })
}

fn refuse_operators(graph: &Graph) -> Result<(), QuantiseError> {
    let of_integers = |operator: &str| {
        [QUANTISE, DEQUANTISE, "DynamicQuantizeLinear"].contains(&operator)
            || operator.starts_with("QLinear")
            || operator.ends_with("Integer")
    };
    match graph.nodes.iter().find(|node| of_integers(&node.op_type)) {
        Some(node) => Err(QuantiseError::AlreadyQuantised {
            node: node.name.clone(),
            operator: node.op_type.clone(),
        }),
        None => Ok(()),
    }
}

fn refuse_opset(found: i64, options: QuantiseOptions) -> Result<(), QuantiseError> {
    if found < OLDEST_OPSET {
        return Err(QuantiseError::OldOpset { found });
    }
    let per_channel = options.weights == WeightScales::PerChannel;
    match per_channel && found < OLDEST_OPSET_OF_CHANNEL_SCALES {
        true => Err(QuantiseError::NoChannelScales { found }),
        false => Ok(()),
    }
}

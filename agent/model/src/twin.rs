//! A quantised network beside the float network that it was made of: the same layers, between which floats cross, so
//! that each layer can run in either's numerics.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tract_onnx::pb::NodeProto;

use crate::graph::{Graph, named};
use crate::pairs::{DEQUANTISE, QUANTISE};
use crate::tensor::TensorSpec;
use crate::{ModelError, Network};

/// Operators that compute in integers without pairs around them.
const INTEGER_OPERATORS: [&str; 4] = [
    "QLinearConv",
    "QLinearMatMul",
    "ConvInteger",
    "MatMulInteger",
];

/// Why a network is no quantised twin of another: the first difference, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotATwin {
    /// It computes in integers in another way.
    #[error(
        "node `{node}` of the quantised model is a `{operator}`, which computes in integers without pairs of \
         QuantizeLinear and DequantizeLinear: quantise the model in the QDQ format, for instance with \
         `layerlab quantise`"
    )]
    IntegerOperator {
        /// The node's name.
        node: String,
        /// Its operator type.
        operator: String,
    },
    /// It has no pair at all.
    #[error(
        "the quantised model has no pair of QuantizeLinear and DequantizeLinear: make one with `layerlab quantise`"
    )]
    NoPairs,
    /// The other number of layers.
    #[error(
        "the quantised model has {quantised} layers and the model {float}: quantise this very model, for instance \
         with `layerlab quantise`"
    )]
    LayerCount {
        /// Layers of the quantised model.
        quantised: u32,
        /// Layers of the float model.
        float: u32,
    },
    /// A layer of another name.
    #[error(
        "layer {layer} is `{quantised}` in the quantised model and `{float}` in the model: quantise this very \
         model, for instance with `layerlab quantise`"
    )]
    LayerName {
        /// The layer's number.
        layer: u32,
        /// What the quantised model calls it.
        quantised: String,
        /// What the float model calls it.
        float: String,
    },
    /// Other tensors cross a cut.
    #[error(
        "across the cut after layer {cut} the quantised model passes {quantised} and the model {float}: quantise \
         this very model with the same sizes, with floats at its inputs and outputs"
    )]
    Frontier {
        /// The cut, 0 being the inputs.
        cut: u32,
        /// Types and shapes of the quantised model's tensors.
        quantised: String,
        /// Types and shapes of the float model's tensors.
        float: String,
    },
    /// Other layers take the inputs or give the outputs.
    #[error(
        "its inputs and outputs are not those of the same layers in the quantised model and in the model: quantise this very \
         model, and keep the order of its inputs and outputs"
    )]
    Ends,
    /// It cannot be read once its nodes are in the float model's order.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// `quantised` with its nodes in the order of `float`, so that its layers have the same numbers; tools that quantise
/// sort nodes as they like.
///
/// # Errors
/// When the two do not have the same layers with the same tensors between them, or it is not made of QDQ pairs.
pub fn twin_of(float: &Network, quantised: &Network) -> Result<Network, NotATwin> {
    let nodes = &quantised.graph().nodes;
    let integer = nodes
        .iter()
        .find(|node| INTEGER_OPERATORS.contains(&node.op_type.as_str()));
    if let Some(node) = integer {
        return Err(NotATwin::IntegerOperator {
            node: node.name.clone(),
            operator: node.op_type.clone(),
        });
    }
    let has = |operator| nodes.iter().any(|node| node.op_type == operator);
    if !has(QUANTISE) || !has(DEQUANTISE) {
        return Err(NotATwin::NoPairs);
    }
    let mut graph = quantised.graph().clone();
    graph.nodes = in_order_of(&graph, float.graph());
    let twin = quantised.with_graph(&graph)?;
    compare(float, &twin)?;
    Ok(twin)
}

fn compare(float: &Network, quantised: &Network) -> Result<(), NotATwin> {
    let (ours, theirs) = (float.layer_count(), quantised.layer_count());
    if ours != theirs {
        return Err(NotATwin::LayerCount {
            quantised: theirs,
            float: ours,
        });
    }
    for (one, other) in float.layers().iter().zip(quantised.layers()) {
        if one.name != other.name {
            return Err(NotATwin::LayerName {
                layer: one.number,
                quantised: other.name.clone(),
                float: one.name.clone(),
            });
        }
    }
    for cut in 0..=ours {
        let (one, other) = (
            described(float.frontier(cut)),
            described(quantised.frontier(cut)),
        );
        if one != other {
            return Err(NotATwin::Frontier {
                cut,
                quantised: other,
                float: one,
            });
        }
    }
    for (one, other) in [
        (float.inputs(), quantised.inputs()),
        (float.outputs(), quantised.outputs()),
    ] {
        if described(one) != described(other) {
            return Err(NotATwin::Ends);
        }
    }
    match float.ends() == quantised.ends() {
        true => Ok(()),
        false => Err(NotATwin::Ends),
    }
}

/// Types and shapes, such as `f32 1x64x28x28, f32 1x20`.
fn described(frontier: &[TensorSpec]) -> String {
    let one = |spec: &TensorSpec| {
        let shape: Vec<String> = spec.shape.iter().map(u64::to_string).collect();
        format!("{} {}", spec.element, shape.join("x"))
    };
    let all: Vec<String> = frontier.iter().map(one).collect();
    match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join(", "),
    }
}

/// The nodes of `graph` in topological order: those that `float` has too as there, any other as soon as it can run,
/// in the order of the tensors that it was made for.
fn in_order_of(graph: &Graph, float: &Graph) -> Vec<NodeProto> {
    let places: HashMap<(&str, &str), usize> = float
        .nodes
        .iter()
        .enumerate()
        .map(|(place, node)| {
            let key = (node.name.as_str(), node.op_type.as_str());
            (key, float.inputs.len() + place)
        })
        .collect();
    let place = |node: &NodeProto| {
        let key = (node.name.as_str(), node.op_type.as_str());
        places.get(&key).copied()
    };
    // From which of the float network's inputs and nodes each tensor came, as far as it is known.
    let inputs = graph.inputs.iter().enumerate();
    let mut origin: HashMap<&str, usize> = inputs
        .map(|(place, input)| (input.name.as_str(), place))
        .collect();
    let mut readers: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut waiting = vec![0_usize; graph.nodes.len()];
    let given: std::collections::HashSet<&str> = graph
        .nodes
        .iter()
        .flat_map(|node| named(&node.output))
        .collect();
    for (index, node) in graph.nodes.iter().enumerate() {
        for input in named(&node.input).filter(|input| given.contains(input)) {
            readers.entry(input).or_default().push(index);
            waiting[index] += 1;
        }
    }
    let mut ready = BinaryHeap::new();
    let key = |index: usize, origin: &HashMap<&str, usize>| {
        let node = &graph.nodes[index];
        let source = || named(&node.input).find_map(|input| origin.get(input).copied());
        match place(node) {
            Some(place) => Reverse((true, place, index)),
            None => Reverse((false, source().unwrap_or(0), index)),
        }
    };
    for index in (0..graph.nodes.len()).filter(|&index| waiting[index] == 0) {
        ready.push(key(index, &origin));
    }
    let mut order = Vec::with_capacity(graph.nodes.len());
    while let Some(Reverse((_, source, index))) = ready.pop() {
        let node = &graph.nodes[index];
        order.push(node.clone());
        for output in named(&node.output) {
            origin.insert(output, source);
            for &reader in readers.get(output).into_iter().flatten() {
                waiting[reader] -= 1;
                if waiting[reader] == 0 {
                    ready.push(key(reader, &origin));
                }
            }
        }
    }
    order
}

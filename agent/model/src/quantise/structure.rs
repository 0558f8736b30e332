//! What of a network is quantised: which tensors pass a pair, which share a scale, which activations go.

use std::collections::{HashMap, HashSet};

use tract_onnx::pb::NodeProto;

use super::constants::{float_attribute, floats};
use crate::graph::{Graph, named};
use crate::tensor::{ElementType, TensorSpec};

/// Operators behind which a `Relu` is cut off by their own pair: they give values of a range of their own.
const BEFORE_CUT_OFF: [&str; 11] = [
    "Conv",
    "ConvTranspose",
    "Gemm",
    "MatMul",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Sum",
    "BatchNormalization",
    "InstanceNormalization",
];

/// Operators that give only values that they take, or zeros beside them.
const KEEP_VALUES: [&str; 13] = [
    "MaxPool",
    "GlobalMaxPool",
    "Reshape",
    "Flatten",
    "Transpose",
    "Squeeze",
    "Unsqueeze",
    "Identity",
    "Dropout",
    "Slice",
    "Split",
    "DepthToSpace",
    "SpaceToDepth",
];

/// The tensors and nodes of a graph, as far as quantising asks.
pub(super) struct Structure {
    /// The tensors whose ranges are needed, in the order in which they are given.
    pub(super) observed: Vec<String>,
    /// The tensors that have the scale of another one, which may have that of a third.
    same_as: HashMap<String, String>,
    /// By the index of a node: the activation behind it that goes.
    pub(super) cut_off: HashMap<usize, usize>,
}

impl Structure {
    /// Looks at `graph`; `specs` has the type of each tensor that is not constant.
    pub(super) fn of(graph: &Graph, specs: &HashMap<String, TensorSpec>) -> Self {
        let cut_off = cut_off(graph);
        let going: HashSet<usize> = cut_off.values().copied().collect();
        let is_float = |name: &str| {
            specs
                .get(name)
                .is_some_and(|spec| spec.element == ElementType::F32)
        };
        let mut same_as = into_concatenations(graph);
        let mut observed = Vec::new();
        let inputs = graph.inputs.iter().map(|input| &input.name);
        let inputs = inputs.filter(|name| is_float(name) && is_read(graph, name));
        observed.extend(inputs.cloned());
        for (index, node) in graph.nodes.iter().enumerate() {
            if going.contains(&index) {
                continue;
            }
            let outputs = match cut_off.get(&index) {
                Some(&activation) => &graph.nodes[activation].output,
                None => &node.output,
            };
            let source = node.input.first().filter(|name| {
                KEEP_VALUES.contains(&node.op_type.as_str())
                    && is_float(name)
                    && !graph.constants.contains_key(*name)
            });
            for output in named(outputs).filter(|name| is_float(name)) {
                if let Some(source) = source {
                    same_as.insert(output.to_owned(), source.clone());
                } else if !same_as.contains_key(output) {
                    observed.push(output.to_owned());
                }
            }
        }
        Structure {
            observed,
            same_as,
            cut_off,
        }
    }

    /// The tensors that have the scale of another one, each with the one that was observed.
    pub(super) fn shared(&self) -> impl Iterator<Item = (&str, &str)> {
        self.same_as.iter().map(|(tensor, source)| {
            let mut root = source;
            while let Some(next) = self.same_as.get(root) {
                root = next;
            }
            (tensor.as_str(), root.as_str())
        })
    }
}

/// The tensors that only a concatenation reads, each with what that gives: one scale for both, or values would be
/// rounded twice where a runtime does not see through the concatenation, and once where it does.
fn into_concatenations(graph: &Graph) -> HashMap<String, String> {
    let readers = readers(graph);
    let mut found = HashMap::new();
    let inputs: HashSet<&str> = graph
        .inputs
        .iter()
        .map(|input| input.name.as_str())
        .collect();
    for node in graph.nodes.iter().filter(|node| node.op_type == "Concat") {
        for input in named(&node.input) {
            let free = !inputs.contains(input) && !graph.constants.contains_key(input);
            if free && readers.get(input) == Some(&1) {
                found.insert(input.to_owned(), node.output[0].clone());
            }
        }
    }
    found
}

fn is_read(graph: &Graph, tensor: &str) -> bool {
    let mut nodes = graph.nodes.iter();
    nodes.any(|node| named(&node.input).any(|name| name == tensor))
        || graph.outputs.iter().any(|output| output == tensor)
}

/// How often each tensor is read by nodes and as an output.
fn readers(graph: &Graph) -> HashMap<&str, usize> {
    let mut readers: HashMap<&str, usize> = HashMap::new();
    for name in graph.nodes.iter().flat_map(|node| named(&node.input)) {
        *readers.entry(name).or_default() += 1;
    }
    for output in &graph.outputs {
        *readers.entry(output).or_default() += 1;
    }
    readers
}

/// Each node whose only reader is an activation from zero on, with that activation.
fn cut_off(graph: &Graph) -> HashMap<usize, usize> {
    let readers = readers(graph);
    let mut producers: HashMap<&str, usize> = HashMap::new();
    let mut found = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let input = node.input.first().map_or("", String::as_str);
        let producer = producers.get(input).copied().filter(|&producer: &usize| {
            BEFORE_CUT_OFF.contains(&graph.nodes[producer].op_type.as_str())
        });
        if let Some(producer) = producer
            && begins_at_zero(graph, node)
            && readers.get(input) == Some(&1)
        {
            found.insert(producer, index);
        }
        producers.extend(named(&node.output).map(|name| (name, index)));
    }
    found
}

/// Whether the node is a `Relu`, or a `Clip` whose smallest value is zero.
fn begins_at_zero(graph: &Graph, node: &NodeProto) -> bool {
    match (node.op_type.as_str(), node.input.get(1)) {
        ("Relu", _) => true,
        ("Clip", None) => float_attribute(node, "min", f32::MIN) == 0.0,
        ("Clip", Some(least)) => floats(graph, least).is_some_and(|(_, values)| values == [0.0]),
        _ => false,
    }
}

//! The form of a float network that is quantised: constants worked out; batch normalisation and the factors of a `Gemm`
//! in the weights, because accelerators have neither beside int8 weights.

use std::collections::HashMap;

use tract_onnx::pb::NodeProto;

use super::QuantiseError;
use super::constants::{float_attribute, floats, integer_attribute, put_floats};
use crate::graph::{Graph, named};
use crate::{Network, infer};

/// What ONNX adds to a variance if nothing else is said.
const DEFAULT_EPSILON: f32 = 1e-5;

/// The graph of `network` in that form; names of nodes and of the tensors that stay are kept.
pub(super) fn prepare(network: &Network) -> Result<Graph, QuantiseError> {
    let mut graph = network.graph().clone();
    let facts = infer::infer(&network.model_of(&graph))?;
    graph.fold(facts.values);
    for index in 0..graph.nodes.len() {
        fold_factors(&mut graph, index);
    }
    fold_normalisations(&mut graph);
    // Nothing reads the old weights any more.
    graph.fold(HashMap::new());
    Ok(graph)
}

/// Multiplies the weights and the bias of a `Gemm` by its factors, which become 1.
fn fold_factors(graph: &mut Graph, index: usize) {
    let node = graph.nodes[index].clone();
    if node.op_type != "Gemm" {
        return;
    }
    for (place, factor) in [(1, "alpha"), (2, "beta")] {
        let value = float_attribute(&node, factor, 1.0);
        let Some(input) = node.input.get(place).filter(|_| value != 1.0) else {
            continue;
        };
        let Some((shape, values)) = floats(graph, input) else {
            continue;
        };
        let shape = shape.to_vec();
        let values: Vec<f32> = values.iter().map(|weight| weight * value).collect();
        let name = format!("{}.{factor}", node.name);
        put_floats(graph, &name, &shape, &values);
        let node = &mut graph.nodes[index];
        node.input[place] = name;
        node.attribute.retain(|attribute| attribute.name != factor);
    }
}

/// Folds each batch normalisation into the convolution whose only reader it is.
fn fold_normalisations(graph: &mut Graph) {
    let mut index = 0;
    while index < graph.nodes.len() {
        let folded = (graph.nodes[index].op_type == "BatchNormalization")
            .then(|| fold_normalisation(graph, index))
            .flatten();
        match folded {
            Some(()) => drop(graph.nodes.remove(index)),
            None => index += 1,
        }
    }
}

/// Folds the normalisation at `index`; none if its parameters or the convolution's are no constants.
fn fold_normalisation(graph: &mut Graph, index: usize) -> Option<()> {
    let normalisation = graph.nodes[index].clone();
    let [input, parameters @ ..] = normalisation.input.as_slice() else {
        return None;
    };
    let [scale, shift, mean, variance] = parameters else {
        return None;
    };
    let training = integer_attribute(&normalisation, "training_mode", 0) != 0;
    if training || named(&normalisation.output).count() != 1 {
        return None;
    }
    let at = only_producer(graph, input)?;
    let convolution = graph.nodes[at].clone();
    if convolution.op_type != "Conv" {
        return None;
    }
    let of = |name: &String| floats(graph, name).map(|(_, values)| values);
    let (scale, shift, mean, variance) = (of(scale)?, of(shift)?, of(mean)?, of(variance)?);
    let (shape, weights) = floats(graph, &convolution.input[1])?;
    let channels = *shape.first()? as usize;
    let bias = match convolution.input.get(2).filter(|name| !name.is_empty()) {
        Some(bias) => of(bias)?,
        None => vec![0.0; channels],
    };
    let lengths = [&scale, &shift, &mean, &variance, &bias];
    if channels == 0 || lengths.iter().any(|values| values.len() != channels) {
        return None;
    }

    let epsilon = f64::from(float_attribute(&normalisation, "epsilon", DEFAULT_EPSILON));
    let factor = |channel: usize| {
        f64::from(scale[channel]) / (f64::from(variance[channel]) + epsilon).sqrt()
    };
    let each = weights.len() / channels;
    let weights: Vec<f32> = weights
        .iter()
        .enumerate()
        .map(|(place, weight)| (f64::from(*weight) * factor(place / each)) as f32)
        .collect();
    let biases: Vec<f32> = (0..channels)
        .map(|channel| {
            let centred = f64::from(bias[channel]) - f64::from(mean[channel]);
            (centred * factor(channel) + f64::from(shift[channel])) as f32
        })
        .collect();
    let shape = shape.to_vec();
    let name = |what: &str| format!("{}.{what}.folded", convolution.name);
    put_floats(graph, &name("weight"), &shape, &weights);
    put_floats(graph, &name("bias"), &[channels as u64], &biases);
    let node = &mut graph.nodes[at];
    node.input = vec![node.input[0].clone(), name("weight"), name("bias")];
    node.output.clone_from(&normalisation.output);
    Some(())
}

/// The node that gives `tensor`, if exactly one node reads that and it is no output of the network.
fn only_producer(graph: &Graph, tensor: &str) -> Option<usize> {
    let reads = |node: &NodeProto| named(&node.input).filter(|name| *name == tensor).count();
    let readers: usize = graph.nodes.iter().map(reads).sum();
    if readers != 1 || graph.outputs.iter().any(|output| output == tensor) {
        return None;
    }
    let mut nodes = graph.nodes.iter();
    nodes.position(|node| named(&node.output).any(|name| name == tensor))
}

//! Which tensors cross each cut.

use std::collections::HashMap;

use crate::graph::{Graph, named};
use crate::tensor::TensorSpec;

/// The tensors that are no constants, with the layer that gives each: 0 for the network's inputs.
pub(crate) fn computed<'a>(graph: &'a Graph, node_layers: &[Option<u32>]) -> HashMap<&'a str, u32> {
    let inputs = graph.inputs.iter().map(|input| (input.name.as_str(), 0));
    let nodes = graph
        .nodes
        .iter()
        .zip(node_layers)
        .filter_map(|(node, layer)| Some((node, (*layer)?)));
    inputs
        .chain(nodes.flat_map(|(node, layer)| named(&node.output).map(move |name| (name, layer))))
        .collect()
}

/// What crosses each cut, from 0 to `count`: inputs in their order, then what nodes give in theirs.
pub(crate) fn frontiers(
    graph: &Graph,
    node_layers: &[Option<u32>],
    count: u32,
    specs: &HashMap<String, TensorSpec>,
) -> Vec<Vec<TensorSpec>> {
    let mut last_use: HashMap<&str, u32> = HashMap::new();
    for (node, layer) in graph.nodes.iter().zip(node_layers) {
        for input in named(&node.input) {
            let last = last_use.entry(input).or_default();
            *last = (*last).max(layer.unwrap_or(0));
        }
    }
    for output in &graph.outputs {
        last_use.insert(output, u32::MAX);
    }
    let computed = computed(graph, node_layers);
    let in_order = graph
        .inputs
        .iter()
        .map(|input| input.name.as_str())
        .chain(graph.nodes.iter().flat_map(|node| named(&node.output)));
    let lives: Vec<(&TensorSpec, u32, u32)> = in_order
        .filter_map(|name| {
            Some((
                specs.get(name)?,
                *computed.get(name)?,
                last_use.get(name).copied().unwrap_or(0),
            ))
        })
        .collect();
    (0..=count)
        .map(|cut| match cut {
            0 => graph.inputs.clone(),
            _ if cut == count => graph
                .outputs
                .iter()
                .filter_map(|name| specs.get(name))
                .cloned()
                .collect(),
            _ => lives
                .iter()
                .filter(|(_, given, last)| *given <= cut && *last > cut)
                .map(|(spec, _, _)| (*spec).clone())
                .collect(),
        })
        .collect()
}

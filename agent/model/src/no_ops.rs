//! Nodes that give what they take: they go when a segment is cut out, because accelerators refuse a segment that begins
//! or ends in one, and nobody needs them anywhere else.

use std::collections::{BTreeMap, HashMap, HashSet};

use tract_onnx::pb::NodeProto;

use crate::constant::Constant;
use crate::graph::named;

/// `nodes` of one segment, in topological order, without those that do nothing. The tensors in `outputs` keep their
/// names: what gave the input of such a node gives its output instead.
///
/// Where an output would have to be another one or an input as well, an `Identity` stays: ONNX gives every tensor one
/// name. Whatever is not in `given`, the tensors that the nodes give, is an input or a constant.
pub(crate) fn remove(
    nodes: Vec<NodeProto>,
    given: &HashSet<&str>,
    outputs: &HashSet<&str>,
    constants: &BTreeMap<String, Constant>,
) -> Vec<NodeProto> {
    let mut renamed: HashMap<String, String> = HashMap::new();
    let mut kept = Vec::with_capacity(nodes.len());
    // The tensor that each name now stands for; chains are short, and end because a name is given once.
    let newest = |renamed: &HashMap<String, String>, name: &str| {
        let mut name = name;
        while let Some(next) = renamed.get(name) {
            name = next;
        }
        name.to_owned()
    };
    for mut node in nodes {
        if !(given.contains(first(&node.output)) && does_nothing(&node, constants)) {
            kept.push(node);
            continue;
        }
        let (input, output) = (newest(&renamed, first(&node.input)), node.output[0].clone());
        if !outputs.contains(output.as_str()) {
            renamed.insert(output, input);
        } else if given.contains(input.as_str()) && !outputs.contains(input.as_str()) {
            renamed.insert(input, output);
        } else {
            node.op_type = "Identity".to_owned();
            node.attribute.clear();
            node.input.truncate(1);
            kept.push(node);
        }
    }
    for node in &mut kept {
        for name in node.input.iter_mut().chain(&mut node.output) {
            *name = newest(&renamed, name);
        }
    }
    kept
}

fn first(names: &[String]) -> &str {
    names.first().map_or("", String::as_str)
}

/// Whether the node's only output is its first input.
fn does_nothing(node: &NodeProto, constants: &BTreeMap<String, Constant>) -> bool {
    if named(&node.output).count() != 1 || first(&node.output).is_empty() {
        return false;
    }
    match node.op_type.as_str() {
        "Identity" => true,
        // Since operator set 12 an input can say that it is training.
        "Dropout" => match node.input.get(2).filter(|name| !name.is_empty()) {
            None => true,
            Some(training) => constants
                .get(training)
                .is_some_and(|constant| constant.bytes().iter().all(|&byte| byte == 0)),
        },
        "Concat" | "Sum" | "Max" | "Min" | "Mean" => node.input.len() == 1,
        _ => false,
    }
}

//! QDQ pairs: a `QuantizeLinear` and the `DequantizeLinear` that reads it. Floats go in and floats come out, rounded to
//! what eight bits hold.
//!
//! Both nodes of a pair stay in the layer that gives the tensor, so that floats cross each cut. A segment that reads
//! such a tensor begins with a pair of its own, or its first operator would compute in floats: runtimes recognise a
//! quantised operator by the pairs around it. What was rounded before is not changed by being rounded again.

use std::collections::{HashMap, HashSet};

use tract_onnx::pb::NodeProto;

use crate::tensor::TensorSpec;

/// The operator that makes integers of floats.
pub(crate) const QUANTISE: &str = "QuantizeLinear";
/// The operator that makes floats of integers.
pub(crate) const DEQUANTISE: &str = "DequantizeLinear";

/// A pair at the entry of a segment.
pub(crate) struct EntryPair<'a> {
    /// The frontier tensor that enters.
    pub(crate) tensor: &'a str,
    /// What the nodes of the segment read in its place.
    pub(crate) rounded: String,
    /// The two nodes, in the order in which they run.
    pub(crate) nodes: [NodeProto; 2],
}

/// A pair for each of `inputs` that a pair among `nodes` gives; their new names are none of `taken`.
pub(crate) fn entering<'a>(
    nodes: impl Iterator<Item = &'a NodeProto>,
    inputs: &'a [TensorSpec],
    taken: &HashSet<&str>,
) -> Vec<EntryPair<'a>> {
    let mut producers: HashMap<&str, &NodeProto> = HashMap::new();
    for node in nodes.filter(|node| node.op_type == QUANTISE || node.op_type == DEQUANTISE) {
        producers.extend(node.output.iter().map(|output| (output.as_str(), node)));
    }
    let pair = |spec: &'a TensorSpec| {
        let dequantise = producers.get(spec.name.as_str())?;
        let quantise = producers.get(dequantise.input.first()?.as_str())?;
        if dequantise.op_type != DEQUANTISE || quantise.op_type != QUANTISE {
            return None;
        }
        let integers = free_name(&format!("{}.entering.quantised", spec.name), taken);
        let rounded = free_name(&format!("{}.entering", spec.name), taken);
        let of = |node: &NodeProto, input: &str, output: &str| {
            let mut node = node.clone();
            node.name = output.to_owned();
            node.input[0] = input.to_owned();
            node.output = vec![output.to_owned()];
            node
        };
        Some(EntryPair {
            tensor: &spec.name,
            nodes: [
                of(quantise, &spec.name, &integers),
                of(dequantise, &integers, &rounded),
            ],
            rounded,
        })
    };
    inputs.iter().filter_map(pair).collect()
}

/// `stem`, or a name like it that nothing else has.
pub(crate) fn free_name(stem: &str, taken: &HashSet<&str>) -> String {
    let mut free = stem.to_owned();
    while taken.contains(free.as_str()) {
        free.push('_');
    }
    free
}

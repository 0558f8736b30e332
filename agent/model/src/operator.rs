//! What the nodes of a layer do, and what that costs.

use std::collections::{HashMap, HashSet};

use layerlab_profiles::Bytes;
use tract_onnx::pb::NodeProto;

use crate::count::{Count, count};
use crate::graph::named;
use crate::layers::OperatorClass;
use crate::tensor::TensorSpec;

/// One node of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// The node's name, which no other node of the network has.
    pub name: String,
    /// Its ONNX operator type.
    pub op_type: String,
    /// What kind of work it is.
    pub class: OperatorClass,
    /// Additions, subtractions and comparisons of one inference.
    pub additions: u64,
    /// Multiplications and divisions of one inference.
    pub multiplications: u64,
    /// The constants that it reads.
    pub parameter_bytes: Bytes,
    /// The computed tensors that it reads.
    pub input_bytes: Bytes,
    /// The tensors that it gives.
    pub output_bytes: Bytes,
}

impl Operator {
    pub(crate) fn new(
        node: &NodeProto,
        opset: i64,
        computed: &HashMap<&str, u32>,
        specs: &HashMap<String, TensorSpec>,
    ) -> Self {
        let Count {
            additions,
            multiplications,
        } = count(node, opset, |name| specs.get(name));
        let inputs: HashSet<&str> = named(&node.input).collect();
        let bytes = |of_computed: bool| {
            let read = inputs
                .iter()
                .filter(|input| computed.contains_key(**input) == of_computed);
            read.filter_map(|input| specs.get(*input))
                .map(TensorSpec::bytes)
                .sum()
        };
        Operator {
            name: node.name.clone(),
            op_type: node.op_type.clone(),
            class: OperatorClass::of(node),
            additions,
            multiplications,
            parameter_bytes: bytes(false),
            input_bytes: bytes(true),
            output_bytes: named(&node.output)
                .filter_map(|name| specs.get(name))
                .map(TensorSpec::bytes)
                .sum(),
        }
    }
}

//! A segment as a model of its own.

use std::collections::{BTreeMap, HashMap, HashSet};

use prost::Message;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto};
use tract_onnx::prelude::TypedModel;

use crate::constant::Constant;
use crate::graph::named;
use crate::tensor::TensorSpec;
use crate::{ModelError, infer};

/// Layers i..=j as a valid ONNX model: it takes the frontier before i and gives the frontier after j, each
/// in its order.
#[derive(Clone, Debug, PartialEq)]
pub struct SubModel {
    /// The ONNX model, with the frontiers as its inputs and outputs.
    pub model: ModelProto,
    /// Its inputs, in order.
    pub inputs: Vec<TensorSpec>,
    /// Its outputs, in order. One that passes through has another name than in the frontier, because
    /// ONNX gives every tensor one name.
    pub outputs: Vec<TensorSpec>,
}

impl SubModel {
    /// The model as a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.model.encode_to_vec()
    }

    /// The model as tract's typed graph, neither decluttered nor optimised.
    pub fn typed(&self) -> Result<TypedModel, ModelError> {
        infer::typed(&self.model)
    }

    /// The model optimised by tract, in such a way that the answers do not depend on where a network was
    /// cut: segments run one after another give the bits of the whole.
    ///
    /// tract's own `into_optimized` gives that too, except for a product (Gemm, MatMul, 1 x 1 convolution)
    /// of a concatenation, and for a convolution that is scaled or shifted by channel and also read by
    /// something else: there it rounds otherwise where it sees both in one segment.
    pub fn optimized(&self) -> Result<TypedModel, ModelError> {
        infer::optimized(&self.model)
    }

    /// Cuts out the `nodes` that are marked as inside; those marked with none are constant and come along
    /// where something reads them.
    pub(crate) fn cut<'a>(
        header: &ModelProto,
        name: String,
        constants: &BTreeMap<String, Constant>,
        nodes: impl DoubleEndedIterator<Item = (&'a NodeProto, Option<bool>)> + Clone,
        inputs: &[TensorSpec],
        outputs: &[TensorSpec],
    ) -> SubModel {
        let given: HashSet<&str> = nodes
            .clone()
            .filter(|(_, inside)| *inside == Some(true))
            .flat_map(|(node, _)| named(&node.output))
            .collect();
        let mut names: HashSet<&str> = nodes
            .clone()
            .flat_map(|(node, _)| named(&node.output))
            .collect();
        names.extend(nodes.clone().map(|(node, _)| node.name.as_str()));
        names.extend(inputs.iter().map(|spec| spec.name.as_str()));
        names.extend(constants.keys().map(String::as_str));

        // Backwards, so that what a node reads is known to be needed before its producer comes.
        let mut needed: HashSet<&str> = outputs.iter().map(|spec| spec.name.as_str()).collect();
        let mut kept: Vec<NodeProto> = Vec::new();
        for (node, inside) in nodes.rev() {
            let keep =
                inside.unwrap_or_else(|| named(&node.output).any(|output| needed.contains(output)));
            if keep {
                needed.extend(named(&node.input));
                kept.push(node.clone());
            }
        }
        kept.reverse();

        let mut passed: HashMap<&str, String> = HashMap::new();
        let mut renamed = Vec::with_capacity(outputs.len());
        for output in outputs {
            let mut spec = output.clone();
            if !given.contains(output.name.as_str()) {
                let other = passed.entry(&output.name).or_insert_with(|| {
                    let other = free_name(&output.name, &names);
                    kept.push(NodeProto {
                        name: other.clone(),
                        op_type: "Identity".to_owned(),
                        input: vec![output.name.clone()],
                        output: vec![other.clone()],
                        ..NodeProto::default()
                    });
                    other
                });
                spec.name.clone_from(other);
            }
            renamed.push(spec);
        }

        let mut model = header.clone();
        model.graph = Some(GraphProto {
            name,
            node: kept,
            initializer: constants
                .iter()
                .filter(|(name, _)| needed.contains(name.as_str()))
                .map(|(_, constant)| constant.to_proto())
                .collect(),
            input: inputs
                .iter()
                .map(|spec| spec.value_info(&spec.name))
                .collect(),
            output: renamed
                .iter()
                .map(|spec| spec.value_info(&spec.name))
                .collect(),
            ..GraphProto::default()
        });
        SubModel {
            model,
            inputs: inputs.to_vec(),
            outputs: renamed,
        }
    }
}

/// A name like `name` that nothing else has.
fn free_name(name: &str, taken: &HashSet<&str>) -> String {
    let mut free = format!("{name}.passed");
    while taken.contains(free.as_str()) {
        free.push('_');
    }
    free
}

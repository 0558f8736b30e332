//! A segment as a model of its own.

use std::collections::{BTreeMap, HashMap, HashSet};

use tract_onnx::pb::{GraphProto, ModelProto, NodeProto};
use tract_onnx::prelude::TypedModel;

use crate::constant::Constant;
use crate::graph::named;
use crate::pairs::{EntryPair, free_name};
use crate::tensor::TensorSpec;
use crate::{ModelError, encode, infer, no_ops, pairs, read};

/// Layers i..=j as a valid ONNX model: it takes what [`Network::takes`](crate::Network::takes) says and gives what
/// [`Network::gives`](crate::Network::gives) says, in that order. Nodes that do nothing, such as a `Dropout`, are left out. What a quantised network has rounded is
/// rounded again where it enters, which changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct SubModel {
    /// The ONNX model.
    pub model: ModelProto,
    /// Its inputs, in order.
    pub inputs: Vec<TensorSpec>,
    /// Its outputs, in order. One that passes through has another name than in the network, because
    /// ONNX gives every tensor one name.
    pub outputs: Vec<TensorSpec>,
}

impl SubModel {
    /// The model as a file: weights inside, shapes fixed, in the operator set of the network.
    pub fn into_bytes(self) -> Vec<u8> {
        encode::to_bytes(self.model)
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

    /// The same of a segment in the form of a file, which [`SubModel::into_bytes`] gave.
    ///
    /// # Errors
    /// When it is no such file, or tract cannot run it.
    pub fn optimized_from(bytes: &[u8]) -> Result<TypedModel, ModelError> {
        infer::optimized(&read::from_bytes(bytes, "a segment".to_owned())?)
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

        let pairs = pairs::entering(nodes.clone().map(|(node, _)| node), inputs, &names);
        // Backwards, so that what a node reads is known to be needed before its producer comes.
        let mut needed: HashSet<&str> = outputs.iter().map(|spec| spec.name.as_str()).collect();
        for node in pairs.iter().flat_map(|pair| &pair.nodes) {
            needed.extend(named(&node.input[1..]));
        }
        let mut kept: Vec<(bool, NodeProto)> = Vec::new();
        for (node, inside) in nodes.rev() {
            let keep =
                inside.unwrap_or_else(|| named(&node.output).any(|output| needed.contains(output)));
            if keep {
                needed.extend(named(&node.input));
                kept.push((inside.is_some(), node.clone()));
            }
        }
        kept.reverse();
        let kept = enter_rounded(kept, pairs);
        let named_outputs = outputs.iter().map(|spec| spec.name.as_str()).collect();
        let mut kept = no_ops::remove(kept, &given, &named_outputs, constants);

        let mut passed: HashMap<&str, String> = HashMap::new();
        let mut renamed = Vec::with_capacity(outputs.len());
        for output in outputs {
            let mut spec = output.clone();
            if !given.contains(output.name.as_str()) {
                let other = passed.entry(&output.name).or_insert_with(|| {
                    let other = free_name(&format!("{}.passed", output.name), &names);
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

        let read: HashSet<&str> = kept.iter().flat_map(|node| named(&node.input)).collect();
        let mut model = header.clone();
        model.graph = Some(GraphProto {
            name,
            initializer: constants
                .iter()
                .filter(|(name, _)| read.contains(name.as_str()))
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
            node: kept,
            ..GraphProto::default()
        });
        SubModel {
            model,
            inputs: inputs.to_vec(),
            outputs: renamed,
        }
    }
}

/// Puts the pairs at the entry of a segment, behind what is constant (marked by false).
fn enter_rounded(mut kept: Vec<(bool, NodeProto)>, pairs: Vec<EntryPair<'_>>) -> Vec<NodeProto> {
    let read = |tensor: &str| {
        kept.iter()
            .any(|(_, node)| named(&node.input).any(|name| name == tensor))
    };
    let pairs: Vec<EntryPair<'_>> = pairs.into_iter().filter(|pair| read(pair.tensor)).collect();
    if !pairs.is_empty() {
        kept.sort_by_key(|(inside, _)| *inside);
    }
    let constant = kept.iter().take_while(|(inside, _)| !inside).count();
    let mut nodes: Vec<NodeProto> = kept.into_iter().map(|(_, node)| node).collect();
    for input in nodes.iter_mut().flat_map(|node| &mut node.input) {
        if let Some(pair) = pairs.iter().find(|pair| pair.tensor == input) {
            input.clone_from(&pair.rounded);
        }
    }
    nodes.splice(
        constant..constant,
        pairs.into_iter().flat_map(|pair| pair.nodes),
    );
    nodes
}

//! The grouping rule: which node starts a layer and which layer any other node joins.

use std::collections::HashMap;
use std::fmt;

use tract_onnx::pb::NodeProto;

use crate::graph::named;

/// What kind of work an operator is, as far as layers are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperatorClass {
    /// A convolution: starts a layer.
    Convolution,
    /// A fully connected operator (a product of matrices): starts a layer.
    FullyConnected,
    /// A pooling: starts a layer.
    Pooling,
    /// A recurrent network over a sequence (RNN, GRU, LSTM): starts a layer.
    Recurrent,
    /// Anything else: joins the layer its inputs come from.
    Other,
}

impl OperatorClass {
    /// The class of an ONNX operator type.
    pub(crate) fn of(op_type: &str) -> Self {
        match op_type {
            "Conv" | "ConvTranspose" | "ConvInteger" | "QLinearConv" => OperatorClass::Convolution,
            "Gemm" | "MatMul" | "MatMulInteger" | "QLinearMatMul" => OperatorClass::FullyConnected,
            "MaxPool" | "AveragePool" | "LpPool" | "GlobalMaxPool" | "GlobalAveragePool"
            | "GlobalLpPool" => OperatorClass::Pooling,
            "RNN" | "GRU" | "LSTM" => OperatorClass::Recurrent,
            _ => OperatorClass::Other,
        }
    }

    /// Whether such an operator starts a layer.
    pub(crate) fn starts_layer(self) -> bool {
        self != OperatorClass::Other
    }
}

impl fmt::Display for OperatorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            OperatorClass::Convolution => "convolution",
            OperatorClass::FullyConnected => "fully connected",
            OperatorClass::Pooling => "pooling",
            OperatorClass::Recurrent => "recurrent",
            OperatorClass::Other => "other",
        })
    }
}

/// The layer of each node, counted from 1; `nodes` are in topological order and none is constant.
///
/// The number of layers is the largest of them, except that a model without any is all 1.
pub(crate) fn assign<'a>(nodes: impl Iterator<Item = &'a NodeProto>) -> Vec<u32> {
    let mut started = 0;
    let mut producer: HashMap<&str, u32> = HashMap::new();
    let mut layers = Vec::new();
    for node in nodes {
        let layer = if OperatorClass::of(&node.op_type).starts_layer() {
            started += 1;
            started
        } else {
            let inputs = named(&node.input).filter_map(|input| producer.get(input));
            inputs.copied().max().unwrap_or(1)
        };
        producer.extend(named(&node.output).map(|output| (output, layer)));
        layers.push(layer);
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes written as `Type input,input output`.
    fn layers_of(lines: &[&str]) -> Vec<u32> {
        let nodes: Vec<NodeProto> = lines
            .iter()
            .map(|line| {
                let [op_type, inputs, output] =
                    <[&str; 3]>::try_from(line.split(' ').collect::<Vec<_>>())
                        .expect("three words");
                NodeProto {
                    op_type: op_type.to_owned(),
                    input: inputs.split(',').map(str::to_owned).collect(),
                    output: vec![output.to_owned()],
                    ..NodeProto::default()
                }
            })
            .collect();
        assign(nodes.iter())
    }

    #[test]
    fn cheap_nodes_join_the_node_they_follow() {
        let layers = layers_of(&[
            "Conv x a",
            "Relu a b",
            "LRN b c",
            "MaxPool c d",
            "Flatten d e",
            "Gemm e f",
            "Softmax f g",
        ]);
        assert_eq!(layers, [1, 1, 1, 2, 2, 3, 3]);
    }

    #[test]
    fn a_recurrent_network_is_a_layer_of_its_own() {
        let layers = layers_of(&[
            "Conv x a",
            "Reshape a b",
            "LSTM b c",
            "Squeeze c d",
            "GRU d e",
            "RNN e f",
            "Gemm f g",
        ]);
        assert_eq!(layers, [1, 1, 2, 2, 3, 4, 5]);
    }

    #[test]
    fn leading_cheap_nodes_join_layer_one() {
        assert_eq!(layers_of(&["Sub x a", "Mul a b", "Conv b c"]), [1, 1, 1]);
    }

    #[test]
    fn a_join_belongs_to_the_later_branch() {
        let layers = layers_of(&["Conv x a", "Conv a b", "Relu a c", "Add b,c d", "Conv d e"]);
        assert_eq!(layers, [1, 2, 1, 2, 3]);
    }

    #[test]
    fn a_cheap_node_between_later_anchors_stays_with_its_producer() {
        let layers = layers_of(&["Conv x a", "Conv x b", "Relu a c", "Concat b,c d"]);
        assert_eq!(layers, [1, 2, 1, 2]);
    }
}

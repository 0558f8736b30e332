//! The grouping rule: which node starts a layer and which layer any other node joins.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::fmt;

use tract_onnx::pb::NodeProto;

use crate::ModelError;
use crate::graph::named;
use crate::named_layers::NamedLayer;

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
    /// The class of a node's operator.
    pub(crate) fn of(node: &NodeProto) -> Self {
        match node.op_type.as_str() {
            "Conv" | "ConvTranspose" | "ConvInteger" | "QLinearConv" => OperatorClass::Convolution,
            "Gemm" | "MatMul" | "MatMulInteger" | "QLinearMatMul" => OperatorClass::FullyConnected,
            // Of two products, between which a softmax is.
            "Attention" => OperatorClass::FullyConnected,
            // Of one input it only turns or sums up axes.
            "Einsum" if node.input.len() > 1 => OperatorClass::FullyConnected,
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

/// The nodes' layers, and what those are called that the model names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Assigned {
    /// The layer of each node, counted from 1. The number of layers is the largest of them, except that a model without any
    /// is all 1.
    pub(crate) layers: Vec<u32>,
    /// The names of those layers that have one, by number.
    pub(crate) names: BTreeMap<u32, String>,
}

/// Assigns `nodes`, which are in topological order and of which none is constant, to layers: all nodes of one of `named` to
/// a layer of their own, the others by the rule.
pub(crate) fn assign(
    nodes: &[&NodeProto],
    named_layers: &[NamedLayer],
) -> Result<Assigned, ModelError> {
    let links = Links::of(nodes);
    let members = members(nodes, &links, named_layers)?;
    let mut assigned = Assigned {
        layers: vec![0; nodes.len()],
        names: BTreeMap::new(),
    };
    let mut started = 0;
    for unit in units_in_order(&links, &members, named_layers)? {
        let first = unit[0];
        let starts = members[first].is_some() || OperatorClass::of(nodes[first]).starts_layer();
        let layer = if starts {
            started += 1;
            started
        } else {
            let sources = links.sources[first].iter();
            sources
                .map(|&source| assigned.layers[source])
                .max()
                .unwrap_or(1)
        };
        if let Some(place) = members[first] {
            assigned
                .names
                .insert(layer, named_layers[place].name.clone());
        }
        for node in unit {
            assigned.layers[node] = layer;
        }
    }
    Ok(assigned)
}

/// Which nodes take what which others give, by their places.
struct Links {
    /// The nodes that each node takes something from.
    sources: Vec<Vec<usize>>,
    /// The nodes that take something from each node.
    readers: Vec<Vec<usize>>,
}

impl Links {
    fn of(nodes: &[&NodeProto]) -> Links {
        let mut producers: HashMap<&str, usize> = HashMap::new();
        let mut links = Links {
            sources: vec![Vec::new(); nodes.len()],
            readers: vec![Vec::new(); nodes.len()],
        };
        for (place, node) in nodes.iter().enumerate() {
            for source in named(&node.input).filter_map(|input| producers.get(input)) {
                links.sources[place].push(*source);
                links.readers[*source].push(place);
            }
            producers.extend(named(&node.output).map(|output| (output, place)));
        }
        links
    }

    /// The nodes that lie between two of `inside`, which need something from one and are needed by another.
    fn between(&self, inside: &[bool]) -> Vec<usize> {
        let count = inside.len();
        let mut behind = vec![false; count];
        for place in 0..count {
            let mut sources = self.sources[place].iter();
            behind[place] = sources.any(|&source| inside[source] || behind[source]);
        }
        let mut before = vec![false; count];
        for place in (0..count).rev() {
            let mut readers = self.readers[place].iter();
            before[place] = readers.any(|&reader| inside[reader] || before[reader]);
        }
        (0..count)
            .filter(|&place| behind[place] && before[place] && !inside[place])
            .collect()
    }
}

/// Which of `named_layers` each node belongs to, by its place there: those that it names, and those that lie between them.
fn members(
    nodes: &[&NodeProto],
    links: &Links,
    named_layers: &[NamedLayer],
) -> Result<Vec<Option<usize>>, ModelError> {
    let places: HashMap<&str, usize> = (nodes.iter().enumerate())
        .map(|(place, node)| (node.name.as_str(), place))
        .collect();
    let mut members: Vec<Option<usize>> = vec![None; nodes.len()];
    for (index, layer) in named_layers.iter().enumerate() {
        let found = layer
            .nodes
            .iter()
            .filter_map(|name| places.get(name.as_str()));
        let mut is_there = false;
        for &node in found {
            is_there = true;
            if let Some(other) = members[node].replace(index)
                && other != index
            {
                return Err(ModelError::NodeOfTwoLayers {
                    node: nodes[node].name.clone(),
                    layers: [&named_layers[other], layer].map(|layer| layer.name.clone()),
                });
            }
        }
        if !is_there
            || named_layers[..index]
                .iter()
                .any(|before| before.name == layer.name)
        {
            return Err(ModelError::NamedLayers {
                reason: match is_there {
                    true => format!("the layer `{}` is there twice", layer.name),
                    false => format!("no node of the layer `{}` is in the model", layer.name),
                },
            });
        }
    }
    for (index, layer) in named_layers.iter().enumerate() {
        let inside: Vec<bool> = members
            .iter()
            .map(|member| *member == Some(index))
            .collect();
        for node in links.between(&inside) {
            if let Some(other) = members[node].replace(index) {
                return Err(tangled(layer, &named_layers[other]));
            }
        }
    }
    Ok(members)
}

/// The nodes of each named layer, and each other node by itself, in an order in which all that a unit takes was given
/// before: that of the nodes, as far as named layers leave it.
fn units_in_order(
    links: &Links,
    members: &[Option<usize>],
    named_layers: &[NamedLayer],
) -> Result<Vec<Vec<usize>>, ModelError> {
    let mut first_of: HashMap<usize, usize> = HashMap::new();
    let mut units: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut unit_of = Vec::with_capacity(members.len());
    for (place, member) in members.iter().enumerate() {
        let unit = member.map_or(place, |layer| *first_of.entry(layer).or_insert(place));
        unit_of.push(unit);
        units.entry(unit).or_default().push(place);
    }
    let from_others = |unit: usize| {
        let sources = units[&unit].iter().flat_map(|&node| &links.sources[node]);
        sources
            .map(|&source| unit_of[source])
            .filter(move |&source| source != unit)
    };
    let mut waiting: HashMap<usize, usize> = units
        .keys()
        .map(|&unit| (unit, from_others(unit).count()))
        .collect();
    let ready = units.keys().filter(|unit| waiting[unit] == 0);
    let mut ready: BinaryHeap<Reverse<usize>> = ready.copied().map(Reverse).collect();
    let mut order = Vec::with_capacity(units.len());
    while let Some(Reverse(unit)) = ready.pop() {
        waiting.remove(&unit);
        let nodes = &units[&unit];
        let readers = nodes.iter().flat_map(|&node| &links.readers[node]);
        for reader in readers
            .map(|&reader| unit_of[reader])
            .filter(|&reader| reader != unit)
        {
            if let Some(left) = waiting.get_mut(&reader) {
                *left -= 1;
                if *left == 0 {
                    ready.push(Reverse(reader));
                }
            }
        }
        order.push(nodes.clone());
    }
    let Some(mut stuck) = waiting.keys().min().copied() else {
        return Ok(order);
    };
    // Back from any unit that waits, one comes to a circle, on which are two named layers at least: nodes alone have none, and
    // what lies between the nodes of one layer is part of it.
    let mut seen = Vec::new();
    while !seen.contains(&stuck) {
        seen.push(stuck);
        stuck = from_others(stuck)
            .find(|source| waiting.contains_key(source))
            .unwrap_or(stuck);
    }
    let circle = seen.into_iter().skip_while(|&unit| unit != stuck);
    let mut layers = circle
        .filter_map(|unit| members[unit])
        .map(|layer| &named_layers[layer]);
    match (layers.next(), layers.next()) {
        (Some(one), Some(other)) => Err(tangled(one, other)),
        _ => unreachable!("a circle of nodes was refused when the graph was sorted"),
    }
}

fn tangled(one: &NamedLayer, other: &NamedLayer) -> ModelError {
    ModelError::TangledLayers {
        layers: [one, other].map(|layer| layer.name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes written as `Type input,input output`.
    fn layers_of(lines: &[&str]) -> Vec<u32> {
        assigned(lines, &[]).expect("layers").layers
    }

    fn assigned(lines: &[&str], layers: &[(&str, &str)]) -> Result<Assigned, ModelError> {
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
                    name: output.to_owned(),
                    ..NodeProto::default()
                }
            })
            .collect();
        let layers: Vec<NamedLayer> = layers
            .iter()
            .map(|(name, nodes)| NamedLayer {
                name: (*name).to_owned(),
                nodes: nodes.split(',').map(str::to_owned).collect(),
            })
            .collect();
        assign(&nodes.iter().collect::<Vec<_>>(), &layers)
    }

    /// A block as transformers have it: x + project(q k v of x), and that plus what two products make of it.
    const BLOCK: [&str; 9] = [
        "MatMul x q",
        "MatMul x k",
        "MatMul x v",
        "Softmax q,k s",
        "MatMul s,v a",
        "Add x,a r",
        "MatMul r u",
        "MatMul u d",
        "Add r,d y",
    ];

    #[test]
    fn nodes_that_a_model_names_are_a_layer_with_what_lies_between_them() {
        assert_eq!(layers_of(&BLOCK), [1, 2, 3, 2, 4, 4, 5, 6, 6]);
        let both = [("attention", "q,k,v,a"), ("mlp", "u,y")];
        let found = assigned(&BLOCK, &both).expect("layers");
        assert_eq!(found.layers, [1, 1, 1, 1, 1, 1, 2, 2, 2]);
        let names = [(1, "attention".to_owned()), (2, "mlp".to_owned())];
        assert_eq!(found.names, names.into());
        // What is not named goes by the rule, and joins what it follows.
        let found = assigned(&BLOCK, &[("mlp", "u,d")]).expect("layers");
        assert_eq!(found.layers, [1, 2, 3, 2, 4, 4, 5, 5, 5]);
        // One that comes later in the file comes first where the other needs it.
        let crossed = ["Conv x a", "Conv x b", "Conv b c", "Add a,c d"];
        let found = assigned(&crossed, &[("sum", "a,d")]).expect("layers");
        assert_eq!(found.layers, [3, 1, 2, 3]);
    }

    #[test]
    fn layers_that_cannot_be_are_refused() {
        let refusal =
            |layers: &[(&str, &str)]| assigned(&BLOCK, layers).expect_err("no layers").to_string();
        assert_eq!(
            refusal(&[("one", "q,u"), ("two", "s")]),
            "the layers `one` and `two` need what the other gives, so that neither can run first: make them one layer"
        );
        assert_eq!(
            refusal(&[("one", "q,u"), ("two", "k,y")]),
            "the layers `two` and `one` need what the other gives, so that neither can run first: make them one layer"
        );
        assert_eq!(
            refusal(&[("one", "q,k"), ("two", "k,v")]),
            "the node `k` is in the layers `one` and `two`: have it in one"
        );
        assert_eq!(
            refusal(&[("one", "q"), ("one", "k")]),
            "the model's metadata entry `layerlab.layers` cannot be used (the layer `one` is there twice): make the file \
             again with `layerlab model group`"
        );
        assert_eq!(
            refusal(&[("one", "nobody")]),
            "the model's metadata entry `layerlab.layers` cannot be used (no node of the layer `one` is in the model): \
             make the file again with `layerlab model group`"
        );
        // Neither has anything between its nodes, and each needs the other.
        let crossed = ["Conv x a", "Conv x b", "Conv a c", "Conv b d"];
        let refused = assigned(&crossed, &[("one", "a,d"), ("two", "b,c")]);
        let sentence = refused.expect_err("no layers").to_string();
        assert!(sentence.starts_with("the layers `"), "{sentence}");
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

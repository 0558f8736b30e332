//! The graph between file and layers: inputs apart from constants, nodes in topological order, every
//! name given exactly once, nothing that no output needs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::path::Path;

use tract_onnx::pb::{GraphProto, NodeProto, OperatorSetIdProto};

use crate::attention::ATTENTION;
use crate::constant::Constant;
use crate::reader::reader;
use crate::tensor::TensorSpec;
use crate::{ModelError, dims};

/// A network's graph.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) inputs: Vec<TensorSpec>,
    pub(crate) constants: BTreeMap<String, Constant>,
    /// In topological order, in the file's order where that leaves a choice.
    pub(crate) nodes: Vec<NodeProto>,
    /// Names of the outputs, in the file's order.
    pub(crate) outputs: Vec<String>,
}

impl Graph {
    /// Reads `graph`, whose external data are in `folder` and whose operators are of the domains `imported`, with its open
    /// dimensions set to `given`.
    pub(crate) fn read(
        graph: GraphProto,
        imported: &[OperatorSetIdProto],
        folder: Option<&Path>,
        given: &BTreeMap<String, u64>,
    ) -> Result<Self, ModelError> {
        let mut nodes = graph.node;
        name_nodes(&mut nodes)?;
        check_operators(&nodes, imported)?;

        let mut constants = BTreeMap::new();
        let mut keep =
            |constant: Constant| match constants.insert(constant.spec.name.clone(), constant) {
                None => Ok(()),
                Some(twice) => Err(ModelError::DuplicateTensor {
                    tensor: twice.spec.name,
                }),
            };
        for mut tensor in graph.initializer {
            let name = std::mem::take(&mut tensor.name);
            keep(Constant::read(tensor, &name, folder)?)?;
        }
        if let Some(sparse) = graph.sparse_initializer.into_iter().next() {
            return Err(ModelError::UnsupportedElement {
                tensor: sparse.values.map(|values| values.name).unwrap_or_default(),
                element: "sparse tensor".to_owned(),
            });
        }
        let mut computing = Vec::with_capacity(nodes.len());
        for mut node in nodes {
            if node.op_type == "Constant" {
                keep(Constant::from_node(node, folder)?)?;
            } else {
                inline_attributes(&mut node, folder)?;
                computing.push(node);
            }
        }

        // Before format version 4 every initialiser had to be listed as an input too.
        let inputs: Vec<_> = graph
            .input
            .into_iter()
            .filter(|input| !constants.contains_key(&input.name))
            .collect();
        let mut graph = Graph {
            inputs: dims::fix(&inputs, given)?,
            constants,
            nodes: computing,
            outputs: graph.output.into_iter().map(|output| output.name).collect(),
        };
        graph.sort()?;
        graph.prune();
        Ok(graph)
    }

    /// Puts the nodes in topological order, the earliest in the file first among those that are ready.
    fn sort(&mut self) -> Result<(), ModelError> {
        let producers = self.producers()?;
        let given: HashSet<&str> = self
            .inputs
            .iter()
            .map(|input| input.name.as_str())
            .chain(self.constants.keys().map(String::as_str))
            .collect();
        let mut outputs = HashSet::new();
        for output in &self.outputs {
            if !outputs.insert(output) {
                return Err(ModelError::DuplicateTensor {
                    tensor: output.clone(),
                });
            }
            if !given.contains(output.as_str()) && !producers.contains_key(output) {
                return Err(ModelError::MissingTensor {
                    tensor: output.clone(),
                    reader: "the graph's output".to_owned(),
                });
            }
        }
        let mut readers = vec![Vec::new(); self.nodes.len()];
        let mut waiting = vec![0_usize; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for input in named(&node.input) {
                if let Some(&producer) = producers.get(input) {
                    readers[producer].push(index);
                    waiting[index] += 1;
                } else if !given.contains(input) {
                    return Err(ModelError::MissingTensor {
                        tensor: input.to_owned(),
                        reader: format!("node `{}`", node.name),
                    });
                }
            }
        }
        let mut ready: BinaryHeap<Reverse<usize>> = (0..self.nodes.len())
            .filter(|&index| waiting[index] == 0)
            .map(Reverse)
            .collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse(index)) = ready.pop() {
            order.push(index);
            for &reader in &readers[index] {
                waiting[reader] -= 1;
                if waiting[reader] == 0 {
                    ready.push(Reverse(reader));
                }
            }
        }
        if let Some(stuck) = waiting.iter().position(|&count| count > 0) {
            return Err(ModelError::Cycle {
                node: self.nodes[stuck].name.clone(),
            });
        }
        let mut nodes: Vec<_> = std::mem::take(&mut self.nodes)
            .into_iter()
            .map(Some)
            .collect();
        self.nodes = order
            .into_iter()
            .filter_map(|index| nodes[index].take())
            .collect();
        Ok(())
    }

    /// Which node gives each tensor; an error if anything is given twice.
    fn producers(&self) -> Result<HashMap<String, usize>, ModelError> {
        let mut inputs = HashSet::new();
        for input in &self.inputs {
            if !inputs.insert(input.name.as_str()) {
                return Err(ModelError::DuplicateTensor {
                    tensor: input.name.clone(),
                });
            }
        }
        let mut producers = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            for output in named(&node.output) {
                let again = producers.insert(output.to_owned(), index).is_some();
                if again || inputs.contains(output) || self.constants.contains_key(output) {
                    return Err(ModelError::DuplicateTensor {
                        tensor: output.to_owned(),
                    });
                }
            }
        }
        Ok(producers)
    }

    /// Replaces the nodes whose outputs are all in `values` by those values.
    pub(crate) fn fold(&mut self, mut values: HashMap<String, Constant>) {
        let constants = &mut self.constants;
        self.nodes.retain(|node| {
            let known = named(&node.output).all(|output| values.contains_key(output));
            if known {
                for output in named(&node.output) {
                    if let Some(value) = values.remove(output) {
                        constants.insert(output.to_owned(), value);
                    }
                }
            }
            !known
        });
        self.prune();
    }

    /// Drops what no output needs.
    fn prune(&mut self) {
        let mut needed: HashSet<String> = self.outputs.iter().cloned().collect();
        let mut nodes = std::mem::take(&mut self.nodes);
        nodes.reverse();
        nodes.retain_mut(|node| {
            let wanted = named(&node.output).any(|output| needed.contains(output));
            if wanted {
                trim(node, &needed);
                needed.extend(named(&node.input).map(str::to_owned));
            }
            wanted
        });
        nodes.reverse();
        self.nodes = nodes;
        self.constants.retain(|name, _| needed.contains(name));
    }

    /// For each node, whether it computes the same for every input: it reads only constants and draws no
    /// random numbers.
    pub(crate) fn constant_nodes(&self) -> Vec<bool> {
        let mut constant: HashSet<&str> = self.constants.keys().map(String::as_str).collect();
        let mut found = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let random = node.op_type.starts_with("Random")
                || matches!(node.op_type.as_str(), "Multinomial" | "Bernoulli");
            let fixed = !random && named(&node.input).all(|input| constant.contains(input));
            if fixed {
                constant.extend(named(&node.output));
            }
            found.push(fixed);
        }
        found
    }
}

/// The names that are there: an optional input or output that is left out has an empty one.
pub(crate) fn named(names: &[String]) -> impl DoubleEndedIterator<Item = &str> {
    names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
}

/// Drops outputs and inputs that say nothing: some operators count them and take another meaning.
fn trim(node: &mut NodeProto, needed: &HashSet<String>) {
    // Outputs of training, or asked for by exporters as a matter of course.
    let optional = matches!(
        node.op_type.as_str(),
        "BatchNormalization" | "Dropout" | "MaxPool"
    );
    while node.output.len() > 1
        && node
            .output
            .last()
            .is_some_and(|output| output.is_empty() || (optional && !needed.contains(output)))
    {
        node.output.pop();
    }
    while node.input.last().is_some_and(String::is_empty) {
        node.input.pop();
    }
}

/// Gives every node without a name its first output's, with a number if that is taken.
fn name_nodes(nodes: &mut [NodeProto]) -> Result<(), ModelError> {
    let mut taken: HashSet<String> = HashSet::new();
    for node in nodes.iter().filter(|node| !node.name.is_empty()) {
        if !taken.insert(node.name.clone()) {
            return Err(ModelError::DuplicateNode {
                node: node.name.clone(),
            });
        }
    }
    for node in nodes.iter_mut().filter(|node| node.name.is_empty()) {
        let stem = named(&node.output)
            .next()
            .unwrap_or(&node.op_type)
            .to_owned();
        let mut name = stem.clone();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            name = format!("{stem}_{number}");
            number += 1;
        }
        node.name = name;
    }
    Ok(())
}

/// The domains whose operators tract knows. It takes an operator by its type alone, whatever the domain.
const KNOWN_DOMAINS: [&str; 3] = ["ai.onnx", "ai.onnx.ml", "com.microsoft"];

/// ONNX's own domain has two names.
fn domain(name: &str) -> &str {
    if name.is_empty() { "ai.onnx" } else { name }
}

/// Refuses nodes that run other graphs and operators that nothing here can run.
fn check_operators(nodes: &[NodeProto], imported: &[OperatorSetIdProto]) -> Result<(), ModelError> {
    let supported = reader().op_register.0;
    for node in nodes {
        let own = domain(&node.domain);
        if !imported.iter().any(|import| domain(&import.domain) == own) {
            return Err(ModelError::DomainNotImported {
                node: node.name.clone(),
                operator: node.op_type.clone(),
                domain: own.to_owned(),
            });
        }
        let has_graph = |attribute: &tract_onnx::pb::AttributeProto| {
            attribute.g.is_some() || !attribute.graphs.is_empty()
        };
        if matches!(
            node.op_type.as_str(),
            "If" | "Loop" | "Scan" | "SequenceMap"
        ) || node.attribute.iter().any(has_graph)
        {
            return Err(ModelError::ControlFlow {
                node: node.name.clone(),
                operator: node.op_type.clone(),
            });
        }
        // tract tells operators apart by their names alone, and other domains have an Attention of their own.
        let is_theirs = node.op_type == ATTENTION && own != "ai.onnx";
        if is_theirs || !supported.contains_key(&node.op_type) || !KNOWN_DOMAINS.contains(&own) {
            let operator = match own {
                "ai.onnx" => node.op_type.clone(),
                domain => format!("{domain}.{}", node.op_type),
            };
            return Err(ModelError::UnknownOperator {
                node: node.name.clone(),
                operator,
            });
        }
    }
    Ok(())
}

/// Brings external data of tensors in attributes inside, and drops what only people read.
fn inline_attributes(node: &mut NodeProto, folder: Option<&Path>) -> Result<(), ModelError> {
    node.doc_string.clear();
    for attribute in &mut node.attribute {
        attribute.doc_string.clear();
        let name = format!("{}.{}", node.name, attribute.name);
        for tensor in attribute.t.iter_mut().chain(&mut attribute.tensors) {
            let constant = Constant::read(std::mem::take(tensor), &name, folder)?;
            *tensor = constant.to_proto();
        }
    }
    Ok(())
}

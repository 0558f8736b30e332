//! A network as the rest of layerlab sees it: a table of layers, the frontier at each cut, and one
//! self-contained file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use layerlab_profiles::document::HashedFile;
use layerlab_profiles::{Layer, Segment};
use prost::Message;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto};

use crate::frontier::{Frontiers, computed};
use crate::graph::{Graph, named};
use crate::layers::{OperatorClass, assign};
use crate::named_layers::{self, NamedLayer};
use crate::operator::Operator;
use crate::read::PROTOBUF_LIMIT;
use crate::sub_model::SubModel;
use crate::tensor::TensorSpec;
use crate::{ModelError, encode, external, infer, limits, premises, read};

/// The oldest operator set that is read.
const OLDEST_OPSET: i64 = 7;

/// A network, cut into layers. It holds its weights and needs no other file.
#[derive(Clone, Debug)]
pub struct Network {
    name: String,
    opset: i64,
    header: ModelProto,
    graph: Graph,
    /// The layers that the model names itself.
    named_layers: Vec<NamedLayer>,
    /// The layer of each of the graph's nodes; none for one that is constant.
    node_layers: Vec<Option<u32>>,
    layers: Vec<Layer>,
    operators: Vec<Vec<Operator>>,
    frontiers: Frontiers,
}

/// What a network was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSource {
    /// The bytes of the model file.
    pub onnx: Vec<u8>,
    /// The files beside it that hold its weights, sorted by name; none where it holds all of them itself.
    pub external_weights: Vec<HashedFile>,
}

impl Network {
    /// Reads the ONNX file at `path` and the external data beside it, with open dimensions set to `dims`.
    ///
    /// An open first dimension of an input is the batch and is 1 unless it is given.
    pub fn open(path: &Path, dims: &BTreeMap<String, u64>) -> Result<Network, ModelError> {
        Network::open_with_source(path, dims).map(|(network, _)| network)
    }

    /// The same, with what it was read from: a pipe can be read only once, and a file may change meanwhile.
    pub fn open_with_source(
        path: &Path,
        dims: &BTreeMap<String, u64>,
    ) -> Result<(Network, ModelSource), ModelError> {
        let subject = format!("`{}`", path.display());
        let source = read::file(path)?;
        let model = read::from_bytes(&source, subject.clone())?;
        let name = path
            .file_stem()
            .map_or("model".into(), |stem| stem.to_string_lossy());
        let folder = path.parent().unwrap_or(Path::new("."));
        let external = external::locations(&model);
        let network = Network::new(model, name.into_owned(), &subject, Some(folder), dims)?;
        let source = ModelSource {
            onnx: source,
            external_weights: external::hashed(folder, external)?,
        };
        Ok((network, source))
    }

    /// Reads what [`Network::to_onnx`] wrote.
    pub fn from_onnx(bytes: &[u8]) -> Result<Network, ModelError> {
        const SUBJECT: &str = "the model received";
        let model = read::from_bytes(bytes, SUBJECT.to_owned())?;
        let name = model
            .graph
            .as_ref()
            .map_or(String::new(), |graph| graph.name.clone());
        Network::new(model, name, SUBJECT, None, &BTreeMap::new())
    }

    fn new(
        mut model: ModelProto,
        name: String,
        subject: &str,
        folder: Option<&Path>,
        dims: &BTreeMap<String, u64>,
    ) -> Result<Network, ModelError> {
        let Some(graph) = model.graph.take() else {
            return Err(ModelError::NotOnnx {
                model: subject.to_owned(),
                reason: "it has no graph".to_owned(),
            });
        };
        let opset = opset(&model.opset_import);
        if opset < OLDEST_OPSET {
            return Err(ModelError::OldOpset { found: opset });
        }
        let named_layers = named_layers::read(&model)?;
        let header = header(model);

        let declared = graph.output.clone();
        let mut graph = Graph::read(graph, &header.opset_import, folder, dims)?;
        limits::tensors(&graph.inputs)?;
        premises::check(&graph)?;
        let facts = infer::infer(&whole(&header, &name, &graph, &[]))?;
        // What follows from constants alone stays as it is: accelerators recognise quantised weights by the
        // nodes that expand them.
        let constant = graph.constant_nodes();
        let mut folded = facts.values;
        for (node, _) in graph
            .nodes
            .iter()
            .zip(constant)
            .filter(|(_, constant)| *constant)
        {
            for output in &node.output {
                folded.remove(output);
            }
        }
        graph.fold(folded);

        let mut specs = facts.specs;
        specs.extend(
            graph
                .inputs
                .iter()
                .map(|spec| (spec.name.clone(), spec.clone())),
        );
        specs.extend(
            graph
                .constants
                .values()
                .map(|constant| (constant.spec.name.clone(), constant.spec.clone())),
        );
        limits::tensors(specs.values())?;
        limits::outputs(&declared, &specs)?;
        limits::computed(&graph, &specs)?;
        let network = Network::divide(name, opset, header, graph, named_layers, &specs)?;
        limits::operations(network.layers())?;
        let bytes = network.model().encoded_len() as u64;
        if bytes > PROTOBUF_LIMIT {
            return Err(ModelError::TooLarge {
                model: subject.to_owned(),
                bytes,
            });
        }
        Ok(network)
    }

    /// Divides a clean graph into layers.
    fn divide(
        name: String,
        opset: i64,
        header: ModelProto,
        graph: Graph,
        named_layers: Vec<NamedLayer>,
        specs: &HashMap<String, TensorSpec>,
    ) -> Result<Network, ModelError> {
        let constant = graph.constant_nodes();
        let computing: Vec<&NodeProto> = graph
            .nodes
            .iter()
            .zip(&constant)
            .filter(|(_, constant)| !**constant)
            .map(|(n, _)| n)
            .collect();
        let starts_layer = |node: &&NodeProto| OperatorClass::of(node).starts_layer();
        if named_layers.is_empty() && !computing.iter().any(starts_layer) {
            return Err(ModelError::NoLayers {
                nodes: computing.len(),
            });
        }
        let assigned = assign(&computing, &named_layers)?;
        let count = assigned.layers.iter().copied().max().unwrap_or(0);
        let mut next = assigned.layers.iter().copied();
        let node_layers: Vec<Option<u32>> = constant
            .iter()
            .map(|&constant| if constant { None } else { next.next() })
            .collect();

        let frontiers = Frontiers::of(&graph, &node_layers, count, specs);
        let computed = computed(&graph, &node_layers);
        let mut operators = vec![Vec::new(); count as usize];
        let mut parameters: Vec<HashSet<&str>> = vec![HashSet::new(); count as usize];
        for (node, layer) in computing.iter().zip(assigned.layers) {
            let index = layer as usize - 1;
            operators[index].push(Operator::new(node, opset, &computed, specs));
            parameters[index]
                .extend(named(&node.input).filter(|input| !computed.contains_key(input)));
        }
        let layers = (0..count)
            .map(|index| {
                let at = index as usize;
                layer(
                    index + 1,
                    assigned.names.get(&(index + 1)),
                    &operators[at],
                    &parameters[at],
                    specs,
                    &frontiers,
                )
            })
            .collect();
        Ok(Network {
            name,
            opset,
            header,
            graph,
            named_layers,
            node_layers,
            layers,
            operators,
            frontiers,
        })
    }

    /// The network as one ONNX file: no external data, no open dimension. The same network gives the same
    /// bytes.
    pub fn to_onnx(&self) -> Vec<u8> {
        encode::to_bytes(self.model())
    }

    pub(crate) fn model(&self) -> ModelProto {
        let outputs = self.outputs();
        self.naming_layers(whole(&self.header, &self.name, &self.graph, outputs))
    }

    /// `model`, which has this network's nodes, with the layers that this network names.
    fn naming_layers(&self, mut model: ModelProto) -> ModelProto {
        model.metadata_props = named_layers::metadata(&self.named_layers);
        model
    }

    /// The nodes and constants that the layers are made of.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// A network with another graph, in the order of its nodes, and all else of this one.
    pub(crate) fn with_graph(&self, graph: &Graph) -> Result<Network, ModelError> {
        let model = self.naming_layers(self.model_of(graph));
        Network::new(model, self.name.clone(), &self.name, None, &BTreeMap::new())
    }

    /// Another graph as a model with the header of this network; its outputs have no shapes yet.
    pub(crate) fn model_of(&self, graph: &Graph) -> ModelProto {
        whole(&self.header, &self.name, graph, &[])
    }

    /// The same network with the nodes of each of `named_layers` as one layer.
    ///
    /// # Errors
    /// When a node is in two of them, when one has no node, or when neither of two can run before the other.
    pub fn with_named_layers(&self, named_layers: Vec<NamedLayer>) -> Result<Network, ModelError> {
        let mut model = self.model();
        model.metadata_props = named_layers::metadata(&named_layers);
        Network::new(model, self.name.clone(), &self.name, None, &BTreeMap::new())
    }

    /// The layers that the model's file names, none where all go by the rule.
    pub fn named_layers(&self) -> &[NamedLayer] {
        &self.named_layers
    }

    /// What the network is called: the name of its file without the ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version of ONNX's operator set that its nodes follow.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// The layer table, layer 1 first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// How many layers there are, at least one.
    pub fn layer_count(&self) -> u32 {
        // Layers are numbered by u32.
        self.layers.len() as u32
    }

    /// The operators of a layer, in the order in which they run.
    ///
    /// # Panics
    /// Unless `layer` is one of the network's, counted from 1.
    pub fn operators(&self, layer: u32) -> &[Operator] {
        assert!(
            (1..=self.layer_count()).contains(&layer),
            "there is no layer {layer}"
        );
        &self.operators[layer as usize - 1]
    }

    /// The network's inputs, in their order.
    pub fn inputs(&self) -> &[TensorSpec] {
        self.alive(0)
    }

    /// The network's outputs, in their order.
    pub fn outputs(&self) -> &[TensorSpec] {
        self.alive(self.layer_count())
    }

    /// The tensors that cross the cut after layer `cut`: what layers gave before it and layers read after it. For 0, the inputs
    /// that layer 1 takes; for the last layer, the outputs that it gives.
    ///
    /// An input that is read late and an output that is given early cross no cut: they lie in main memory anyway.
    ///
    /// # Panics
    /// When `cut` is larger than the number of layers.
    pub fn frontier(&self, cut: u32) -> &[TensorSpec] {
        assert!(cut <= self.layer_count(), "there is no cut {cut}");
        &self.frontiers.crossing[cut as usize]
    }

    /// The tensors that must be kept somewhere while the layers up to `cut` have run and the others have not: those that cross
    /// it, the inputs that are read later, and the outputs that were given before. For 0 the network's inputs, for the last layer
    /// its outputs.
    ///
    /// # Panics
    /// When `cut` is larger than the number of layers.
    pub fn alive(&self, cut: u32) -> &[TensorSpec] {
        assert!(cut <= self.layer_count(), "there is no cut {cut}");
        &self.frontiers.alive[cut as usize]
    }

    /// What the layers of `segment` take, run as one: the network's inputs that they read, then what else crosses the cut before
    /// them. They are all alive there.
    ///
    /// # Panics
    /// When the segment ends beyond the network.
    pub fn takes(&self, segment: Segment) -> Vec<TensorSpec> {
        assert!(
            segment.last() <= self.layer_count(),
            "there is no {segment}"
        );
        self.frontiers.taken(segment)
    }

    /// What the layers of `segment` give, run as one: what crosses the cut after them, then the network's other outputs that
    /// they give.
    ///
    /// # Panics
    /// When the segment ends beyond the network.
    pub fn gives(&self, segment: Segment) -> Vec<TensorSpec> {
        assert!(
            segment.last() <= self.layer_count(),
            "there is no {segment}"
        );
        self.frontiers.given(segment)
    }

    /// Which layers take each of the network's inputs, and which layer gives each of its outputs.
    pub(crate) fn ends(&self) -> (Vec<&[u32]>, Vec<u32>) {
        let inputs = self.frontiers.inputs.iter();
        let outputs = self.frontiers.outputs.iter();
        (
            inputs.map(|input| input.takers.as_slice()).collect(),
            outputs.map(|output| output.giver).collect(),
        )
    }

    /// The layers that read a tensor, in order; none of a tensor that only leaves the network, or that there is not.
    ///
    /// A frontier says until which layer a tensor crosses cuts, not which of the layers before that can do without it.
    pub fn readers(&self, tensor: &str) -> Vec<u32> {
        let nodes = self.graph.nodes.iter().zip(&self.node_layers);
        let reading = nodes.filter(|(node, _)| node.input.iter().any(|input| input == tensor));
        let mut layers: Vec<u32> = reading.filter_map(|(_, layer)| *layer).collect();
        layers.sort_unstable();
        layers.dedup();
        layers
    }

    /// Cuts the layers of `segment` out as a model of their own.
    pub fn segment(&self, segment: Segment) -> Result<SubModel, ModelError> {
        if segment.last() > self.layer_count() {
            return Err(ModelError::SegmentBeyondModel {
                segment,
                layers: self.layer_count(),
            });
        }
        let name = format!("{} {segment}", self.name);
        let nodes = self.graph.nodes.iter().zip(&self.node_layers);
        Ok(SubModel::cut(
            &self.header,
            name,
            &self.graph.constants,
            nodes.map(|(node, layer)| {
                let inside = layer.map(|layer| (segment.first()..=segment.last()).contains(&layer));
                (node, inside)
            }),
            &self.takes(segment),
            &self.gives(segment),
        ))
    }
}

/// A row of the layer table; `name` is what the model calls it, if it does.
fn layer(
    number: u32,
    name: Option<&String>,
    operators: &[Operator],
    parameters: &HashSet<&str>,
    specs: &HashMap<String, TensorSpec>,
    frontiers: &Frontiers,
) -> Layer {
    let defining = operators
        .iter()
        .find(|operator| operator.class.starts_layer());
    let total = |of: fn(&Operator) -> u64| operators.iter().map(of).fold(0, u64::saturating_add);
    let bytes = |cut: u32| {
        let crossing = frontiers.crossing[cut as usize].iter();
        crossing.map(TensorSpec::bytes).sum()
    };
    Layer {
        number,
        name: name
            .or(defining.map(|operator| &operator.name))
            .cloned()
            .unwrap_or_default(),
        operators: operators
            .iter()
            .map(|operator| operator.op_type.clone())
            .collect(),
        parameter_bytes: parameters
            .iter()
            .filter_map(|name| specs.get(*name))
            .map(TensorSpec::bytes)
            .sum(),
        input_bytes: bytes(number - 1),
        output_bytes: bytes(number),
        model_input_bytes: frontiers.inputs_beside(number),
        model_output_bytes: frontiers.outputs_beside(number),
        shortcuts: frontiers.shortcuts_of(number),
        additions: total(|operator| operator.additions),
        multiplications: total(|operator| operator.multiplications),
    }
}

/// The version of ONNX's own operator set among those that a model imports; 0 if it imports none.
fn opset(imports: &[OperatorSetIdProto]) -> i64 {
    let own = |import: &&OperatorSetIdProto| matches!(import.domain.as_str(), "" | "ai.onnx");
    imports.iter().find(own).map_or(0, |import| import.version)
}

/// What stays of a model besides its graph: nothing that only people read.
fn header(model: ModelProto) -> ModelProto {
    /// The first format version in which an initialiser need not be an input as well.
    const INITIALISERS_APART: i64 = 4;
    ModelProto {
        ir_version: model.ir_version.max(INITIALISERS_APART),
        opset_import: model.opset_import,
        producer_name: model.producer_name,
        producer_version: model.producer_version,
        ..ModelProto::default()
    }
}

/// A whole graph as a model; `outputs` may be empty where their shapes are not known yet.
fn whole(header: &ModelProto, name: &str, graph: &Graph, outputs: &[TensorSpec]) -> ModelProto {
    let mut model = header.clone();
    let output = |(index, name): (usize, &String)| match outputs.get(index) {
        Some(spec) => spec.value_info(name),
        None => tract_onnx::pb::ValueInfoProto {
            name: name.clone(),
            ..Default::default()
        },
    };
    model.graph = Some(GraphProto {
        name: name.to_owned(),
        node: graph.nodes.clone(),
        initializer: graph
            .constants
            .values()
            .map(|constant| constant.to_proto())
            .collect(),
        input: graph
            .inputs
            .iter()
            .map(|input| input.value_info(&input.name))
            .collect(),
        output: graph.outputs.iter().enumerate().map(output).collect(),
        ..GraphProto::default()
    });
    model
}

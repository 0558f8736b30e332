//! Which tensors are alive at each cut, which of them cross it, and which lie in main memory beside it: the network's own
//! inputs and outputs.

use std::collections::{BTreeMap, HashMap, HashSet};

use layerlab_profiles::{Bytes, Segment, Shortcut};

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

/// An input of the network.
#[derive(Clone, Debug)]
pub(crate) struct NetworkInput {
    pub(crate) spec: TensorSpec,
    /// The layers that take it, at least one, in order: those that read it. The first where none does, and the last too where it
    /// is an output as well.
    pub(crate) takers: Vec<u32>,
}

/// An output of the network.
#[derive(Clone, Debug)]
pub(crate) struct NetworkOutput {
    pub(crate) spec: TensorSpec,
    /// The layer that gives it: the last where it is no layer's result.
    pub(crate) giver: u32,
}

/// From where to where a tensor is needed that is no constant.
struct Life<'a> {
    spec: &'a TensorSpec,
    /// The layer that gives it, 0 of an input.
    given: u32,
    /// The last layer that reads it, 0 where none does.
    last_read: u32,
    is_output: bool,
}

/// The tensors between the layers of a network, and those around them.
#[derive(Clone, Debug)]
pub(crate) struct Frontiers {
    /// In their order.
    pub(crate) inputs: Vec<NetworkInput>,
    /// In their order.
    pub(crate) outputs: Vec<NetworkOutput>,
    /// At each cut, what was given before it and is read after it or is an output: inputs in their order, then what nodes give
    /// in theirs. The inputs at cut 0, the outputs at the last.
    pub(crate) alive: Vec<Vec<TensorSpec>>,
    /// Those that cross each cut.
    pub(crate) crossing: Vec<Vec<TensorSpec>>,
    /// What layers give to others than the next, by the layer that gives it and the last that reads it.
    shortcuts: BTreeMap<(u32, u32), Bytes>,
}

impl Frontiers {
    /// Those of a graph of `count` layers.
    pub(crate) fn of(
        graph: &Graph,
        node_layers: &[Option<u32>],
        count: u32,
        specs: &HashMap<String, TensorSpec>,
    ) -> Frontiers {
        let mut readers: HashMap<&str, Vec<u32>> = HashMap::new();
        for (node, layer) in graph.nodes.iter().zip(node_layers) {
            for input in named(&node.input) {
                readers.entry(input).or_default().extend(*layer);
            }
        }
        let computed = computed(graph, node_layers);
        let is_output: HashSet<&str> = graph.outputs.iter().map(String::as_str).collect();
        let inputs = graph.inputs.iter().map(|spec| {
            let mut takers = readers.get(spec.name.as_str()).cloned().unwrap_or_default();
            if is_output.contains(spec.name.as_str()) {
                takers.push(count);
            }
            if takers.is_empty() {
                takers.push(1);
            }
            takers.sort_unstable();
            takers.dedup();
            NetworkInput {
                spec: spec.clone(),
                takers,
            }
        });
        let outputs = graph.outputs.iter().filter_map(|name| {
            let given = computed.get(name.as_str()).copied();
            Some(NetworkOutput {
                spec: specs.get(name)?.clone(),
                giver: given.filter(|&layer| layer > 0).unwrap_or(count),
            })
        });
        let (inputs, outputs): (Vec<_>, Vec<_>) = (inputs.collect(), outputs.collect());
        let names = graph.inputs.iter().map(|input| input.name.as_str());
        let names = names.chain(graph.nodes.iter().flat_map(|node| named(&node.output)));
        let lives: Vec<Life<'_>> = names
            .filter_map(|name| {
                let readers = readers.get(name).into_iter().flatten();
                Some(Life {
                    spec: specs.get(name)?,
                    given: *computed.get(name)?,
                    last_read: readers.copied().max().unwrap_or(0),
                    is_output: is_output.contains(name),
                })
            })
            .collect();
        let at = |is_there: &dyn Fn(&Life<'_>) -> bool| -> Vec<TensorSpec> {
            let there = lives.iter().filter(|life| is_there(life));
            there.map(|life| life.spec.clone()).collect()
        };
        let alive = (0..=count).map(|cut| match cut {
            0 => inputs.iter().map(|input| input.spec.clone()).collect(),
            _ if cut == count => outputs.iter().map(|output| output.spec.clone()).collect(),
            _ => at(&|life| life.given <= cut && (life.is_output || life.last_read > cut)),
        });
        let crossing = (0..=count).map(|cut| match cut {
            0 => {
                let first = inputs.iter().filter(|input| input.takers.contains(&1));
                first.map(|input| input.spec.clone()).collect()
            }
            _ if cut == count => {
                let last = outputs.iter().filter(|output| output.giver == count);
                last.map(|output| output.spec.clone()).collect()
            }
            _ => at(&|life| (1..=cut).contains(&life.given) && life.last_read > cut),
        });
        let (alive, crossing) = (alive.collect(), crossing.collect());
        let mut shortcuts: BTreeMap<(u32, u32), Bytes> = BTreeMap::new();
        for life in &lives {
            if life.given > 0 && life.last_read > life.given + 1 {
                let bytes = shortcuts.entry((life.given, life.last_read)).or_default();
                *bytes = *bytes + life.spec.bytes();
            }
        }
        Frontiers {
            inputs,
            outputs,
            alive,
            crossing,
            shortcuts,
        }
    }

    /// The bytes of the network's inputs that a layer takes beside what crosses the cut before it.
    pub(crate) fn inputs_beside(&self, layer: u32) -> Bytes {
        let inputs = self.inputs.iter();
        let inputs = inputs.filter(|input| layer > 1 && input.takers.contains(&layer));
        inputs.map(|input| input.spec.bytes()).sum()
    }

    /// The bytes of the network's outputs that a layer gives beside what crosses the last cut.
    pub(crate) fn outputs_beside(&self, layer: u32) -> Bytes {
        let is_last = layer as usize == self.crossing.len() - 1;
        let outputs = self.outputs.iter();
        let outputs = outputs.filter(|output| !is_last && output.giver == layer);
        outputs.map(|output| output.spec.bytes()).sum()
    }

    /// What a layer gives to others than the next, by the last layer that reads it.
    pub(crate) fn shortcuts_of(&self, layer: u32) -> Vec<Shortcut> {
        let given = self.shortcuts.range((layer, 0)..=(layer, u32::MAX));
        let shortcut = |(&(_, to_layer), &bytes)| Shortcut { to_layer, bytes };
        given.map(shortcut).collect()
    }

    /// What a segment takes: the network's inputs that its layers take, then what crosses its left cut.
    pub(crate) fn taken(&self, segment: Segment) -> Vec<TensorSpec> {
        let layers = segment.first()..=segment.last();
        let inputs = self.inputs.iter();
        let inputs = inputs.filter(|input| input.takers.iter().any(|layer| layers.contains(layer)));
        let mut taken: Vec<TensorSpec> = inputs.map(|input| input.spec.clone()).collect();
        if segment.first() > 1 {
            taken.extend_from_slice(&self.crossing[segment.first() as usize - 1]);
        }
        taken
    }

    /// What a segment gives: what crosses its right cut, then the network's other outputs that its layers give.
    pub(crate) fn given(&self, segment: Segment) -> Vec<TensorSpec> {
        let layers = segment.first()..=segment.last();
        let last = segment.last() as usize;
        let mut given = match last == self.crossing.len() - 1 {
            true => Vec::new(),
            false => self.crossing[last].clone(),
        };
        let outputs = self.outputs.iter();
        let outputs = outputs.filter(|output| layers.contains(&output.giver));
        let outputs: Vec<TensorSpec> = outputs
            .map(|output| output.spec.clone())
            .filter(|spec| !given.contains(spec))
            .collect();
        given.extend(outputs);
        given
    }
}

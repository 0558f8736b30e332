//! Random graphs of convolutions, poolings, joins and cheap nodes: every tensor goes from a layer to the
//! same or a later one, and every segment gives the bits of its layers chained.

use crate::common;

use std::collections::HashMap;

use common::build::{Builder, int, ints};
use common::run::{self, Compared, Optimiser};
use layerlab_model::Network;
use layerlab_profiles::Segment;
use proptest::prelude::*;
use tract_onnx::prelude::Framework;

/// One node to add: what it is, and from which earlier tensors it takes its inputs.
type Step = (u8, u16, u16, u8);

/// A graph of images of 5 x 5 that does what `steps` say, as far as numbers of channels let it. What
/// nobody reads is an output, and so is what `extra` picks.
fn graph(steps: &[Step], extra: u16) -> Builder {
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 5, 5]);
    builder.conv("t0", "image", 3, 4, 3);
    let mut tensors = vec![("image".to_owned(), 3), ("t0".to_owned(), 4)];
    for (index, &(kind, left, right, number)) in steps.iter().enumerate() {
        let name = format!("t{}", index + 1);
        let (a, channels) = tensors[usize::from(left) % tensors.len()].clone();
        let alike: Vec<_> = tensors
            .iter()
            .filter(|(_, other)| *other == channels)
            .collect();
        let twin = alike[usize::from(right) % alike.len()].0.clone();
        let (b, others) = tensors[usize::from(right) % tensors.len()].clone();
        let window = || vec![ints("kernel_shape", &[3, 3]), ints("pads", &[1; 4])];
        let to = i64::from(number % 4) + 1;
        let given = match kind % 14 {
            0 | 1 => {
                builder.conv(&name, &a, channels, to, 3);
                to
            }
            2 | 3 => {
                builder.conv(&name, &a, channels, to, 1);
                to
            }
            4 => {
                builder.node(&format!("Relu {a} {name}"), vec![]);
                channels
            }
            5 => {
                builder.node(&format!("Add {a},{twin} {name}"), vec![]);
                channels
            }
            6 | 7 if channels + others <= 12 => {
                builder.node(&format!("Concat {a},{b} {name}"), vec![int("axis", 1)]);
                channels + others
            }
            8 => {
                builder.node(&format!("MaxPool {a} {name}"), window());
                channels
            }
            9 => {
                builder.node(&format!("AveragePool {a} {name}"), window());
                channels
            }
            10 => {
                // A squeeze: each channel put in relation to a function of its mean.
                builder.node(&format!("GlobalAveragePool {a} {name}.mean"), vec![]);
                builder.node(&format!("Sigmoid {name}.mean {name}.gate"), vec![]);
                let operator = ["Mul", "Add", "Sub", "Div"][usize::from(number % 4)];
                let inputs = match number & 4 {
                    // Turned round, a division by what is mostly near 0 would hide differences in NaNs.
                    4 if operator != "Div" => format!("{name}.gate,{twin}"),
                    _ => format!("{twin},{name}.gate"),
                };
                builder.node(&format!("{operator} {inputs} {name}"), vec![]);
                channels
            }
            11 if channels > 1 => {
                builder.node(
                    &format!("Split {a} {name},{name}.rest"),
                    vec![int("axis", 1)],
                );
                builder.integers(&format!("{name}.sizes"), &[1, channels - 1]);
                let split = builder.graph.node.last_mut().unwrap();
                split.input.push(format!("{name}.sizes"));
                tensors.push((format!("{name}.rest"), channels - 1));
                1
            }
            _ => {
                // A batch norm as exporters leave it: a scale and a shift.
                builder.weights(&format!("{name}.scale"), &[1, channels, 1, 1]);
                builder.weights(&format!("{name}.shift"), &[1, channels, 1, 1]);
                let scale = ["Mul", "Div"][usize::from(number % 2)];
                let shift = ["Add", "Sub"][usize::from(number / 2 % 2)];
                builder.node(&format!("{scale} {a},{name}.scale {name}.scaled"), vec![]);
                builder.node(
                    &format!("{shift} {name}.scaled,{name}.shift {name}"),
                    vec![],
                );
                channels
            }
        };
        tensors.push((name, given));
    }
    let read: Vec<String> = builder
        .graph
        .node
        .iter()
        .flat_map(|node| node.input.clone())
        .collect();
    for (index, (name, _)) in tensors.iter().enumerate().skip(1) {
        if !read.contains(name) || index == usize::from(extra) % tensors.len() {
            builder.output(name);
        }
    }
    builder
}

/// Enough to have found each of the differences that `optimize.rs` tells of.
const CASES: u32 = 100;

/// Whatever `graph` makes of this.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(any::<Step>(), 1..10)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_of_any_graph_gives_the_same_bits(steps in steps(), extra in any::<u16>()) {
        let builder = graph(&steps, extra);
        let network = Network::from_onnx(&builder.bytes()).unwrap();

        let mut layer_of = HashMap::new();
        for layer in 1..=network.layer_count() {
            for operator in network.operators(layer) {
                layer_of.insert(operator.name.clone(), layer);
            }
        }
        // Nodes without a name have that of their output.
        for node in &builder.graph.node {
            let Some(layer) = layer_of.get(&node.output[0]) else { continue };
            for before in node.input.iter().filter_map(|input| layer_of.get(input)) {
                prop_assert!(before <= layer, "{} feeds {}", before, layer);
            }
        }

        let inputs = run::inputs(network.inputs(), 1);
        let model = tract_onnx::onnx().model_for_proto_model(&builder.model()).unwrap();
        let answer = run::never_cut(model, network.inputs(), inputs.clone());
        let (chained, found) = run::chain(&network, inputs, Compared::AllUpTo(12), Optimiser::None);
        let all = Segment::whole(network.layer_count());
        prop_assert!(run::difference(all, &chained, &answer).is_none());
        prop_assert!(found.is_empty(), "{:?}", found);
    }

    #[test]
    fn any_cut_of_any_optimised_graph_gives_the_same_bits(steps in steps(), extra in any::<u16>()) {
        let network = Network::from_onnx(&graph(&steps, extra).bytes()).unwrap();
        let inputs = run::inputs(network.inputs(), 1);
        let (_, found) = run::chain(&network, inputs, Compared::AllUpTo(12), Optimiser::Layerlab);
        prop_assert!(found.is_empty(), "{:?}", found);
    }
}

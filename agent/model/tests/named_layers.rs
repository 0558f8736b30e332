//! Layers that a model's file names itself: they travel with the file, and cut at them the answers are those of the whole.

use crate::common;

use std::collections::BTreeMap;

use common::run::{self, Compared, Optimiser};
use layerlab_model::{NamedLayer, Network};
use layerlab_profiles::Segment;

fn bert() -> Network {
    Network::open(&common::models().join("bert.onnx"), &BTreeMap::new()).unwrap()
}

/// The attention of each block and what follows it as two layers; what else there is goes by the rule.
fn blocks(network: &Network) -> Vec<NamedLayer> {
    let operators = (1..=network.layer_count()).flat_map(|layer| network.operators(layer));
    let nodes: Vec<&str> = operators.map(|operator| operator.name.as_str()).collect();
    let layer = |name: String, parts: &[String]| NamedLayer {
        nodes: nodes
            .iter()
            .filter(|node| parts.iter().any(|part| node.starts_with(part)))
            .map(|node| (*node).to_owned())
            .collect(),
        name,
    };
    let block = |number: usize| {
        let of_block = |part: &str| format!("/encoder/layer.{number}/{part}/");
        [
            layer(format!("attention {number}"), &[of_block("attention")]),
            layer(
                format!("mlp {number}"),
                &[of_block("intermediate"), of_block("output")],
            ),
        ]
    };
    (0..12).flat_map(block).collect()
}

#[test]
fn a_transformer_is_as_many_layers_as_its_blocks_have_parts() {
    let network = bert();
    assert_eq!(network.layer_count(), 98);
    let grouped = network.with_named_layers(blocks(&network)).unwrap();
    let names: Vec<&str> = grouped.layers().iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names.len(), 26);
    assert_eq!(
        names[..3],
        ["attention 0", "mlp 0", "attention 1"],
        "embeddings join the first layer"
    );
    assert_eq!(names[24..], ["/pooler/dense/Gemm", "/classifier/Gemm"]);
    // Between them passes one tensor: 16 words of 16 values.
    for cut in 1..24 {
        let shapes: Vec<&[u64]> = grouped.frontier(cut).iter().map(|t| &t.shape[..]).collect();
        assert_eq!(shapes, [[1, 16, 16]], "cut {cut}");
    }
    let sum = |network: &Network| -> (u64, u64) {
        let layers = network.layers().iter();
        layers.fold((0, 0), |sum, layer| {
            (sum.0 + layer.additions, sum.1 + layer.multiplications)
        })
    };
    assert_eq!(sum(&grouped), sum(&network));
}

#[test]
fn named_layers_travel_with_the_file() {
    let network = bert();
    let layers = blocks(&network);
    let grouped = network.with_named_layers(layers.clone()).unwrap();
    let arrived = Network::from_onnx(&grouped.to_onnx()).unwrap();
    assert_eq!(arrived.layers(), grouped.layers());
    assert_eq!(arrived.to_onnx(), grouped.to_onnx());
    // The user's own file with the entry behind all else.
    let file = std::fs::read(common::models().join("bert.onnx")).unwrap();
    let named = Network::from_onnx(&NamedLayer::name_in(&layers, file.clone())).unwrap();
    assert_eq!(named.layers(), grouped.layers());
    assert_eq!(named.named_layers(), layers);
    // Twice is once too often.
    let twice = NamedLayer::name_in(&layers, NamedLayer::name_in(&layers, file));
    assert_eq!(
        Network::from_onnx(&twice).unwrap_err().to_string(),
        "the model's metadata entry `layerlab.layers` cannot be used (there are two such entries): make the file again \
         with `layerlab model group`"
    );
    // A segment is no model of named layers.
    let segment = grouped.segment(Segment::whole(2)).unwrap();
    assert!(segment.model.metadata_props.is_empty());
}

#[test]
fn cut_at_named_layers_the_answers_are_those_of_the_whole() {
    let network = bert();
    let grouped = network.with_named_layers(blocks(&network)).unwrap();
    let inputs = run::inputs(grouped.inputs(), 1);
    let (chained, found) = run::chain(
        &grouped,
        inputs.clone(),
        Compared::AllUpTo(4),
        Optimiser::None,
    );
    assert!(found.is_empty(), "{found:?}");
    let (by_rule, _) = run::chain(&network, inputs, Compared::EachThird, Optimiser::None);
    let all = Segment::whole(grouped.layer_count());
    assert!(run::difference(all, &chained, &by_rule).is_none());
}

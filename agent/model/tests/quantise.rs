//! int8 networks: made here from the committed models, and by others; cut anywhere they give the bits of the whole.

use crate::common;

use std::collections::BTreeMap;

use common::build::{Builder, int};
use common::run::{self, Compared, Optimiser};
use layerlab_model::{
    Network, QuantiseError, QuantiseOptions, Quantised, RangeMethod, WeightScales, quantise,
    twin_of,
};
use layerlab_profiles::Segment;
use tract_onnx::prelude::{TVec, Tensor};

const PER_CHANNEL: QuantiseOptions = QuantiseOptions {
    weights: WeightScales::PerChannel,
    ranges: RangeMethod::MinMax,
};
const PER_TENSOR: QuantiseOptions = QuantiseOptions {
    weights: WeightScales::PerTensor,
    ranges: RangeMethod::Percentile,
};

fn images(network: &Network, count: u64) -> Vec<Vec<f32>> {
    let one = |seed| {
        let inputs = run::inputs(network.inputs(), seed);
        let values = inputs[0].to_plain_array_view::<f32>().unwrap();
        values.iter().map(|value| value.abs() * 255.0).collect()
    };
    (1..=count).map(one).collect()
}

fn quantised(network: &Network, options: QuantiseOptions) -> Result<Quantised, QuantiseError> {
    quantise(network, &images(network, 3).into_iter(), options)
}

fn open(name: &str) -> Network {
    Network::open(&common::models().join(name), &BTreeMap::new()).unwrap()
}

/// How far the answers of `quantised` to an image are from the float network's, as a part of the latter, by norms.
fn loss(network: &Network, quantised: &Network) -> f32 {
    let whole = Segment::whole(network.layer_count());
    let image = images(network, 1).remove(0);
    let shape: Vec<usize> = network.inputs()[0]
        .shape
        .iter()
        .map(|&l| l as usize)
        .collect();
    let input = Tensor::from_shape(&shape, &image).unwrap();
    let answer = |network: &Network| {
        let inputs = TVec::from_elem(input.clone().into(), 1);
        let outputs = run::segment(&network.segment(whole).unwrap(), inputs, Optimiser::None);
        let view = outputs[0].to_plain_array_view::<f32>().unwrap();
        view.iter().copied().collect::<Vec<f32>>()
    };
    let (float, integers) = (answer(network), answer(quantised));
    let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>().sqrt();
    let apart = norm(&mut float.iter().zip(&integers).map(|(a, b)| a - b));
    apart / norm(&mut float.iter().copied())
}

#[test]
fn the_committed_models_have_the_same_layers_in_8_bits_and_the_same_frontiers() {
    for name in ["alexnet", "vgg16", "inception", "resnet50"] {
        let network = open(&format!("{name}.onnx"));
        for options in [PER_CHANNEL, PER_TENSOR] {
            let made = quantised(&network, options).unwrap();
            let twin = &made.network;
            assert!(made.activations > 0 && made.weights > 0);
            for cut in 1..=network.layer_count() {
                assert_eq!(network.frontier(cut), twin.frontier(cut), "{name}");
            }
            let names = |network: &Network| -> Vec<String> {
                network.layers().iter().map(|l| l.name.clone()).collect()
            };
            assert_eq!(names(&network), names(twin));
            let convolutions = |network: &Network| {
                let operators = network.layers().iter().flat_map(|l| &l.operators);
                operators
                    .filter(|op| *op == "Conv" || *op == "Gemm")
                    .count()
            };
            assert_eq!(made.weights, convolutions(&network), "{name}");
            let loss = loss(&network, twin);
            assert!(loss > 0.0 && loss < 0.1, "{name} {options:?}: {loss}");
        }
    }
}

#[test]
fn the_same_images_give_the_same_bytes() {
    let network = open("alexnet.onnx");
    let first = quantised(&network, PER_TENSOR).unwrap().network;
    let again = quantised(&network, PER_TENSOR).unwrap().network;
    assert_eq!(first.to_onnx(), again.to_onnx());
    let read = Network::from_onnx(&first.to_onnx()).unwrap();
    assert_eq!(read.layers(), first.layers());
}

#[test]
fn quantised_segments_chain_to_the_bits_of_the_whole() {
    for name in ["alexnet", "inception"] {
        let network = open(&format!("{name}.onnx"));
        let twin = quantised(&network, PER_CHANNEL).unwrap().network;
        for optimiser in [Optimiser::None, Optimiser::Layerlab] {
            let inputs = run::inputs(network.inputs(), 1);
            let (_, found) = run::chain(&twin, inputs, Compared::AllUpTo(1), optimiser);
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}

#[test]
fn a_quantised_segment_begins_and_ends_with_a_pair() {
    let network = open("alexnet.onnx");
    let twin = quantised(&network, PER_CHANNEL).unwrap().network;
    let graph = twin
        .segment(Segment::single(3))
        .unwrap()
        .model
        .graph
        .unwrap();
    let types: Vec<&str> = graph
        .node
        .iter()
        .map(|node| node.op_type.as_str())
        .collect();
    assert_eq!(
        types,
        [
            // Weights and bias.
            "DequantizeLinear",
            "DequantizeLinear",
            // What enters.
            "QuantizeLinear",
            "DequantizeLinear",
            "Conv",
            "QuantizeLinear",
            "DequantizeLinear",
            "LRN",
            "QuantizeLinear",
            "DequantizeLinear",
        ]
    );
    let convolution = &graph.node[4];
    assert_eq!(convolution.input[0], graph.node[3].output[0]);
    assert_eq!(graph.node[2].input[0], twin.frontier(2)[0].name);
}

#[test]
fn a_network_quantised_by_others_gets_the_float_networks_layers() {
    // Made by onnxruntime.quantization, which sorts nodes in its own way and drops what a pair cuts off.
    let float = open("inception.onnx");
    let theirs = open("quantised/inception.onnx");
    let order = |network: &Network| -> Vec<String> {
        network.layers().iter().map(|l| l.name.clone()).collect()
    };
    assert_ne!(order(&float), order(&theirs));
    let twin = twin_of(&float, &theirs).unwrap();
    assert_eq!(order(&float), order(&twin));
    for cut in 0..=float.layer_count() {
        let shapes = |network: &Network| -> Vec<Vec<u64>> {
            network
                .frontier(cut)
                .iter()
                .map(|spec| spec.shape.clone())
                .collect()
        };
        assert_eq!(shapes(&float), shapes(&twin), "cut {cut}");
    }
    // The order survives the way to a device.
    let sent = Network::from_onnx(&twin.to_onnx()).unwrap();
    assert_eq!(sent.layers(), twin.layers());
    let inputs = run::inputs(float.inputs(), 1);
    let (_, found) = run::chain(&sent, inputs, Compared::AllUpTo(1), Optimiser::None);
    assert!(found.is_empty(), "{found:?}");
    let loss = loss(&float, &sent);
    assert!(loss > 0.0 && loss < 0.1, "{loss}");
}

#[test]
fn what_is_no_twin_is_refused_with_the_first_difference() {
    let said = |float: &Network, other: &Network| twin_of(float, other).unwrap_err().to_string();
    let (alexnet, inception) = (open("alexnet.onnx"), open("inception.onnx"));
    let theirs = open("quantised/inception.onnx");
    let sentence = said(&alexnet, &theirs);
    assert!(
        sentence.contains("30 layers and the model 11"),
        "{sentence}"
    );
    let sentence = said(&inception, &inception);
    assert!(sentence.contains("no pair of QuantizeLinear"), "{sentence}");

    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 5, 5]);
    builder.conv("a", "image", 3, 4, 3);
    builder.conv("b", "a", 4, 4, 3);
    builder.output("b");
    let network = |builder: &Builder| Network::from_onnx(&builder.bytes()).unwrap();
    let twin = quantised(&network(&builder), PER_CHANNEL).unwrap().network;
    assert!(twin_of(&network(&builder), &twin).is_ok());
    let mut renamed = builder.clone();
    renamed.graph.node[1].name = "other".into();
    let sentence = said(&network(&renamed), &twin);
    assert!(
        sentence.starts_with("layer 2 is `b` in the quantised model and `other`"),
        "{sentence}"
    );
    let mut wider = Builder::default();
    wider.input("image", &[1, 3, 7, 7]);
    wider.conv("a", "image", 3, 4, 3);
    wider.conv("b", "a", 4, 4, 3);
    wider.output("b");
    let sentence = said(&network(&wider), &twin);
    assert!(
        sentence.contains("after layer 0") && sentence.contains("f32 1x3x7x7"),
        "{sentence}"
    );
}

#[test]
fn integer_operators_without_pairs_are_no_twin() {
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 5, 5]);
    builder.conv("a", "image", 3, 4, 3);
    builder.output("a");
    let float = Network::from_onnx(&builder.bytes()).unwrap();
    let mut integers = Builder::default();
    integers.input("image", &[1, 3, 5, 5]);
    integers.node("DynamicQuantizeLinear image q,s,z", vec![]);
    integers
        .graph
        .initializer
        .push(tract_onnx::pb::TensorProto {
            name: "w".into(),
            dims: vec![4, 3, 3, 3],
            data_type: tract_onnx::pb::tensor_proto::DataType::Int8 as i32,
            int32_data: vec![1; 108],
            ..Default::default()
        });
    integers.node("ConvInteger q,w,z a", vec![]);
    integers.node("Cast a b", vec![int("to", 1)]);
    integers.output("b");
    let integers = Network::from_onnx(&integers.bytes()).unwrap();
    let sentence = twin_of(&float, &integers).unwrap_err().to_string();
    assert!(
        sentence.contains("`ConvInteger`") && sentence.contains("QDQ"),
        "{sentence}"
    );
    let sentence = quantised(&integers, PER_CHANNEL).unwrap_err().to_string();
    assert!(sentence.contains("quantised already"), "{sentence}");
}

#[test]
fn what_cannot_be_quantised_is_refused_with_a_remedy() {
    let said = |name: &str, options| {
        let network = open(name);
        quantised(&network, options).unwrap_err().to_string()
    };
    let sentence = said("quantised/inception.onnx", PER_CHANNEL);
    assert!(sentence.contains("quantised already"), "{sentence}");
    let sentence = said("variants/two-inputs.onnx", PER_CHANNEL);
    assert!(sentence.contains("2 inputs"), "{sentence}");
    let sentence = said("variants/opset7.onnx", PER_TENSOR);
    assert!(sentence.contains("operator set 7"), "{sentence}");

    let network = open("variants/residual.onnx");
    let none = quantise(&network, &std::iter::empty(), PER_CHANNEL).unwrap_err();
    assert!(matches!(none, QuantiseError::NoImages), "{none}");
    let mut image = images(&network, 1);
    image[0][0] = f32::INFINITY;
    let sentence = quantise(&network, &image.into_iter(), PER_CHANNEL)
        .unwrap_err()
        .to_string();
    assert!(
        sentence.contains("`image` is not finite for image 1"),
        "{sentence}"
    );
    let short = quantise(&network, &std::iter::once(vec![1.0]), PER_CHANNEL).unwrap_err();
    assert!(
        matches!(short, QuantiseError::Run { image: 1, .. }),
        "{short}"
    );

    let mut half = Builder::default();
    half.input("image", &[1, 3, 5, 5]);
    half.conv("a", "image", 3, 4, 3);
    half.node("Cast a h", vec![int("to", 10)]);
    half.node("Cast h y", vec![int("to", 1)]);
    half.output("y");
    let half = Network::from_onnx(&half.bytes()).unwrap();
    let sentence = quantised(&half, PER_CHANNEL).unwrap_err().to_string();
    assert!(
        sentence.contains("`h` has elements of type f16"),
        "{sentence}"
    );
}

#[test]
fn batch_normalisation_and_factors_are_folded_into_weights() {
    let network = open("resnet50.onnx");
    let twin = quantised(&network, PER_CHANNEL).unwrap().network;
    let operators = twin.layers().iter().flat_map(|layer| &layer.operators);
    assert!(
        operators
            .clone()
            .all(|operator| operator != "BatchNormalization")
    );
    assert!(operators.clone().all(|operator| operator != "Relu"));

    let network = open("variants/gemm-matmul.onnx");
    let twin = quantised(&network, PER_CHANNEL).unwrap().network;
    let whole = twin.segment(Segment::whole(twin.layer_count())).unwrap();
    let factors = whole
        .model
        .graph
        .unwrap()
        .node
        .into_iter()
        .flat_map(|node| node.attribute);
    assert!(
        factors
            .into_iter()
            .all(|attribute| attribute.name != "alpha" && attribute.name != "beta")
    );
    assert!(loss(&network, &twin) < 0.1);
}

#[test]
fn an_activation_that_others_read_too_stays() {
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 5, 5]);
    builder.conv("a", "image", 3, 4, 3);
    builder.node("Relu a b", vec![]);
    builder.node("Add a,b sum", vec![]);
    builder.conv("c", "sum", 4, 4, 3);
    builder.node("Relu c d", vec![]);
    builder.node(
        "MaxPool d e",
        vec![common::build::ints("kernel_shape", &[2, 2])],
    );
    builder.node("Relu e f", vec![]);
    builder.output("f");
    let network = Network::from_onnx(&builder.bytes()).unwrap();
    let twin = quantised(&network, PER_CHANNEL).unwrap().network;
    let relus = |network: &Network, layer: u32| {
        let operators = &network.layers()[layer as usize - 1].operators;
        operators
            .iter()
            .filter(|operator| *operator == "Relu")
            .count()
    };
    // `a` is read twice; `e` has the scale of `d`, which cuts nothing off.
    assert_eq!([1, 2, 3].map(|layer| relus(&network, layer)), [1, 1, 1]);
    assert_eq!([1, 2, 3].map(|layer| relus(&twin, layer)), [1, 0, 1]);
    assert!(loss(&network, &twin) < 0.05);
}

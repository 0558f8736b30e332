//! Where layers begin and what crosses their cuts, on small graphs worked out by hand.

use crate::common;

use std::collections::BTreeMap;

use common::build::{Builder, int, ints, text};
use common::run::{self, Compared, Optimiser};
use layerlab_model::{ModelError, Network, OperatorClass, TensorSpec};
use layerlab_profiles::{Bytes, Segment};
use tract_onnx::pb::NodeProto;

fn network(builder: &Builder) -> Network {
    Network::from_onnx(&builder.bytes()).unwrap()
}

fn frontier(network: &Network, cut: u32) -> Vec<&str> {
    network
        .frontier(cut)
        .iter()
        .map(|spec| spec.name.as_str())
        .collect()
}

/// What a segment takes and gives, in words.
fn ends(network: &Network, first: u32, last: u32) -> String {
    let segment = Segment::new(first, last).unwrap();
    let names = |specs: Vec<TensorSpec>| -> Vec<String> {
        specs.into_iter().map(|spec| spec.name).collect()
    };
    let (takes, gives) = (network.takes(segment), network.gives(segment));
    format!("{} -> {}", names(takes).join(" "), names(gives).join(" "))
}

fn operators(network: &Network) -> Vec<Vec<&str>> {
    network
        .layers()
        .iter()
        .map(|layer| layer.operators.iter().map(String::as_str).collect())
        .collect()
}

/// Cut anywhere, the network gives the same bits.
fn assert_chains(network: &Network) {
    for optimiser in [Optimiser::None, Optimiser::Layerlab] {
        let inputs = run::inputs(network.inputs(), 1);
        let (_, found) = run::chain(network, inputs, Compared::AllUpTo(12), optimiser);
        assert!(found.is_empty(), "{found:?}");
    }
}

/// A convolution, a second one that a shortcut passes by, and a sum of both.
fn shortcut() -> Builder {
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 5, 5]);
    builder.conv("a", "image", 3, 4, 3);
    builder.conv("b", "a", 4, 4, 3);
    builder.node("Add b,a sum", vec![]);
    builder.node("GlobalAveragePool sum mean", vec![]);
    builder.output("mean");
    builder
}

#[test]
fn the_layer_table_of_a_shortcut() {
    let network = network(&shortcut());
    assert_eq!(
        operators(&network),
        [vec!["Conv"], vec!["Conv", "Add"], vec!["GlobalAveragePool"]]
    );
    let second = &network.layers()[1];
    assert_eq!((second.number, second.name.as_str()), (2, "b"));
    // 4 x 4 x 3 x 3 weights, 4 x 5 x 5 values, each of four bytes.
    assert_eq!(second.parameter_bytes, Bytes::from_bytes(576));
    assert_eq!(second.input_bytes, Bytes::from_bytes(400));
    assert_eq!(second.output_bytes, Bytes::from_bytes(400));
    // 100 sums of 36 products, and 100 sums of two.
    assert_eq!(
        (second.additions, second.multiplications),
        (100 * 35 + 100, 100 * 36)
    );

    let [convolution, sum] = network.operators(2) else {
        panic!("two operators")
    };
    assert_eq!(convolution.class, OperatorClass::Convolution);
    assert_eq!(sum.class, OperatorClass::Other);
    assert_eq!(sum.input_bytes, Bytes::from_bytes(800));
    assert_eq!(sum.output_bytes, Bytes::from_bytes(400));
    assert_eq!(sum.parameter_bytes, Bytes::ZERO);
}

#[test]
fn what_lies_in_main_memory_anyway_crosses_no_cut() {
    let mut builder = shortcut();
    builder.input("late", &[1, 4, 1, 1]);
    builder.node("Mul mean,late scaled", vec![]);
    builder.graph.output.clear();
    builder.output("scaled");
    builder.output("a");
    let network = network(&builder);
    assert_eq!(frontier(&network, 0), ["image"]);
    assert_eq!(frontier(&network, 1), ["a"]);
    assert_eq!(frontier(&network, 2), ["sum"]);
    assert_eq!(frontier(&network, 3), ["scaled"]);
    let alive = |cut| network.alive(cut).iter().map(|spec| spec.name.as_str());
    assert_eq!(alive(2).collect::<Vec<&str>>(), ["late", "a", "sum"]);
    // The input goes to the layer that reads it and the output comes from the layer that gives it, wherever a segment ends.
    assert_eq!(ends(&network, 1, 1), "image -> a");
    assert_eq!(ends(&network, 1, 2), "image -> sum a");
    assert_eq!(ends(&network, 2, 2), "a -> sum");
    assert_eq!(ends(&network, 2, 3), "late a -> scaled");
    assert_eq!(ends(&network, 1, 3), "image late -> scaled a");
    let beside = |layer: usize| {
        let layer = &network.layers()[layer - 1];
        [layer.model_input_bytes, layer.model_output_bytes].map(|bytes| bytes.as_bytes())
    };
    assert_eq!([1, 2, 3].map(beside), [[0, 400], [0, 0], [16, 0]]);
    assert_chains(&network);
}

/// A mask that several layers read, the image again at the end, and an output that a later layer reads as well.
#[test]
fn inputs_go_to_each_segment_that_reads_them_and_outputs_that_are_read_cross_too() {
    let mut builder = Builder::default();
    builder.input("image", &[1, 4, 5, 5]);
    builder.input("mask", &[1, 4, 1, 1]);
    builder.conv("a", "image", 4, 4, 3);
    builder.node("Mul a,mask b", vec![]);
    builder.conv("c", "b", 4, 4, 3);
    builder.conv("d", "c", 4, 4, 3);
    builder.node("Mul d,mask e", vec![]);
    builder.conv("f", "e", 4, 4, 3);
    builder.node("Add f,b g", vec![]);
    builder.node("Add g,image h", vec![]);
    builder.output("h");
    builder.output("b");
    let network = network(&builder);
    let crossing = [0, 1, 2, 3, 4].map(|cut| frontier(&network, cut));
    assert_eq!(
        crossing,
        [
            vec!["image", "mask"],
            vec!["b"],
            vec!["b", "c"],
            vec!["b", "e"],
            vec!["h"]
        ]
    );
    assert_eq!(ends(&network, 2, 2), "b -> b c");
    assert_eq!(ends(&network, 3, 3), "mask b c -> b e");
    assert_eq!(ends(&network, 4, 4), "image b e -> h");
    assert_eq!(ends(&network, 1, 4), "image mask -> h b");
    assert_chains(&network);
}

/// An input that nothing reads and one that is an output, too, still belong to the network.
#[test]
fn inputs_without_a_reader_are_taken_at_the_ends() {
    let mut builder = shortcut();
    builder.input("unread", &[1, 2]);
    builder.input("through", &[1, 3]);
    builder.output("through");
    let network = network(&builder);
    assert_eq!(ends(&network, 1, 1), "image unread -> a");
    assert_eq!(ends(&network, 3, 3), "through sum -> mean through");
    assert_eq!(ends(&network, 1, 3), "image unread through -> mean through");
    assert_chains(&network);
}

#[test]
fn what_passes_through_a_segment_gets_another_name() {
    let mut builder = shortcut();
    builder.conv("c", "mean", 4, 4, 1);
    builder.node("Mul a,c scaled", vec![]);
    builder.graph.output.clear();
    builder.output("scaled");
    let network = network(&builder);
    let sub_model = network.segment(Segment::single(3)).unwrap();
    let names = |specs: &[TensorSpec]| -> Vec<String> {
        specs.iter().map(|spec| spec.name.clone()).collect()
    };
    assert_eq!(names(&sub_model.inputs), ["a", "sum"]);
    assert_eq!(names(&sub_model.outputs), ["a.passed", "mean"]);
    let graph = sub_model.model.graph.unwrap();
    let identity = graph
        .node
        .iter()
        .find(|node| node.op_type == "Identity")
        .unwrap();
    assert_eq!(
        (&identity.input[..], &identity.output[..]),
        (&["a".into()][..], &["a.passed".into()][..])
    );
    // The pooling needs no weights.
    assert!(graph.initializer.is_empty());
}

#[test]
fn nodes_that_do_nothing_leave_a_segment_and_its_tensors_keep_their_names() {
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 5, 5]);
    builder.node("Identity image same", vec![]);
    builder.conv("a", "same", 3, 4, 3);
    builder.node("Dropout a dropped", vec![]);
    builder.node("Identity dropped end", vec![]);
    builder.conv("b", "end", 4, 4, 3);
    builder.node("Relu b c", vec![]);
    builder.node("Dropout c d", vec![]);
    builder.output("d");
    let network = network(&builder);
    assert_chains(&network);
    let types = |segment: Segment| -> Vec<String> {
        let sub_model = network.segment(segment).unwrap();
        let graph = sub_model.model.graph.unwrap();
        graph.node.into_iter().map(|node| node.op_type).collect()
    };
    assert_eq!(types(Segment::single(1)), ["Conv"]);
    assert_eq!(types(Segment::single(2)), ["Conv", "Relu"]);
    assert_eq!(types(Segment::whole(2)), ["Conv", "Conv", "Relu"]);
    let first = network.segment(Segment::single(1)).unwrap();
    assert_eq!(first.outputs[0].name, "end");
    assert_eq!(frontier(&network, 1), ["end"]);
    // The layer table still says what the file has.
    assert_eq!(
        network.layers()[0].operators,
        ["Identity", "Conv", "Dropout", "Identity"]
    );
}

#[test]
fn an_output_that_two_names_stand_for_keeps_one_node_that_does_nothing() {
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 5, 5]);
    builder.conv("a", "image", 3, 4, 3);
    builder.node("Dropout a dropped", vec![]);
    builder.node("Dropout a again", vec![]);
    builder.conv("b", "dropped", 4, 4, 3);
    for output in ["a", "b", "again", "dropped"] {
        builder.output(output);
    }
    let network = network(&builder);
    assert_chains(&network);
    let first = network.segment(Segment::single(1)).unwrap();
    let graph = first.model.graph.unwrap();
    let types: Vec<&str> = graph.node.iter().map(|n| n.op_type.as_str()).collect();
    assert_eq!(types, ["Conv", "Identity", "Identity"]);
}

#[test]
fn a_dropout_that_trains_stays() {
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 5, 5]);
    builder.conv("a", "image", 3, 4, 3);
    builder.weights("ratio", &[]);
    builder.graph.initializer.push(tract_onnx::pb::TensorProto {
        name: "training".into(),
        data_type: tract_onnx::pb::tensor_proto::DataType::Bool as i32,
        int32_data: vec![0],
        ..Default::default()
    });
    builder.node("Dropout a,ratio,training y", vec![]);
    builder.output("y");
    let types = |builder: &Builder| -> Vec<String> {
        let whole = network(builder).segment(Segment::whole(1)).unwrap();
        let graph = whole.model.graph.unwrap();
        let types: Vec<_> = graph.node.into_iter().map(|n| n.op_type).collect();
        let constants = graph.initializer.len();
        assert_eq!(constants, if types.len() == 1 { 1 } else { 3 });
        types
    };
    assert_eq!(types(&builder), ["Conv"]);
    for tensor in &mut builder.graph.initializer {
        if tensor.name == "training" {
            tensor.int32_data = vec![1];
        }
    }
    assert_eq!(types(&builder), ["Conv", "Dropout"]);
}

#[test]
fn a_segment_beyond_the_model_is_an_error() {
    let error = network(&shortcut()).segment(Segment::whole(4)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "layers 1..=4 were asked for and the model has 3"
    );
}

#[test]
fn shapes_worked_out_in_the_graph_cross_no_cut() {
    // What PyTorch exports for `x.view(x.size(0), -1)`, here with a layer in between.
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 5, 5]);
    builder.conv("a", "image", 3, 4, 3);
    builder.integers("zero", &[0]);
    builder.integers("rest", &[-1]);
    builder.node("Shape a shape", vec![]);
    builder.node("Gather shape,zero batch", vec![int("axis", 0)]);
    builder.node("Concat batch,rest sizes", vec![int("axis", 0)]);
    builder.node("MaxPool a b", vec![ints("kernel_shape", &[2, 2])]);
    builder.node("Reshape b,sizes flat", vec![]);
    builder.weights("w", &[64, 2]);
    builder.node("MatMul flat,w y", vec![]);
    builder.output("y");
    let network = network(&builder);
    assert_eq!(
        operators(&network),
        [vec!["Conv"], vec!["MaxPool", "Reshape"], vec!["MatMul"]]
    );
    assert_eq!(frontier(&network, 1), ["a"]);
    assert_eq!(frontier(&network, 2), ["flat"]);
    assert_chains(&network);
}

#[test]
fn what_follows_from_constants_goes_along_with_each_segment() {
    let mut builder = Builder::default();
    builder.input("image", &[1, 4, 5, 5]);
    builder.weights("stored", &[4, 4]);
    builder.integers("kernel", &[4, 4, 1, 1]);
    builder.node("Reshape stored,kernel w", vec![]);
    builder.node("Conv image,w a", vec![]);
    builder.node("Conv a,w b", vec![]);
    builder.output("b");
    let network = network(&builder);
    assert_eq!(operators(&network), [["Conv"], ["Conv"]]);
    assert_eq!(network.layers()[1].parameter_bytes, Bytes::from_bytes(64));
    for layer in 1..=2 {
        let graph = network
            .segment(Segment::single(layer))
            .unwrap()
            .model
            .graph
            .unwrap();
        let types: Vec<&str> = graph
            .node
            .iter()
            .map(|node| node.op_type.as_str())
            .collect();
        assert_eq!(types, ["Reshape", "Conv"]);
        assert_eq!(graph.initializer.len(), 2);
    }
    assert_chains(&network);
}

#[test]
fn a_constant_can_be_an_output() {
    let mut builder = shortcut();
    builder.weights("anchors", &[3]);
    builder.output("anchors");
    let network = network(&builder);
    assert_eq!(frontier(&network, 2), ["sum"]);
    assert_eq!(frontier(&network, 3), ["mean", "anchors"]);
    assert_chains(&network);
}

#[test]
fn twins_that_are_needed_later_survive_every_cut() {
    // tract's own optimiser loses `b` in the first layer, since both its twins are outputs of that.
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 5, 5]);
    builder.conv("a", "image", 3, 4, 3);
    for twin in ["b", "c"] {
        builder.node(&format!("Relu a {twin}"), vec![]);
    }
    builder.conv("late", "c", 4, 4, 3);
    builder.node("Concat a,b both", vec![int("axis", 1)]);
    builder.node("Relu a d", vec![]);
    for output in ["late", "both", "d"] {
        builder.output(output);
    }
    assert_chains(&network(&builder));
}

#[test]
fn a_scale_by_channel_rounds_alike_wherever_the_model_is_cut() {
    for operator in ["Mul", "Add", "Sub", "Div"] {
        // The convolution is read by its scale and by a later layer; tract's own optimiser folds the scale
        // into its weights where it does not see that layer.
        let mut builder = Builder::default();
        builder.input("image", &[1, 3, 5, 5]);
        builder.weights("a.w", &[4, 3, 3, 3]);
        builder.weights("a.bias", &[4]);
        builder.node("Conv image,a.w,a.bias a", vec![]);
        builder.weights("scale", &[1, 4, 1, 1]);
        builder.node(&format!("{operator} a,scale scaled"), vec![]);
        builder.conv("b", "a", 4, 4, 3);
        builder.output("scaled");
        builder.output("b");
        assert_chains(&network(&builder));
    }
}

#[test]
fn a_product_of_a_concatenation_rounds_alike_wherever_the_model_is_cut() {
    // tract's own optimiser makes two products of one where it sees the concatenation.
    let mut builder = Builder::default();
    builder.input("left", &[1, 40]);
    builder.input("right", &[1, 30]);
    builder.weights("w", &[40, 40]);
    builder.weights("v", &[70, 20]);
    builder.node("MatMul left,w a", vec![]);
    builder.node("Concat a,right both", vec![int("axis", 1)]);
    builder.node("MatMul both,v y", vec![]);
    builder.output("y");
    assert_chains(&network(&builder));
}

#[test]
fn a_convolution_that_is_subtracted_or_divided_by_is_right() {
    // tract's own optimiser folds these as if they commuted.
    for operator in ["Sub", "Div"] {
        let mut builder = Builder::default();
        builder.input("image", &[1, 3, 5, 5]);
        builder.conv("a", "image", 3, 4, 3);
        builder.weights("from", &[1, 4, 1, 1]);
        builder.node(&format!("{operator} from,a y"), vec![]);
        builder.output("y");
        let network = network(&builder);
        let whole = network.segment(Segment::whole(1)).unwrap();
        let inputs = run::inputs(network.inputs(), 1);
        let plain = run::segment(&whole, inputs.clone(), Optimiser::None);
        let optimised = run::segment(&whole, inputs, Optimiser::Layerlab);
        // Where the result is right, it is still rounded otherwise.
        let apart = run::difference(Segment::whole(1), &optimised, &plain);
        assert!(
            apart.is_none_or(|apart| apart.relative < 1e-6),
            "{operator}"
        );
    }
}

#[test]
fn nodes_in_any_order_give_the_same_layers() {
    let mut builder = shortcut();
    let sorted = network(&builder);
    builder.graph.node.reverse();
    assert_eq!(network(&builder).layers(), sorted.layers());
}

#[test]
fn what_no_output_needs_is_no_layer() {
    let mut builder = shortcut();
    builder.conv("unread", "a", 4, 4, 3);
    assert_eq!(network(&builder).layers(), network(&shortcut()).layers());
}

#[test]
fn damaged_graphs_are_refused_with_a_reason() {
    let refused = |builder: &Builder| Network::from_onnx(&builder.bytes()).unwrap_err();

    let mut builder = shortcut();
    builder.graph.node[1].input[0] = "nowhere".into();
    let error = refused(&builder);
    assert!(
        matches!(&error, ModelError::MissingTensor { tensor, .. } if tensor == "nowhere"),
        "{error}"
    );

    let mut builder = shortcut();
    builder.output("nothing");
    assert!(matches!(
        refused(&builder),
        ModelError::MissingTensor { .. }
    ));

    let mut builder = shortcut();
    builder.graph.node[0].input[0] = "sum".into();
    assert!(matches!(refused(&builder), ModelError::Cycle { .. }));

    let mut builder = shortcut();
    builder.node("Relu a b", vec![]);
    let error = refused(&builder);
    assert!(
        matches!(&error, ModelError::DuplicateTensor { tensor } if tensor == "b"),
        "{error}"
    );

    let mut builder = shortcut();
    builder.graph.node.push(NodeProto {
        name: "choose".into(),
        op_type: "If".into(),
        ..NodeProto::default()
    });
    let error = refused(&builder);
    assert!(
        error.to_string().starts_with("node `choose` is a `If`"),
        "{error}"
    );

    let mut builder = shortcut();
    builder.weights("b.w", &[4, 5, 3, 3]);
    builder
        .graph
        .initializer
        .retain(|tensor| tensor.name != "b.w" || tensor.dims[1] == 5);
    assert!(matches!(refused(&builder), ModelError::Shapes { .. }));
}

/// The generator's recogniser of speech: its LSTM is a layer, with what only turns its input and its output around.
#[test]
fn an_lstm_is_a_layer_between_fully_connected_ones() {
    let path = common::models().join("deep-speech.onnx");
    let network = Network::open(&path, &BTreeMap::new()).unwrap();
    let names: Vec<&str> = network.layers().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["F1", "F2", "F3", "L1", "F4", "F5"]);
    assert_eq!(operators(&network)[3], ["LSTM", "Squeeze", "Transpose"]);
    let classes: Vec<OperatorClass> = network.operators(4).iter().map(|it| it.class).collect();
    assert_eq!(classes[0], OperatorClass::Recurrent);
}

/// In the middle of a U-Net of six levels five skips are alive beside what was just made.
#[test]
fn the_cuts_of_a_u_net_hold_its_skips() {
    let path = common::models().join("pix2pix.onnx");
    let network = Network::open(&path, &BTreeMap::new()).unwrap();
    let across: Vec<usize> = (0..=12).map(|cut| network.frontier(cut).len()).collect();
    assert_eq!(across, [1, 1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1, 1]);
    // What the second layer makes goes to the next one, and is part of what the last but one gives to the last.
    assert_eq!(frontier(&network, 3)[1], "C2_bn_relu");
    assert_eq!(network.readers("C2_bn_relu"), [3, 10]);
    assert_eq!(network.readers("image"), [1]);
    assert!(network.readers("U6_sigmoid").is_empty());
}

/// Attention whose two products are written as equations, with heads as an axis of their own.
#[test]
fn products_written_as_equations_are_layers() {
    let mut builder = Builder::default();
    builder.input("q", &[1, 4, 2, 8]);
    builder.input("k", &[1, 5, 2, 8]);
    builder.input("v", &[1, 5, 2, 8]);
    let equation = |written: &str| vec![text("equation", written)];
    builder.node("Einsum q,k s", equation("bqhd,bkhd->bhqk"));
    builder.node("Softmax s p", vec![int("axis", -1)]);
    builder.node("Einsum p,v a", equation("bhqk,bkhd->bqhd"));
    builder.weights("w", &[2, 8, 6]);
    builder.node("Einsum a,w e", equation("bqhd,hde->bqe"));
    // Of one input it is no product, and joins the layer before.
    builder.node("Einsum e y", equation("bqe->beq"));
    builder.output("y");
    let network = network(&builder);
    let expected: [&[&str]; 3] = [&["Einsum", "Softmax"], &["Einsum"], &["Einsum", "Einsum"]];
    assert_eq!(operators(&network), expected);
    let classes: Vec<OperatorClass> = network.operators(3).iter().map(|it| it.class).collect();
    assert_eq!(
        classes,
        [OperatorClass::FullyConnected, OperatorClass::Other]
    );
    // 40 scores of 8 products and their softmax, 64 values of 5 products, and 24 of 16.
    let multiplications = network.layers().iter().map(|it| it.multiplications);
    assert_eq!(
        multiplications.collect::<Vec<u64>>(),
        [40 * 8 + 80, 64 * 5, 24 * 16]
    );
    assert_chains(&network);
}

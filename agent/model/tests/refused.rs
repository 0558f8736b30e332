//! Models that lie, or that no device can run: each is refused in one sentence that names what is wrong and the remedy.
//! Beside them what looks alike and is read.

use crate::common;

use common::build::{Builder, int, ints};
use layerlab_model::{ElementType, ModelError, Network};
use layerlab_profiles::Segment;
use prost::Message;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{ModelProto, OperatorSetIdProto, TensorShapeProto, type_proto};

fn read(model: &ModelProto) -> Result<Network, ModelError> {
    Network::from_onnx(&model.encode_to_vec())
}

fn refusal(model: &ModelProto) -> String {
    let sentence = read(model).unwrap_err().to_string();
    assert!(!sentence.contains('\n'), "{sentence}");
    sentence
}

/// An image, a convolution `c` of it, and `Relu` as node `r`.
fn convolved(side: i64) -> Builder {
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, side, side]);
    builder.conv("c", "image", 3, 4, 3);
    builder.node("Relu c r", vec![]);
    builder.output("r");
    builder
}

/// Declares the only output as this.
fn declare(model: &mut ModelProto, element: DataType, shape: &[i64]) {
    let output = &mut model.graph.as_mut().unwrap().output[0];
    let dim = shape.iter().map(|&length| Dimension {
        value: Some(match length {
            0 => dimension::Value::DimParam("N".to_owned()),
            _ => dimension::Value::DimValue(length),
        }),
        ..Dimension::default()
    });
    let tensor = type_proto::Tensor {
        elem_type: element as i32,
        shape: Some(TensorShapeProto { dim: dim.collect() }),
    };
    output.r#type.as_mut().unwrap().value = Some(type_proto::Value::TensorType(tensor));
}

#[test]
fn dimensions_beyond_any_device() {
    let huge = 1 << 31;
    let sentence = refusal(&convolved(huge).model());
    assert_eq!(
        sentence,
        "the tensor `image` of shape [1, 3, 2147483648, 2147483648] takes more than 16 GiB, which no device holds: \
         export the model for smaller inputs"
    );
    // Each tensor can be held, the sums of products cannot be counted.
    let mut builder = Builder::default();
    builder.input("x", &[1, 1 << 30]);
    builder.input("y", &[1 << 30, 1]);
    builder.node("MatMul y,x z", vec![]);
    builder.output("z");
    assert!(matches!(
        read(&builder.model()).unwrap_err(),
        ModelError::HugeTensor { .. }
    ));
    let mut builder = Builder::default();
    builder.input("x", &[1 << 15, 1 << 16]);
    builder.node("Transpose x t", vec![ints("perm", &[1, 0])]);
    let mut last = "x".to_owned();
    for index in 0..4_000 {
        let (product, back) = (format!("p{index}"), format!("b{index}"));
        builder.node(&format!("MatMul {last},t {product}"), vec![]);
        builder.node(&format!("MatMul {product},x {back}"), vec![]);
        last = back;
    }
    builder.output(&last);
    assert!(matches!(
        read(&builder.model()).unwrap_err(),
        ModelError::TooManyOperations
    ));
}

#[test]
fn an_operator_of_a_domain_that_is_not_imported() {
    let mut model = convolved(8).model();
    model.graph.as_mut().unwrap().node[1].domain = "com.microsoft".to_owned();
    assert_eq!(
        refusal(&model),
        "node `r` is a `Relu` of the operator domain `com.microsoft`, which the model does not import: export the \
         model again"
    );
    // ONNX's own domain has two names.
    model.graph.as_mut().unwrap().node[1].domain = "ai.onnx".to_owned();
    assert!(read(&model).is_ok());
}

#[test]
fn an_operator_that_only_has_the_name_of_onnxs_own() {
    let mut model = convolved(8).model();
    model.graph.as_mut().unwrap().node[1].domain = "org.example".to_owned();
    model.opset_import.push(OperatorSetIdProto {
        domain: "org.example".to_owned(),
        version: 1,
    });
    assert_eq!(
        refusal(&model),
        "node `r` is a `org.example.Relu`, an operator that is not supported: export the model without it"
    );
}

#[test]
fn an_output_that_is_declared_as_another() {
    let mut model = convolved(8).model();
    for (element, shape, declared) in [
        (DataType::Float, &[1, 4, 8, 9][..], "f32 1x4x8x9"),
        (DataType::Float, &[1, 4, 8], "f32 1x4x8"),
        (DataType::Float, &[0, 5, 8, 8], "f32 ?x5x8x8"),
        (DataType::Float16, &[1, 4, 8, 8], "f16 1x4x8x8"),
    ] {
        declare(&mut model, element, shape);
        assert_eq!(
            refusal(&model),
            format!(
                "the model declares its output `r` as {declared}, and it computes f32 1x4x8x8: export the model again"
            )
        );
    }
    for shape in [&[1, 4, 8, 8], &[0, 4, 8, 8], &[0, 0, 0, -1]] {
        declare(&mut model, DataType::Float, shape);
        assert!(read(&model).is_ok(), "{shape:?}");
    }
}

#[test]
fn a_tensor_without_elements() {
    let mut builder = Builder::default();
    builder.input("image", &[1, 3, 8, 8]);
    builder.conv("c", "image", 3, 0, 3);
    builder.output("c");
    assert_eq!(
        refusal(&builder.model()),
        "node `c` gives the tensor `c` of shape [1, 0, 8, 8], which has no element: export the model with larger \
         inputs, or without that node"
    );
}

#[test]
fn two_nodes_of_one_name() {
    let mut model = convolved(8).model();
    for node in &mut model.graph.as_mut().unwrap().node {
        node.name = "twin".to_owned();
    }
    assert_eq!(
        refusal(&model),
        "two nodes are called `twin`: export the model with a name of its own for each node, or with none"
    );
}

#[test]
fn a_size_that_depends_on_values() {
    let mut boxes = Builder::default();
    boxes.input("boxes", &[1, 10, 4]);
    boxes.input("image", &[1, 3, 8, 8]);
    boxes.conv("scores", "image", 3, 1, 3);
    boxes.integers("shape", &[1, 1, 64]);
    boxes.node("Reshape scores,shape flat", vec![]);
    boxes.integers("most", &[5]);
    boxes.node("NonMaxSuppression boxes,flat,most best", vec![]);
    boxes.output("best");
    let mut nonzero = convolved(8);
    nonzero.node("NonZero r best", vec![]);
    nonzero.graph.output.clear();
    nonzero.output("best");
    for (model, operator) in [(boxes, "NonMaxSuppression"), (nonzero, "NonZero")] {
        assert_eq!(
            refusal(&model.model()),
            format!(
                "node `best` is a `{operator}`, the size of whose output depends on what the network computes: cut \
                 the model off before it, and do this step outside the network"
            )
        );
    }
}

#[test]
fn a_transpose_that_is_no_order_of_the_axes() {
    let transposed = |perm: &[i64]| {
        let mut builder = Builder::default();
        builder.input("x", &[1, 6, 4]);
        builder.node("Transpose x t", vec![ints("perm", perm)]);
        builder.node("MatMul x,t y", vec![]);
        // The shape of `y` is not in the file.
        builder.node("Transpose y z", vec![ints("perm", &[0, 2, 1])]);
        builder.output("z");
        builder.model()
    };
    for perm in [
        &[0, 2, 2][..],
        &[0, 2, 3],
        &[0, -1, 1],
        &[1, 0],
        &[],
        &[0, 1, 2, 3],
    ] {
        assert_eq!(
            refusal(&transposed(perm)),
            format!(
                "node `t` is a `Transpose` whose `perm` {perm:?} does not name each of 3 axes once: export the \
                 model again"
            )
        );
    }
    assert!(read(&transposed(&[0, 2, 1])).is_ok());
    let mut model = transposed(&[0, 2, 1]);
    model.graph.as_mut().unwrap().node[2].attribute[0].ints = vec![0, 2, 2];
    assert_eq!(
        refusal(&model),
        "node `z` is a `Transpose` whose `perm` [0, 2, 2] does not name each of 3 axes once: export the model again"
    );
}

/// A `BatchNormalization` of an input, whose four constants have these shapes.
fn normalised(input: &[i64], constants: [&[i64]; 4]) -> ModelProto {
    let mut builder = Builder::default();
    builder.input("x", input);
    for (name, shape) in ["scale", "shift", "mean", "variance"].iter().zip(constants) {
        builder.weights(name, shape);
    }
    builder.node("BatchNormalization x,scale,shift,mean,variance n", vec![]);
    builder.node("GlobalAveragePool n y", vec![]);
    builder.output("y");
    builder.model()
}

#[test]
fn channels_that_are_not_there() {
    let image = &[1, 4, 8, 8][..];
    for (input, constants, told) in [
        (
            &[4][..],
            [&[4][..]; 4],
            "`x` has the shape [4] in place of a batch and channels",
        ),
        (
            &[],
            [&[4]; 4],
            "`x` has the shape [] in place of a batch and channels",
        ),
        (
            image,
            [&[4], &[4], &[4, 1], &[4]],
            "`mean` has the shape [4, 1] in place of one number for each channel",
        ),
        (
            image,
            [&[], &[], &[], &[]],
            "`scale` has the shape [] in place of one number for each channel",
        ),
    ] {
        assert_eq!(
            refusal(&normalised(input, constants)),
            format!(
                "node `n` is a `BatchNormalization`, whose input {told}: export the model again"
            )
        );
    }
    assert!(read(&normalised(image, [&[4]; 4])).is_ok());
}

/// `model` with 16-bit floats in place of all 32-bit ones.
fn halved(mut model: ModelProto) -> ModelProto {
    let graph = model.graph.as_mut().unwrap();
    for tensor in &mut graph.initializer {
        tensor.data_type = DataType::Float16 as i32;
        let halves = tensor.float_data.drain(..).map(|value| {
            let half = tract_onnx::prelude::f16::from_f32(value);
            i32::from(half.to_bits())
        });
        tensor.int32_data = halves.collect();
    }
    for value in graph.input.iter_mut().chain(&mut graph.output) {
        let r#type = value.r#type.as_mut().unwrap();
        if let Some(type_proto::Value::TensorType(tensor)) = &mut r#type.value {
            tensor.elem_type = DataType::Float16 as i32;
        }
    }
    model
}

#[test]
fn a_fully_connected_layer_of_16_bit_floats_runs() {
    let mut builder = Builder::default();
    builder.input("x", &[1, 6]);
    builder.weights("w", &[5, 6]);
    builder.weights("b", &[5]);
    builder.weights("v", &[5, 4]);
    let mut scaled = int("transB", 1);
    scaled.name = "transB".to_owned();
    builder.node("Gemm x,w,b y", vec![scaled]);
    builder.node("Gemm y,v z", vec![]);
    builder.output("z");
    let (single, half) = (builder.model(), halved(builder.model()));
    let answer = |model: &ModelProto| {
        let network = read(model).unwrap();
        assert_eq!(network.layer_count(), 2);
        let inputs = common::run::inputs(network.inputs(), 1);
        let whole = network.segment(Segment::whole(2)).unwrap();
        let outputs = common::run::segment(&whole, inputs, common::run::Optimiser::Layerlab);
        let floats = outputs[0].cast_to::<f32>().unwrap();
        let floats = floats.to_plain_array_view::<f32>().unwrap();
        (network, floats.iter().copied().collect::<Vec<f32>>())
    };
    let ((_, expected), (network, found)) = (answer(&single), answer(&half));
    assert_eq!(network.frontier(1)[0].element, ElementType::F16);
    for (expected, found) in expected.iter().zip(&found) {
        assert!(
            (expected - found).abs() < 0.01,
            "{found} and not {expected}"
        );
    }
}

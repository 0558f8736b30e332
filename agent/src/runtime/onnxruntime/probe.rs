//! The models of one node with which a processor is probed before it is offered.

use layerlab_protocol::Numerics;
use prost::Message;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::type_proto::{Tensor, Value};
use tract_onnx::pb::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto,
    TypeProto, ValueInfoProto,
};

/// The shape of the probe's input and output.
const SHAPE: [i64; 4] = [1, 4, 8, 8];

/// A rectifier; where the processor computes in 8 bits, between quantised tensors.
pub(super) fn probe(numerics: Numerics) -> Vec<u8> {
    let (node, initializer) = match numerics {
        Numerics::F32 | Numerics::F16 => (vec![node("Relu", &["in"], "out")], Vec::new()),
        Numerics::I8 => (
            vec![
                node("QuantizeLinear", &["in", "scale", "zero"], "in.q"),
                node("DequantizeLinear", &["in.q", "scale", "zero"], "in.f"),
                node("Relu", &["in.f"], "relu"),
                node("QuantizeLinear", &["relu", "scale", "zero"], "relu.q"),
                node("DequantizeLinear", &["relu.q", "scale", "zero"], "out"),
            ],
            vec![
                constant("scale", DataType::Float, 0.05_f32.to_le_bytes().to_vec()),
                constant("zero", DataType::Uint8, vec![128]),
            ],
        ),
    };
    let model = ModelProto {
        ir_version: 8,
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: 13,
        }],
        graph: Some(GraphProto {
            name: "probe".to_owned(),
            node,
            initializer,
            input: vec![tensor("in")],
            output: vec![tensor("out")],
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    };
    model.encode_to_vec()
}

fn node(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        name: output.to_owned(),
        op_type: operator.to_owned(),
        input: inputs.iter().map(|&input| input.to_owned()).collect(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    }
}

/// A scalar.
fn constant(name: &str, element: DataType, raw_data: Vec<u8>) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type: element as i32,
        raw_data,
        ..TensorProto::default()
    }
}

fn tensor(name: &str) -> ValueInfoProto {
    let length = |&length: &i64| Dimension {
        value: Some(dimension::Value::DimValue(length)),
        ..Dimension::default()
    };
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            value: Some(Value::TensorType(Tensor {
                elem_type: DataType::Float as i32,
                shape: Some(TensorShapeProto {
                    dim: SHAPE.iter().map(length).collect(),
                }),
            })),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}

//! Small models written in code.

use prost::Message;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto, type_proto,
};

/// An integer attribute.
pub(crate) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Int as i32,
        i: value,
        ..AttributeProto::default()
    }
}

/// An attribute of several integers.
pub(crate) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::Ints as i32,
        ints: values.to_vec(),
        ..AttributeProto::default()
    }
}

/// An attribute of text.
pub(crate) fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        r#type: AttributeType::String as i32,
        s: value.into(),
        ..AttributeProto::default()
    }
}

/// A graph under construction.
#[derive(Clone, Default)]
pub(crate) struct Builder {
    pub(crate) graph: GraphProto,
    seed: u64,
}

impl Builder {
    fn value(name: &str, shape: &[i64]) -> ValueInfoProto {
        let dim = shape.iter().map(|&length| Dimension {
            value: Some(dimension::Value::DimValue(length)),
            ..Dimension::default()
        });
        let tensor = type_proto::Tensor {
            elem_type: DataType::Float as i32,
            shape: Some(TensorShapeProto { dim: dim.collect() }),
        };
        ValueInfoProto {
            name: name.into(),
            r#type: Some(TypeProto {
                value: Some(type_proto::Value::TensorType(tensor)),
                ..TypeProto::default()
            }),
            ..ValueInfoProto::default()
        }
    }

    /// An input of floats.
    pub(crate) fn input(&mut self, name: &str, shape: &[i64]) {
        self.graph.input.push(Self::value(name, shape));
    }

    /// An output of floats.
    pub(crate) fn output(&mut self, name: &str) {
        let mut value = Self::value(name, &[]);
        if let Some(type_proto::Value::TensorType(tensor)) =
            value.r#type.as_mut().and_then(|found| found.value.as_mut())
        {
            tensor.shape = None;
        }
        self.graph.output.push(value);
    }

    /// A node, written as `Type input,input output,output`.
    pub(crate) fn node(&mut self, line: &str, attribute: Vec<AttributeProto>) {
        let words: Vec<&str> = line.split(' ').collect();
        let names = |text: &str| {
            text.split(',')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()
        };
        self.graph.node.push(NodeProto {
            op_type: words[0].to_owned(),
            input: names(words[1]),
            output: names(words[2]),
            attribute,
            ..NodeProto::default()
        });
    }

    /// An initialiser of floats that look random.
    pub(crate) fn weights(&mut self, name: &str, shape: &[i64]) {
        let count = shape.iter().product::<i64>();
        let values = (0..count).map(|_| {
            self.seed = self
                .seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (self.seed >> 40) as f32 / (1 << 24) as f32 - 0.4
        });
        let float_data = values.collect();
        self.graph.initializer.push(TensorProto {
            name: name.into(),
            dims: shape.to_vec(),
            data_type: DataType::Float as i32,
            float_data,
            ..TensorProto::default()
        });
    }

    /// An initialiser of integers.
    pub(crate) fn integers(&mut self, name: &str, values: &[i64]) {
        self.graph.initializer.push(TensorProto {
            name: name.into(),
            dims: vec![values.len() as i64],
            data_type: DataType::Int64 as i32,
            int64_data: values.to_vec(),
            ..TensorProto::default()
        });
    }

    /// A convolution `name`, 3 x 3 with padding or 1 x 1, and its weights.
    pub(crate) fn conv(&mut self, name: &str, input: &str, from: i64, to: i64, kernel: i64) {
        self.weights(&format!("{name}.w"), &[to, from, kernel, kernel]);
        let pads = [kernel / 2; 4];
        self.node(
            &format!("Conv {input},{name}.w {name}"),
            vec![ints("kernel_shape", &[kernel, kernel]), ints("pads", &pads)],
        );
    }

    /// The finished model.
    pub(crate) fn model(&self) -> ModelProto {
        ModelProto {
            ir_version: 8,
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: 13,
            }],
            graph: Some(self.graph.clone()),
            ..ModelProto::default()
        }
    }

    /// The finished model as a file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.model().encode_to_vec()
    }
}

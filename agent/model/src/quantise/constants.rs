//! Constants as numbers, and numbers as constants.

use tract_onnx::pb::NodeProto;

use crate::constant::Constant;
use crate::graph::Graph;
use crate::tensor::{ElementType, TensorSpec};

/// The shape and values of a constant of 32-bit floats; none if `name` is no such constant.
pub(super) fn floats<'a>(graph: &'a Graph, name: &str) -> Option<(&'a [u64], Vec<f32>)> {
    let constant = graph.constants.get(name)?;
    if constant.spec.element != ElementType::F32 {
        return None;
    }
    let values = constant
        .bytes()
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
    Some((&constant.spec.shape, values.collect()))
}

/// Gives `graph` a constant of 32-bit floats.
pub(super) fn put_floats(graph: &mut Graph, name: &str, shape: &[u64], values: &[f32]) {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    put(graph, name, ElementType::F32, shape, bytes.collect());
}

/// Gives `graph` a constant; `bytes` are its little-endian elements.
pub(super) fn put(
    graph: &mut Graph,
    name: &str,
    element: ElementType,
    shape: &[u64],
    bytes: Vec<u8>,
) {
    let spec = TensorSpec {
        name: name.to_owned(),
        element,
        shape: shape.to_vec(),
    };
    graph
        .constants
        .insert(name.to_owned(), Constant::new(spec, bytes));
}

/// The node's attribute of a float, or what it is when it is left out.
pub(super) fn float_attribute(node: &NodeProto, name: &str, default: f32) -> f32 {
    let mut attributes = node.attribute.iter();
    attributes
        .find(|attribute| attribute.name == name)
        .map_or(default, |attribute| attribute.f)
}

/// The node's attribute of an integer, or what it is when it is left out.
pub(super) fn integer_attribute(node: &NodeProto, name: &str, default: i64) -> i64 {
    let mut attributes = node.attribute.iter();
    attributes
        .find(|attribute| attribute.name == name)
        .map_or(default, |attribute| attribute.i)
}

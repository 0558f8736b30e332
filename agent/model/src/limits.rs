//! What a model that reads well must not say: sizes beyond any device, outputs that it does not compute, and tensors
//! without elements.

use std::collections::HashMap;

use layerlab_profiles::{Bytes, Layer};
use tract_onnx::pb::tensor_shape_proto::dimension::Value;
use tract_onnx::pb::{ValueInfoProto, type_proto};

use crate::ModelError;
use crate::graph::{Graph, named};
use crate::tensor::{ElementType, TensorSpec};

/// More than the memory of any phone. Sums over the tensors of a model do not overflow below it.
const LARGEST_TENSOR: Bytes = Bytes::from_bytes(16 << 30);

/// Sums over layers, and over the CPU's and the accelerator's work, do not overflow below it.
const MOST_OPERATIONS: u64 = 1_000_000_000_000_000_000;

/// Refuses a tensor that no device holds.
pub(crate) fn tensors<'a>(
    specs: impl IntoIterator<Item = &'a TensorSpec>,
) -> Result<(), ModelError> {
    // The first by name, because a map has no order.
    let huge = specs
        .into_iter()
        .filter(|spec| spec.bytes() > LARGEST_TENSOR);
    match huge.min_by(|one, other| one.name.cmp(&other.name)) {
        None => Ok(()),
        Some(spec) => Err(ModelError::HugeTensor {
            tensor: spec.name.clone(),
            shape: spec.shape.clone(),
        }),
    }
}

/// Refuses a network whose operations cannot be added up.
pub(crate) fn operations(layers: &[Layer]) -> Result<(), ModelError> {
    let all = layers
        .iter()
        .flat_map(|layer| [layer.additions, layer.multiplications])
        .fold(0, u64::saturating_add);
    if all > MOST_OPERATIONS {
        return Err(ModelError::TooManyOperations);
    }
    Ok(())
}

/// Refuses an output whose declared type or shape is another than the computed one. What is not declared, and open
/// dimensions, fit everything.
pub(crate) fn outputs(
    declared: &[ValueInfoProto],
    specs: &HashMap<String, TensorSpec>,
) -> Result<(), ModelError> {
    for output in declared {
        let Some(spec) = specs.get(&output.name) else {
            continue;
        };
        let Some(type_proto::Value::TensorType(tensor)) = output
            .r#type
            .as_ref()
            .and_then(|found| found.value.as_ref())
        else {
            continue;
        };
        let shape: Option<Vec<Option<u64>>> = tensor.shape.as_ref().map(|shape| {
            let lengths = shape.dim.iter().map(|dimension| match dimension.value {
                // As at inputs, 0 and -1 stand for an open dimension.
                Some(Value::DimValue(length)) => {
                    u64::try_from(length).ok().filter(|&length| length > 0)
                }
                _ => None,
            });
            lengths.collect()
        });
        let same_element = tensor.elem_type == 0 || tensor.elem_type == spec.element.onnx();
        let same_shape = shape.as_ref().is_none_or(|shape| {
            shape.len() == spec.shape.len()
                && shape
                    .iter()
                    .zip(&spec.shape)
                    .all(|(declared, computed)| declared.is_none_or(|length| length == *computed))
        });
        if !same_element || !same_shape {
            let element = match ElementType::from_onnx(tensor.elem_type) {
                Ok(element) => element.to_string(),
                Err(unknown) => unknown,
            };
            let open = || spec.shape.iter().map(|&length| Some(length)).collect();
            return Err(ModelError::DeclaredOutput {
                output: output.name.clone(),
                declared: described(&element, &shape.unwrap_or_else(open)),
                computed: described(&spec.element.to_string(), &open()),
            });
        }
    }
    Ok(())
}

/// Such as `f32 1x?x28x28`.
fn described(element: &str, shape: &[Option<u64>]) -> String {
    let lengths: Vec<String> = shape
        .iter()
        .map(|length| length.map_or("?".to_owned(), |length| length.to_string()))
        .collect();
    match lengths.is_empty() {
        true => format!("one {element}"),
        false => format!("{element} {}", lengths.join("x")),
    }
}

/// Refuses what computes nothing: a tensor without elements that depends on the inputs.
pub(crate) fn computed(
    graph: &Graph,
    specs: &HashMap<String, TensorSpec>,
) -> Result<(), ModelError> {
    for (node, constant) in graph.nodes.iter().zip(graph.constant_nodes()) {
        let outputs = named(&node.output).filter_map(|output| specs.get(output));
        let mut empty = outputs.filter(|spec| !constant && spec.elements() == 0);
        if let Some(spec) = empty.next() {
            return Err(ModelError::EmptyTensor {
                node: node.name.clone(),
                tensor: spec.name.clone(),
                shape: spec.shape.clone(),
            });
        }
    }
    Ok(())
}

//! Open dimensions of the inputs: the batch becomes 1, any other has to be given by name.

use std::collections::BTreeMap;

use tract_onnx::pb::ValueInfoProto;
use tract_onnx::pb::tensor_shape_proto::dimension::Value;
use tract_onnx::pb::type_proto;

use crate::ModelError;
use crate::tensor::{ElementType, TensorSpec};

/// One axis of an input as the file has it.
enum Length {
    Fixed(u64),
    /// Open, under the file's name for it or `INPUT.AXIS` if it has none.
    Open(String),
}

/// The inputs with every dimension fixed: to the value in `given`, or to 1 if the name stands first in
/// some input (the batch).
pub(crate) fn fix(
    inputs: &[ValueInfoProto],
    given: &BTreeMap<String, u64>,
) -> Result<Vec<TensorSpec>, ModelError> {
    let inputs = inputs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut known: Vec<String> = Vec::new();
    let mut values = given.clone();
    for (_, _, lengths) in &inputs {
        for (axis, length) in lengths.iter().enumerate() {
            let Length::Open(name) = length else { continue };
            if axis == 0 {
                values.entry(name.clone()).or_insert(1);
            }
            if !known.contains(name) {
                known.push(name.clone());
            }
        }
    }
    for (dimension, &value) in given {
        if !known.contains(dimension) {
            return Err(ModelError::UnknownDimension {
                dimension: dimension.clone(),
                known,
            });
        }
        if value == 0 || value > i32::MAX as u64 {
            return Err(ModelError::DimensionOutOfRange {
                dimension: dimension.clone(),
                value,
            });
        }
    }

    let mut fixed = Vec::with_capacity(inputs.len());
    for (name, element, lengths) in inputs {
        let mut shape = Vec::with_capacity(lengths.len());
        for (axis, length) in lengths.into_iter().enumerate() {
            shape.push(match length {
                Length::Fixed(length) => length,
                Length::Open(dimension) => match values.get(&dimension) {
                    Some(&value) => value,
                    None => {
                        return Err(ModelError::UnresolvedDimension {
                            dimension,
                            input: name,
                            axis,
                        });
                    }
                },
            });
        }
        fixed.push(TensorSpec {
            name,
            element,
            shape,
        });
    }
    Ok(fixed)
}

fn read(input: &ValueInfoProto) -> Result<(String, ElementType, Vec<Length>), ModelError> {
    let Some(type_proto::Value::TensorType(tensor)) =
        input.r#type.as_ref().and_then(|found| found.value.as_ref())
    else {
        return Err(ModelError::InputWithoutShape {
            input: input.name.clone(),
        });
    };
    let element = ElementType::from_onnx(tensor.elem_type).map_err(|element| {
        ModelError::UnsupportedElement {
            tensor: input.name.clone(),
            element,
        }
    })?;
    let Some(shape) = &tensor.shape else {
        return Err(ModelError::InputWithoutShape {
            input: input.name.clone(),
        });
    };
    let length = |(axis, dimension): (usize, &tract_onnx::pb::tensor_shape_proto::Dimension)| {
        match &dimension.value {
            // Old exporters write 0 or -1 for a dimension they leave open.
            Some(Value::DimValue(length)) if *length > 0 => Length::Fixed(length.unsigned_abs()),
            Some(Value::DimParam(name)) if !name.is_empty() => Length::Open(name.clone()),
            _ => Length::Open(format!("{}.{axis}", input.name)),
        }
    };
    let lengths = shape.dim.iter().enumerate().map(length).collect();
    Ok((input.name.clone(), element, lengths))
}

#[cfg(test)]
mod tests {
    use tract_onnx::pb::tensor_shape_proto::Dimension;
    use tract_onnx::pb::{TensorShapeProto, TypeProto};

    use super::*;

    /// An input of floats; `"8"` is a fixed dimension, `""` an unnamed one.
    fn input(name: &str, lengths: &[&str]) -> ValueInfoProto {
        let dim = lengths
            .iter()
            .map(|&length| Dimension {
                value: match length.parse() {
                    Ok(number) => Some(Value::DimValue(number)),
                    Err(_) if length.is_empty() => None,
                    Err(_) => Some(Value::DimParam(length.to_owned())),
                },
                ..Dimension::default()
            })
            .collect();
        let tensor = type_proto::Tensor {
            elem_type: 1,
            shape: Some(TensorShapeProto { dim }),
        };
        ValueInfoProto {
            name: name.to_owned(),
            r#type: Some(TypeProto {
                value: Some(type_proto::Value::TensorType(tensor)),
                ..TypeProto::default()
            }),
            ..ValueInfoProto::default()
        }
    }

    fn shapes(
        inputs: &[ValueInfoProto],
        given: &[(&str, u64)],
    ) -> Result<Vec<Vec<u64>>, ModelError> {
        let given = given
            .iter()
            .map(|&(name, value)| (name.to_owned(), value))
            .collect();
        Ok(fix(inputs, &given)?
            .into_iter()
            .map(|spec| spec.shape)
            .collect())
    }

    #[test]
    fn the_batch_is_one_unless_it_is_given() {
        for lengths in [["N", "3"], ["", "3"], ["-1", "3"], ["0", "3"]] {
            assert_eq!(shapes(&[input("x", &lengths)], &[]).unwrap(), [[1, 3]]);
        }
        assert_eq!(
            shapes(&[input("x", &["N", "3"])], &[("N", 4)]).unwrap(),
            [[4, 3]]
        );
        assert_eq!(
            shapes(&[input("x", &["", "3"])], &[("x.0", 4)]).unwrap(),
            [[4, 3]]
        );
    }

    #[test]
    fn a_name_has_one_value_in_all_inputs() {
        let inputs = [input("x", &["N", "H"]), input("mask", &["H", "N"])];
        assert_eq!(shapes(&inputs, &[("H", 7)]).unwrap(), [[1, 7], [7, 1]]);
    }

    #[test]
    fn another_open_dimension_is_asked_for_by_name() {
        let error = shapes(&[input("x", &["N", "3", "H", ""])], &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the dimension `H` (axis 2 of the input `x`) is open: give it with --dim H=VALUE"
        );
        let error = shapes(&[input("x", &["N", "3", "H", ""])], &[("H", 8)]).unwrap_err();
        assert!(error.to_string().contains("--dim x.3=VALUE"), "{error}");
    }

    #[test]
    fn a_name_that_the_model_does_not_have_is_refused_with_those_it_has() {
        let error = shapes(&[input("x", &["N", "H"])], &[("h", 8)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--dim h names no open dimension of the model; it has N, H"
        );
        let error = shapes(&[input("x", &["1"])], &[("N", 1)]).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("every dimension of it is fixed"),
            "{error}"
        );
        let error = shapes(&[input("x", &["N", "H"])], &[("H", 0)]).unwrap_err();
        assert!(
            matches!(error, ModelError::DimensionOutOfRange { value: 0, .. }),
            "{error}"
        );
    }
}

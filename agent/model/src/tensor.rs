//! What is known of a tensor before it has a value: its name, element type and fixed shape.

use std::fmt;

use layerlab_profiles::Bytes;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::type_proto::{Tensor, Value};
use tract_onnx::pb::{TensorShapeProto, TypeProto, ValueInfoProto};
use tract_onnx::prelude::DatumType;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// Truth values of one byte.
    Bool,
    /// Unsigned 8-bit integers.
    U8,
    /// Unsigned 16-bit integers.
    U16,
    /// Unsigned 32-bit integers.
    U32,
    /// Unsigned 64-bit integers.
    U64,
    /// Signed 8-bit integers.
    I8,
    /// Signed 16-bit integers.
    I16,
    /// Signed 32-bit integers.
    I32,
    /// Signed 64-bit integers.
    I64,
    /// IEEE 754 floats of 16 bits.
    F16,
    /// IEEE 754 floats of 32 bits.
    F32,
    /// IEEE 754 floats of 64 bits.
    F64,
}

/// Each element type with its name in ONNX and in tract, and its bytes.
const ELEMENTS: [(ElementType, DataType, DatumType, u64); 12] = [
    (ElementType::Bool, DataType::Bool, DatumType::Bool, 1),
    (ElementType::U8, DataType::Uint8, DatumType::U8, 1),
    (ElementType::U16, DataType::Uint16, DatumType::U16, 2),
    (ElementType::U32, DataType::Uint32, DatumType::U32, 4),
    (ElementType::U64, DataType::Uint64, DatumType::U64, 8),
    (ElementType::I8, DataType::Int8, DatumType::I8, 1),
    (ElementType::I16, DataType::Int16, DatumType::I16, 2),
    (ElementType::I32, DataType::Int32, DatumType::I32, 4),
    (ElementType::I64, DataType::Int64, DatumType::I64, 8),
    (ElementType::F16, DataType::Float16, DatumType::F16, 2),
    (ElementType::F32, DataType::Float, DatumType::F32, 4),
    (ElementType::F64, DataType::Double, DatumType::F64, 8),
];

impl ElementType {
    fn row(self) -> (ElementType, DataType, DatumType, u64) {
        // Every variant has a row; the test below counts them.
        ELEMENTS
            .into_iter()
            .find(|row| row.0 == self)
            .unwrap_or(ELEMENTS[0])
    }

    /// The size of one element.
    pub fn bytes(self) -> Bytes {
        Bytes::from_bytes(self.row().3)
    }

    /// The number ONNX has for the type.
    pub fn onnx(self) -> i32 {
        self.row().1 as i32
    }

    /// The type as tract names it.
    pub fn tract(self) -> DatumType {
        self.row().2
    }

    /// The type that ONNX has under this number, or ONNX's name for what is not supported.
    pub fn from_onnx(number: i32) -> Result<Self, String> {
        let Ok(data_type) = DataType::try_from(number) else {
            return Err(format!("{number}, unknown to ONNX"));
        };
        match ELEMENTS.into_iter().find(|row| row.1 == data_type) {
            Some(row) => Ok(row.0),
            None => Err(data_type.as_str_name().to_owned()),
        }
    }

    /// The type of a tensor in tract. Symbolic dimensions are what ONNX calls 64-bit integers, and
    /// quantised integers are integers.
    pub fn from_tract(datum: DatumType) -> Option<Self> {
        let datum = if datum == DatumType::TDim {
            DatumType::I64
        } else {
            datum.unquantized()
        };
        ELEMENTS
            .into_iter()
            .find(|row| row.2 == datum)
            .map(|row| row.0)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}").to_lowercase())
    }
}

/// A tensor's name, element type and shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorSpec {
    /// The name in the model.
    pub name: String,
    /// The type of its elements.
    pub element: ElementType,
    /// The length of each axis.
    pub shape: Vec<u64>,
}

impl TensorSpec {
    /// How many elements it has.
    pub fn elements(&self) -> u64 {
        self.shape
            .iter()
            .fold(1, |product, &length| product.saturating_mul(length))
    }

    /// The size of its data.
    pub fn bytes(&self) -> Bytes {
        Bytes::from_bytes(
            self.elements()
                .saturating_mul(self.element.bytes().as_bytes()),
        )
    }

    /// As the input or output of an ONNX graph, under another name if one is given.
    pub(crate) fn value_info(&self, name: &str) -> ValueInfoProto {
        let dimension = |&length: &u64| Dimension {
            value: Some(dimension::Value::DimValue(
                i64::try_from(length).unwrap_or(i64::MAX),
            )),
            ..Dimension::default()
        };
        let tensor = Tensor {
            elem_type: self.element.onnx(),
            shape: Some(TensorShapeProto {
                dim: self.shape.iter().map(dimension).collect(),
            }),
        };
        ValueInfoProto {
            name: name.to_owned(),
            r#type: Some(TypeProto {
                value: Some(Value::TensorType(tensor)),
                ..TypeProto::default()
            }),
            ..ValueInfoProto::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_has_its_own_row() {
        for (element, onnx, tract, bytes) in ELEMENTS {
            assert_eq!(element.row(), (element, onnx, tract, bytes));
            assert_eq!(ElementType::from_onnx(element.onnx()), Ok(element));
            assert_eq!(ElementType::from_tract(tract), Some(element));
            assert_eq!(bytes as usize, tract.size_of());
        }
        assert_eq!(
            ElementType::from_onnx(DataType::String as i32),
            Err("STRING".to_owned())
        );
    }

    #[test]
    fn a_tensor_of_absurd_size_saturates() {
        let spec = TensorSpec {
            name: "t".into(),
            element: ElementType::F64,
            shape: vec![u64::MAX, 2],
        };
        assert_eq!(spec.bytes().as_bytes(), u64::MAX);
    }
}

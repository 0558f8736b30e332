//! The agent's tensors as ONNX Runtime's, and back. Each way is one copy.

use half::f16;
use layerlab_model::ElementType;
use ort::memory::Allocator;
use ort::value::{DynTensor, TensorElementType, TensorValueTypeMarker, Value, ValueType};
use zerocopy::IntoBytes as _;

use crate::runtime::process::TensorHeader;

/// Each element type with ONNX Runtime's and the Rust type, for the arm of a match.
macro_rules! for_element {
    ($element:expr, $do:ident ! ($($argument:tt)*)) => {
        match $element {
            ElementType::Bool => $do!(u8_as_bool, $($argument)*),
            ElementType::U8 => $do!(u8, $($argument)*),
            ElementType::U16 => $do!(u16, $($argument)*),
            ElementType::U32 => $do!(u32, $($argument)*),
            ElementType::U64 => $do!(u64, $($argument)*),
            ElementType::I8 => $do!(i8, $($argument)*),
            ElementType::I16 => $do!(i16, $($argument)*),
            ElementType::I32 => $do!(i32, $($argument)*),
            ElementType::I64 => $do!(i64, $($argument)*),
            ElementType::F16 => $do!(f16, $($argument)*),
            ElementType::F32 => $do!(f32, $($argument)*),
            ElementType::F64 => $do!(f64, $($argument)*),
        }
    };
}

macro_rules! fill_elements {
    (u8_as_bool, $tensor:expr, $bytes:expr) => {{
        let (_, elements) = $tensor.try_extract_tensor_mut::<bool>()?;
        for (element, &byte) in elements.iter_mut().zip($bytes) {
            *element = byte != 0;
        }
    }};
    ($type:ty, $tensor:expr, $bytes:expr) => {{
        let (_, elements) = $tensor.try_extract_tensor_mut::<$type>()?;
        elements.as_mut_bytes().copy_from_slice($bytes);
    }};
}

macro_rules! element_bytes {
    (u8_as_bool, $value:expr) => {
        element_bytes!(bool, $value)
    };
    ($type:ty, $value:expr) => {{
        let (_, elements) = $value.try_extract_tensor::<$type>()?;
        elements.as_bytes()
    }};
}

/// A tensor of zeros in this memory of ONNX Runtime's.
pub(super) fn zeros(
    memory: &Allocator,
    element: ElementType,
    shape: &[usize],
) -> ort::Result<DynTensor> {
    let shape: Vec<i64> = shape.iter().map(|&length| length as i64).collect();
    DynTensor::new(memory, of_runtime(element), shape)
}

/// Copies a tensor's bytes, of which there are as many as it takes, into ONNX Runtime's tensor of that type.
pub(super) fn fill(tensor: &mut DynTensor, element: ElementType, bytes: &[u8]) -> ort::Result<()> {
    for_element!(element, fill_elements!(tensor, bytes));
    Ok(())
}

/// What tensor it is, and its bytes.
pub(super) fn header_and_bytes<Type: TensorValueTypeMarker + ?Sized>(
    value: &Value<Type>,
) -> ort::Result<(TensorHeader, &[u8])> {
    let header = header(value.dtype()).map_err(ort::Error::new)?;
    let element = header.element_type().map_err(ort::Error::new)?;
    Ok((header, for_element!(element, element_bytes!(value))))
}

/// What tensor ONNX Runtime says it is. An open dimension is refused: segments have none.
pub(super) fn header(value: &ValueType) -> Result<TensorHeader, String> {
    let ValueType::Tensor { ty, shape, .. } = value else {
        return Err(format!("{value} is no tensor"));
    };
    let element = ALL
        .into_iter()
        .find(|&element| of_runtime(element) == *ty)
        .ok_or_else(|| format!("layerlab has no tensors of {ty}"))?;
    let shape = shape.iter().map(|&length| usize::try_from(length));
    Ok(TensorHeader {
        element: element.onnx(),
        shape: shape
            .collect::<Result<_, _>>()
            .map_err(|_| format!("{value} has an open dimension"))?,
    })
}

const ALL: [ElementType; 12] = [
    ElementType::Bool,
    ElementType::U8,
    ElementType::U16,
    ElementType::U32,
    ElementType::U64,
    ElementType::I8,
    ElementType::I16,
    ElementType::I32,
    ElementType::I64,
    ElementType::F16,
    ElementType::F32,
    ElementType::F64,
];

fn of_runtime(element: ElementType) -> TensorElementType {
    match element {
        ElementType::Bool => TensorElementType::Bool,
        ElementType::U8 => TensorElementType::Uint8,
        ElementType::U16 => TensorElementType::Uint16,
        ElementType::U32 => TensorElementType::Uint32,
        ElementType::U64 => TensorElementType::Uint64,
        ElementType::I8 => TensorElementType::Int8,
        ElementType::I16 => TensorElementType::Int16,
        ElementType::I32 => TensorElementType::Int32,
        ElementType::I64 => TensorElementType::Int64,
        ElementType::F16 => TensorElementType::Float16,
        ElementType::F32 => TensorElementType::Float32,
        ElementType::F64 => TensorElementType::Float64,
    }
}

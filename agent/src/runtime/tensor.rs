//! Tensors as every runtime takes and gives them: an element type, a shape and the bytes of the elements.

use std::sync::Arc;

use half::f16;
use layerlab_model::ElementType;

/// A tensor in main memory. Two are equal when they are the same, bit for bit: a NaN is the same as itself. Its copies share
/// their elements, and are known to be equal without a look at them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tensor {
    element: ElementType,
    shape: Vec<usize>,
    bytes: Arc<Vec<u8>>,
}

/// Bytes or numbers that are no tensor of the shape they should have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// There are more or fewer of them than the shape has.
    #[error("a tensor of {element} and shape {shape:?} does not have {given} {unit}")]
    WrongLength {
        /// The type of the elements.
        element: ElementType,
        /// The length of each axis.
        shape: Vec<usize>,
        /// How many there are.
        given: usize,
        /// What was counted.
        unit: &'static str,
    },
    /// A byte of a truth value is neither 0 nor 1.
    #[error("a tensor of truth values has bytes other than 0 and 1")]
    NoTruthValue,
}

impl Tensor {
    /// The tensor of these bytes: elements one after the other, the last axis fastest, each in the machine's own
    /// byte order.
    ///
    /// # Errors
    /// When the shape has more or fewer elements, or a truth value is neither 0 nor 1.
    pub fn new(
        element: ElementType,
        shape: Vec<usize>,
        bytes: Vec<u8>,
    ) -> Result<Tensor, TensorError> {
        let size = element.bytes().as_bytes() as usize;
        let expected = count(&shape).and_then(|elements| elements.checked_mul(size));
        if expected != Some(bytes.len()) {
            return Err(TensorError::WrongLength {
                element,
                shape,
                given: bytes.len(),
                unit: "bytes",
            });
        }
        if element == ElementType::Bool && bytes.iter().any(|&byte| byte > 1) {
            return Err(TensorError::NoTruthValue);
        }
        Ok(Tensor {
            element,
            shape,
            bytes: Arc::new(bytes),
        })
    }

    /// The tensor whose elements are these numbers: rounded to the nearest float, cut off to an integer, or true
    /// where they are not zero.
    ///
    /// # Errors
    /// When the shape has more or fewer elements.
    pub fn from_floats(
        element: ElementType,
        shape: Vec<usize>,
        values: &[f32],
    ) -> Result<Tensor, TensorError> {
        if count(&shape) != Some(values.len()) {
            return Err(TensorError::WrongLength {
                element,
                shape,
                given: values.len(),
                unit: "numbers",
            });
        }
        let bytes = match element {
            ElementType::Bool => encoded(values, |value| [u8::from(value != 0.0)]),
            ElementType::U8 => encoded(values, |value| (value as u8).to_ne_bytes()),
            ElementType::U16 => encoded(values, |value| (value as u16).to_ne_bytes()),
            ElementType::U32 => encoded(values, |value| (value as u32).to_ne_bytes()),
            ElementType::U64 => encoded(values, |value| (value as u64).to_ne_bytes()),
            ElementType::I8 => encoded(values, |value| (value as i8).to_ne_bytes()),
            ElementType::I16 => encoded(values, |value| (value as i16).to_ne_bytes()),
            ElementType::I32 => encoded(values, |value| (value as i32).to_ne_bytes()),
            ElementType::I64 => encoded(values, |value| (value as i64).to_ne_bytes()),
            ElementType::F16 => encoded(values, |value| f16::from_f32(value).to_ne_bytes()),
            ElementType::F32 => encoded(values, f32::to_ne_bytes),
            ElementType::F64 => encoded(values, |value| f64::from(value).to_ne_bytes()),
        };
        Ok(Tensor {
            element,
            shape,
            bytes: Arc::new(bytes),
        })
    }

    /// The type of its elements.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The length of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its elements one after the other, the last axis fastest, each in the machine's own byte order.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its elements as the nearest 32-bit floats; truth values are 0 and 1.
    pub fn to_floats(&self) -> Vec<f32> {
        let bytes = &self.bytes;
        match self.element {
            ElementType::Bool | ElementType::U8 => decoded(bytes, |[byte]| f32::from(byte)),
            ElementType::U16 => decoded(bytes, |bytes| f32::from(u16::from_ne_bytes(bytes))),
            ElementType::U32 => decoded(bytes, |bytes| u32::from_ne_bytes(bytes) as f32),
            ElementType::U64 => decoded(bytes, |bytes| u64::from_ne_bytes(bytes) as f32),
            ElementType::I8 => decoded(bytes, |bytes| f32::from(i8::from_ne_bytes(bytes))),
            ElementType::I16 => decoded(bytes, |bytes| f32::from(i16::from_ne_bytes(bytes))),
            ElementType::I32 => decoded(bytes, |bytes| i32::from_ne_bytes(bytes) as f32),
            ElementType::I64 => decoded(bytes, |bytes| i64::from_ne_bytes(bytes) as f32),
            ElementType::F16 => decoded(bytes, |bytes| f16::from_ne_bytes(bytes).to_f32()),
            ElementType::F32 => decoded(bytes, f32::from_ne_bytes),
            ElementType::F64 => decoded(bytes, |bytes| f64::from_ne_bytes(bytes) as f32),
        }
    }
}

/// How many elements a shape has; `None` if no memory holds them.
fn count(shape: &[usize]) -> Option<usize> {
    shape
        .iter()
        .try_fold(1usize, |product, &length| product.checked_mul(length))
}

fn encoded<const SIZE: usize>(values: &[f32], encode: impl Fn(f32) -> [u8; SIZE]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * SIZE);
    for &value in values {
        bytes.extend_from_slice(&encode(value));
    }
    bytes
}

fn decoded<const SIZE: usize>(bytes: &[u8], decode: impl Fn([u8; SIZE]) -> f32) -> Vec<f32> {
    let (elements, _) = bytes.as_chunks::<SIZE>();
    elements.iter().map(|&element| decode(element)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn numbers_come_back_as_the_element_type_holds_them() {
        for element in ALL {
            let tensor = Tensor::from_floats(element, vec![2, 3], &[0.0, 1.0, 2.7, -1.5, 0.1, 1e9])
                .expect("six numbers");
            assert_eq!((tensor.element(), tensor.shape()), (element, &[2, 3][..]));
            assert_eq!(
                tensor.bytes().len() as u64,
                6 * element.bytes().as_bytes(),
                "{element}"
            );
            let expected: [f32; 6] = match element {
                ElementType::Bool => [0.0, 1.0, 1.0, 1.0, 1.0, 1.0],
                ElementType::U8 => [0.0, 1.0, 2.0, 0.0, 0.0, 255.0],
                ElementType::U16 => [0.0, 1.0, 2.0, 0.0, 0.0, 65_535.0],
                ElementType::U32 | ElementType::U64 => [0.0, 1.0, 2.0, 0.0, 0.0, 1e9],
                ElementType::I8 => [0.0, 1.0, 2.0, -1.0, 0.0, 127.0],
                ElementType::I16 => [0.0, 1.0, 2.0, -1.0, 0.0, 32_767.0],
                ElementType::I32 | ElementType::I64 => [0.0, 1.0, 2.0, -1.0, 0.0, 1e9],
                ElementType::F16 => [0.0, 1.0, 2.699_218_8, -1.5, 0.099_975_586, f32::INFINITY],
                ElementType::F32 | ElementType::F64 => [0.0, 1.0, 2.7, -1.5, 0.1, 1e9],
            };
            assert_eq!(tensor.to_floats(), expected, "{element}");
            let again = Tensor::new(element, vec![2, 3], tensor.bytes().to_vec());
            assert_eq!(again, Ok(tensor));
        }
    }

    #[test]
    fn a_nan_is_the_same_as_itself_and_zero_is_not_minus_zero() {
        let of = |value| Tensor::from_floats(ElementType::F32, vec![], &[value]).expect("a scalar");
        assert_eq!(of(f32::NAN), of(f32::NAN));
        assert_ne!(of(0.0), of(-0.0));
    }

    #[test]
    fn what_is_no_tensor_of_its_shape_is_refused() {
        let sentence = |made: Result<Tensor, TensorError>| made.expect_err("no tensor").to_string();
        assert_eq!(
            sentence(Tensor::new(ElementType::F32, vec![2], vec![0; 7])),
            "a tensor of f32 and shape [2] does not have 7 bytes"
        );
        assert_eq!(
            sentence(Tensor::from_floats(ElementType::I8, vec![2, 2], &[0.0])),
            "a tensor of i8 and shape [2, 2] does not have 1 numbers"
        );
        assert_eq!(
            sentence(Tensor::new(ElementType::Bool, vec![1], vec![2])),
            "a tensor of truth values has bytes other than 0 and 1"
        );
        let absurd = vec![usize::MAX, 2];
        assert!(Tensor::new(ElementType::U8, absurd, Vec::new()).is_err());
    }
}

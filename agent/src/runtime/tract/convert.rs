//! Our tensors as tract's, and back. Each way is one copy.

use std::borrow::Cow;

use anyhow::Context;
use layerlab_model::ElementType;
use tract_onnx::prelude::{DatumType, TValue, TVec, Tensor as TractTensor, TractResult};

use crate::runtime::Tensor;

/// Tensors as tract takes them.
pub(in crate::runtime) fn to_tract(tensors: &[Tensor]) -> TractResult<TVec<TValue>> {
    tensors
        .iter()
        .map(|tensor| {
            let mut copy = TractTensor::zero_dt(tensor.element().tract(), tensor.shape())?;
            copy.as_bytes_mut().copy_from_slice(tensor.bytes());
            Ok(TValue::from(copy))
        })
        .collect()
}

/// What tract gave. Symbolic dimensions become 64-bit integers, quantised integers integers.
pub(in crate::runtime) fn from_tract(values: TVec<TValue>) -> TractResult<Vec<Tensor>> {
    values
        .into_iter()
        .map(|value| {
            let tensor = match value.datum_type() {
                DatumType::TDim => value.cast_to_dt(DatumType::I64)?,
                _ => Cow::Borrowed(&*value),
            };
            let datum = tensor.datum_type();
            let element = ElementType::from_tract(datum)
                .with_context(|| format!("tract gave a tensor of {datum:?}"))?;
            let bytes = tensor.try_as_plain_ram()?.as_bytes().to_vec();
            Ok(Tensor::new(element, tensor.shape().to_vec(), bytes)?)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_comes_back_bit_for_bit() {
        let values = [0.0, 1.0, 100.0, 7.5, 0.3, f32::NAN];
        for element in [
            ElementType::Bool,
            ElementType::U8,
            ElementType::I64,
            ElementType::F16,
            ElementType::F32,
            ElementType::F64,
        ] {
            let ours = vec![
                Tensor::from_floats(element, vec![3, 2], &values).expect("six numbers"),
                Tensor::from_floats(element, vec![], &[1.0]).expect("a scalar"),
                Tensor::from_floats(element, vec![0, 4], &[]).expect("nothing"),
            ];
            let theirs = to_tract(&ours).expect("tract's tensors");
            assert_eq!(theirs[0].datum_type(), element.tract());
            assert_eq!(from_tract(theirs).expect("ours again"), ours);
        }
    }

    #[test]
    fn symbolic_dimensions_that_have_a_value_are_64_bit_integers() {
        let ours = Tensor::from_floats(ElementType::I64, vec![2], &[3.0, 4.0]).expect("two");
        let symbolic = to_tract(std::slice::from_ref(&ours)).expect("tract's")[0]
            .cast_to_dt(DatumType::TDim)
            .expect("dimensions")
            .into_owned();
        let back = from_tract([TValue::from(symbolic)].into_iter().collect()).expect("ours");
        assert_eq!(back, [ours]);
    }
}

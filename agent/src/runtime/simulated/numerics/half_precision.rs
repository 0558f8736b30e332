//! 16-bit floats (IEEE 754 binary16): what a processor computes that stores every intermediate result
//! in 16 bits. What is too large becomes infinite, and infinity minus infinity NaN.
//!
//! Operators that are one step per element (sums, products, activations) are computed in 32 bits and
//! rounded, which for + - * / and square roots is the same as computing in 16. Operators that hide
//! several steps (LRN with its squares, softmax, average pooling) are computed by tract in 16 bits
//! throughout; sums inside them are kept in 32 bits and rounded at their end.

use tract_onnx::prelude::{DatumType, TValue, TVec, TractResult};
use tract_onnx::tract_core::ops::cnn::Conv;
use tract_onnx::tract_core::ops::einsum::EinSum;

use super::accumulate;
use super::rounding::round;
use super::step::{Step, round_all};
use crate::device::simulated::Accumulate;

/// Operators that tract computes as one, but which take several steps, by tract's names.
const SEVERAL_STEPS: [&str; 5] = ["Lrn", "Softmax", "LogSoftmax", "SumPool", "RmsNorm"];

/// Evaluates an operator and rounds its results.
pub(super) fn evaluate(
    sums: Accumulate,
    step: Step<'_, '_, '_>,
    inputs: TVec<TValue>,
) -> TractResult<TVec<TValue>> {
    let node = step.node;
    let results = if SEVERAL_STEPS.contains(&node.op().name().as_ref()) {
        widened(step.evaluate(cast(inputs, DatumType::F32, DatumType::F16)?)?)?
    } else if sums == Accumulate::F16
        && let Some(conv) = node.op_as::<Conv>()
        && conv.q_params.is_none()
    {
        accumulate::convolution(conv, &inputs)?
    } else if sums == Accumulate::F16
        && let Some(product) = node.op_as::<EinSum>()
        && product.q_params.is_none()
        && inputs.len() == 2
        && inputs
            .iter()
            .all(|input| input.datum_type() == DatumType::F32)
    {
        accumulate::contraction(&product.axes, &inputs[0], &inputs[1])?
    } else {
        step.evaluate(inputs)?
    };
    round_all(results, round)
}

fn widened(values: TVec<TValue>) -> TractResult<TVec<TValue>> {
    cast(values, DatumType::F16, DatumType::F32)
}

fn cast(values: TVec<TValue>, from: DatumType, to: DatumType) -> TractResult<TVec<TValue>> {
    values
        .into_iter()
        .map(|value| match value.datum_type() == from {
            true => Ok(value.cast_to_dt(to)?.into_owned().into()),
            false => Ok(value),
        })
        .collect()
}

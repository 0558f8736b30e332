//! Rounding to 16-bit floats (IEEE 754 binary16), kept in 32 bits.

use half::f16;
use half::slice::HalfFloatSliceExt;
use tract_onnx::prelude::Tensor;

/// Rounds a constant: weights are stored in 16 bits.
pub(super) fn round_weights(tensor: &mut Tensor) {
    if let Some(mut plain) = tensor.as_plain_ram_mut()
        && let Ok(values) = plain.as_slice_mut::<f32>()
    {
        round(values);
    }
}

/// The nearest 16-bit floats, ties to even.
pub(super) fn round(values: &mut [f32]) {
    // Long enough for vector instructions, short enough for the stack.
    let mut halves = [f16::ZERO; 256];
    for values in values.chunks_mut(halves.len()) {
        let halves = &mut halves[..values.len()];
        halves.convert_from_f32_slice(values);
        halves.convert_to_f32_slice(values);
    }
}

//! 8-bit integers: each tensor is `scale · q`, q from -127 to 127, one scale per tensor.
//!
//! The choices, where runtimes differ: symmetric (no zero point); dynamic, the scale being the largest
//! magnitude of the very tensor divided by 127; weights that are matrices or more are quantised, while
//! vectors and scalars (biases, batch-norm factors) stay in 32 bits, as 8-bit runtimes keep them; sums
//! are kept in 32 bits. NaN becomes 0 and infinity the largest finite magnitude of the tensor, because
//! 8-bit integers have neither.

use tract_onnx::prelude::{TValue, TVec, Tensor, TractResult};

use super::step::{Step, round_all};

/// The largest quantised value; -128 is left unused, so that the range is symmetric.
const LARGEST: f64 = 127.0;

/// Quantises a constant if it is a matrix or more.
pub(super) fn round_weights(tensor: &mut Tensor) {
    let is_vector = tensor.shape().iter().filter(|&&length| length > 1).count() < 2;
    if !is_vector
        && let Some(mut plain) = tensor.as_plain_ram_mut()
        && let Ok(values) = plain.as_slice_mut::<f32>()
    {
        round(values);
    }
}

/// Quantises and dequantises. Doing it twice is the same as doing it once, which makes a segment's
/// output the next segment's input unchanged.
pub(super) fn round(values: &mut [f32]) {
    let magnitudes = values
        .iter()
        .map(|value| value.abs())
        .filter(|value| value.is_finite());
    let largest = magnitudes.fold(0.0, f32::max);
    if largest == 0.0 {
        values.fill(0.0);
        return;
    }
    // 64 bits, so that 127 · scale is the largest magnitude to the last bit of 32.
    let scale = f64::from(largest) / LARGEST;
    for value in values {
        let level = (f64::from(*value) / scale)
            .round_ties_even()
            .clamp(-LARGEST, LARGEST);
        // NaN passes through the clamp; adding 0 turns -0 into 0, which integers do not tell apart.
        *value = if level.is_nan() {
            0.0
        } else {
            (level * scale) as f32 + 0.0
        };
    }
}

/// Evaluates an operator and quantises its results.
pub(super) fn evaluate(step: Step<'_, '_, '_>, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
    round_all(step.evaluate(inputs)?, round)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rounded(values: &[f32]) -> Vec<f32> {
        let mut values = values.to_vec();
        round(&mut values);
        values
    }

    proptest! {
        #[test]
        fn quantising_errs_by_at_most_half_a_step(values in prop::collection::vec(-1e6f32..1e6, 1..50)) {
            let largest = values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
            let half_step = f64::from(largest) / 254.0;
            for (value, rounded) in values.iter().zip(rounded(&values)) {
                let error = (f64::from(*value) - f64::from(rounded)).abs();
                // Beside the step, the result is rounded to 32 bits.
                prop_assert!(error <= half_step * (1.0 + 1e-5), "{value} became {rounded}");
            }
        }

        #[test]
        fn quantising_twice_is_quantising_once(values in prop::collection::vec(any::<f32>(), 0..50)) {
            let once = rounded(&values);
            let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&rounded(&once)), bits(&once));
        }

        #[test]
        fn no_tensor_has_more_than_255_values(values in prop::collection::vec(any::<f32>(), 400)) {
            let mut rounded = rounded(&values);
            rounded.sort_by(f32::total_cmp);
            rounded.dedup();
            prop_assert!(rounded.len() <= 255);
        }
    }

    #[test]
    fn nan_becomes_zero_and_infinity_the_largest_magnitude() {
        assert_eq!(
            rounded(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 2.0]),
            [0.0, 2.0, -2.0, 2.0]
        );
        assert_eq!(rounded(&[f32::NAN, f32::INFINITY]), [0.0, 0.0]);
    }

    #[test]
    fn weights_are_quantised_and_biases_are_not() {
        let values = [1.0f32, 0.001, 0.5, 0.25];
        let tensor = |shape: &[usize]| {
            let mut tensor = Tensor::from_shape(shape, &values).expect("four values");
            round_weights(&mut tensor);
            tensor
                .try_as_plain_ram()
                .expect("plain")
                .as_slice::<f32>()
                .expect("f32")[1]
        };
        assert_eq!(tensor(&[2, 2]), 0.0);
        assert_eq!(tensor(&[4]), 0.001);
        assert_eq!(tensor(&[1, 4, 1, 1]), 0.001);
    }
}

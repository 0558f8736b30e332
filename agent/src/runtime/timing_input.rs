//! The tensors that segments are timed with.

use layerlab_model::{ElementType, TensorSpec};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::tensor::Tensor;

/// One tensor for each of these: floats uniform in [0, 1), integers 0 or 1, which are numbers of words in any vocabulary.
///
/// Values of ordinary size, because subnormal numbers and NaNs are slow on some processors. The same
/// specs and seed give the same tensors.
pub fn timing_input(specs: &[TensorSpec], seed: u64) -> Vec<Tensor> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    specs.iter().map(|spec| tensor(spec, &mut random)).collect()
}

fn tensor(spec: &TensorSpec, random: &mut ChaCha8Rng) -> Tensor {
    let shape: Vec<usize> = spec.shape.iter().map(|&length| length as usize).collect();
    let is_float = matches!(
        spec.element,
        ElementType::F16 | ElementType::F32 | ElementType::F64
    );
    let values: Vec<f32> = (0..spec.elements())
        .map(|_| {
            if is_float {
                random.random::<f32>()
            } else {
                f32::from(random.random::<bool>())
            }
        })
        .collect();
    Tensor::from_floats(spec.element, shape, &values).expect("as many values as the shape has")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_tensors_of_the_right_types() {
        let spec = |element| TensorSpec {
            name: "t".into(),
            element,
            shape: vec![2, 3],
        };
        let frontier = [
            spec(ElementType::F32),
            spec(ElementType::I64),
            spec(ElementType::Bool),
        ];
        let tensors = timing_input(&frontier, 7);
        assert_eq!(tensors, timing_input(&frontier, 7));
        assert_ne!(tensors, timing_input(&frontier, 8));
        for (tensor, spec) in tensors.iter().zip(&frontier) {
            assert_eq!(
                (tensor.element(), tensor.shape()),
                (spec.element, [2, 3].as_slice())
            );
        }
    }
}

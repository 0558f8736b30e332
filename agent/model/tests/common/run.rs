//! Running models with tract and comparing every bit of what they give.

use std::collections::HashMap;

use layerlab_model::{ElementType, Network, SubModel, TensorSpec};
use layerlab_profiles::Segment;
use tract_onnx::prelude::*;

/// Who optimises a model before it runs.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Optimiser {
    /// Nobody: tract's typed graph as it comes.
    None,
    /// `SubModel::optimized`.
    Layerlab,
    /// tract's own `into_optimized`.
    Tract,
}

/// Which segments are compared.
#[derive(Clone, Copy)]
pub(crate) enum Compared {
    /// All of a network of no more than so many layers; else singles, neighbours, prefixes and suffixes.
    AllUpTo(u32),
    /// The same, of a network of more than twelve layers each third prefix and suffix.
    EachThird,
}

impl Compared {
    /// Whether these are among them, in a network of so many layers.
    fn are(self, segment: Segment, layers: u32) -> bool {
        let (first, last) = (segment.first(), segment.last());
        let (all_up_to, each) = match self {
            Compared::AllUpTo(layers) => (layers, 1),
            Compared::EachThird => (12, 3),
        };
        let is_prefix = first == 1 && (last % each == 0 || last == layers);
        let is_suffix = last == layers && first % each == 0;
        layers <= all_up_to || is_prefix || is_suffix || last == first + 1
    }
}

/// A value for each of `specs`, the same in every run; small numbers of both signs.
pub(crate) fn inputs(specs: &[TensorSpec], mut seed: u64) -> TVec<TValue> {
    let mut next = move || {
        // Knuth's linear congruential generator; its high bits are good enough for test inputs.
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    specs
        .iter()
        .map(|spec| {
            let shape: Vec<usize> = spec.shape.iter().map(|&length| length as usize).collect();
            let values: Vec<f32> = (0..spec.elements()).map(|_| next()).collect();
            let floats = Tensor::from_shape(&shape, &values).unwrap();
            match spec.element {
                ElementType::F32 => floats.into_tvalue(),
                other => floats
                    .cast_to_dt(other.tract())
                    .unwrap()
                    .into_owned()
                    .into_tvalue(),
            }
        })
        .collect()
}

/// Runs the model as tract reads it, without layerlab: only the shapes of the inputs are given.
///
/// It is not optimised, so that nothing can be wrong in the same way on both sides.
pub(crate) fn never_cut(
    mut model: InferenceModel,
    specs: &[TensorSpec],
    inputs: TVec<TValue>,
) -> TVec<TValue> {
    for (index, spec) in specs.iter().enumerate() {
        let shape: Vec<usize> = spec.shape.iter().map(|&length| length as usize).collect();
        model
            .set_input_fact(index, InferenceFact::dt_shape(spec.element.tract(), shape))
            .unwrap();
    }
    model
        .into_typed()
        .unwrap()
        .into_runnable()
        .unwrap()
        .run(inputs)
        .unwrap()
}

/// Runs a segment on `inputs` and checks that it gives what it promises.
pub(crate) fn segment(
    sub_model: &SubModel,
    inputs: TVec<TValue>,
    optimiser: Optimiser,
) -> TVec<TValue> {
    let model = match optimiser {
        Optimiser::None => sub_model.typed().unwrap(),
        Optimiser::Layerlab => sub_model.optimized().unwrap(),
        Optimiser::Tract => sub_model.typed().unwrap().into_optimized().unwrap(),
    };
    let outputs = model.into_runnable().unwrap().run(inputs).unwrap();
    assert_eq!(outputs.len(), sub_model.outputs.len());
    for (output, spec) in outputs.iter().zip(&sub_model.outputs) {
        let shape: Vec<u64> = output.shape().iter().map(|&length| length as u64).collect();
        assert_eq!(shape, spec.shape, "{}", spec.name);
        assert_eq!(
            output.datum_type().unquantized(),
            spec.element.tract(),
            "{}",
            spec.name
        );
    }
    outputs
}

/// Two answers that should have been the same.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The layers that were run as one.
    #[expect(dead_code, reason = "a failed test shows it")]
    pub(crate) segment: Segment,
    /// The largest difference, as a part of the largest value.
    pub(crate) relative: f32,
}

/// Compares bits; where they differ, says by how much.
pub(crate) fn difference(
    segment: Segment,
    left: &[TValue],
    right: &[TValue],
) -> Option<Difference> {
    assert_eq!(left.len(), right.len());
    let mut found = None;
    for (left, right) in left.iter().zip(right) {
        assert_eq!(left.shape(), right.shape());
        assert_eq!(left.datum_type(), right.datum_type());
        if left.as_bytes() != right.as_bytes() {
            let (left, right) = (
                left.cast_to::<f32>().unwrap(),
                right.cast_to::<f32>().unwrap(),
            );
            let left = left.to_plain_array_view::<f32>().unwrap();
            let right = right.to_plain_array_view::<f32>().unwrap();
            let largest = left
                .iter()
                .fold(0.0_f32, |most, value| most.max(value.abs()));
            let pairs = left.iter().zip(right.iter());
            let apart = pairs.fold(0.0_f32, |most, (l, r)| most.max((l - r).abs()));
            let relative = found.map_or(0.0, |found: Difference| found.relative);
            found = Some(Difference {
                segment,
                relative: relative.max(apart / largest),
            });
        }
    }
    found
}

/// Compares segments of `network`, the whole among them, with the layers chained one by one.
///
/// Returns the answer of the chain with what differs.
pub(crate) fn chain(
    network: &Network,
    inputs: TVec<TValue>,
    compared: Compared,
    optimiser: Optimiser,
) -> (TVec<TValue>, Vec<Difference>) {
    let n = network.layer_count();
    // All that was ever there, by name.
    let mut memory: HashMap<String, TValue> = HashMap::new();
    let named = network.inputs().iter().map(|spec| spec.name.clone());
    memory.extend(named.zip(inputs));
    let tensors = |memory: &HashMap<String, TValue>, specs: &[TensorSpec]| -> TVec<TValue> {
        specs
            .iter()
            .map(|spec| memory[&spec.name].clone())
            .collect()
    };
    for layer in 1..=n {
        let layer = Segment::single(layer);
        let single = network.segment(layer).unwrap();
        let outputs = segment(&single, tensors(&memory, &network.takes(layer)), optimiser);
        let gives = network.gives(layer).into_iter().map(|spec| spec.name);
        memory.extend(gives.zip(outputs));
    }
    let mut found = Vec::new();
    for first in 1..=n {
        for last in first + 1..=n {
            let layers = Segment::new(first, last).unwrap();
            if !compared.are(layers, n) {
                continue;
            }
            let sub_model = network.segment(layers).unwrap();
            let inputs = tensors(&memory, &network.takes(layers));
            let outputs = segment(&sub_model, inputs, optimiser);
            let chained = tensors(&memory, &network.gives(layers));
            found.extend(difference(layers, &outputs, &chained));
        }
    }
    (tensors(&memory, network.outputs()), found)
}

//! Ranges of activations: the network is run on images, and each tensor's values are looked at.

use std::collections::BTreeMap;

use tract_onnx::prelude::*;

use super::scale::ValueRange;
use super::{QuantiseError, RangeMethod};
use crate::graph::Graph;
use crate::infer::one_line;
use crate::tensor::TensorSpec;
use crate::{Network, infer};

/// Bins of a histogram from zero to the largest magnitude; onnxruntime.quantization has as many.
const BINS: usize = 2048;
/// The share of a tensor's values that a percentile range holds, those nearest to zero; onnxruntime.quantization's default.
const HELD: f64 = 0.99999;

/// The range of each of `tensors` over all `images`.
pub(super) fn ranges(
    network: &Network,
    graph: &Graph,
    tensors: &[String],
    images: &(impl Iterator<Item = Vec<f32>> + Clone),
    method: RangeMethod,
) -> Result<BTreeMap<String, ValueRange>, QuantiseError> {
    let [input] = graph.inputs.as_slice() else {
        return Err(QuantiseError::Inputs {
            inputs: graph.inputs.len(),
        });
    };
    let observer = Observer::new(network, graph, input, tensors)?;
    let mut ranges: Vec<Option<ValueRange>> = vec![None; tensors.len()];
    observer.each(images.clone(), |tensor, image, values| {
        let found = ValueRange::of(values).ok_or_else(|| QuantiseError::NotFinite {
            tensor: tensors[tensor].clone(),
            image,
        })?;
        let range = &mut ranges[tensor];
        *range = Some(range.map_or(found, |range| range.and(found)));
        Ok(())
    })?;
    let mut ranges: Vec<ValueRange> = ranges
        .into_iter()
        .collect::<Option<_>>()
        .ok_or(QuantiseError::NoImages)?;
    if method == RangeMethod::Percentile {
        let mut histograms: Vec<Histogram> =
            ranges.iter().map(|&range| Histogram::new(range)).collect();
        observer.each(images.clone(), |tensor, _, values| {
            histograms[tensor].add(values);
            Ok(())
        })?;
        ranges = histograms.iter().map(Histogram::held).collect();
    }
    Ok(tensors.iter().cloned().zip(ranges).collect())
}

/// A network that gives the tensors that are looked at.
struct Observer {
    plan: std::sync::Arc<TypedRunnableModel>,
    shape: Vec<usize>,
    /// Whether the first tensor is the input itself, which no node gives.
    input_at: Option<usize>,
}

impl Observer {
    fn new(
        network: &Network,
        graph: &Graph,
        input: &TensorSpec,
        tensors: &[String],
    ) -> Result<Self, QuantiseError> {
        let mut observed = graph.clone();
        let given = |name: &&String| **name != input.name;
        observed.outputs = tensors.iter().filter(given).cloned().collect();
        let model = infer::optimized(&network.model_of(&observed))?;
        let plan = model.into_runnable().map_err(|error| QuantiseError::Run {
            image: 1,
            reason: one_line(&error),
        })?;
        Ok(Observer {
            plan,
            shape: input.shape.iter().map(|&length| length as usize).collect(),
            input_at: tensors.iter().position(|name| *name == input.name),
        })
    }

    /// Calls `look` for each tensor, by its place, and each image, counted from 1, with all values.
    fn each(
        &self,
        images: impl Iterator<Item = Vec<f32>>,
        mut look: impl FnMut(usize, usize, &[f32]) -> Result<(), QuantiseError>,
    ) -> Result<(), QuantiseError> {
        for (index, image) in images.enumerate() {
            let number = index + 1;
            let failed = |error: TractError| QuantiseError::Run {
                image: number,
                reason: one_line(&error),
            };
            let input = Tensor::from_shape(&self.shape, &image).map_err(failed)?;
            let outputs = self.plan.run(tvec!(input.into_tvalue())).map_err(failed)?;
            if let Some(place) = self.input_at {
                look(place, number, &image)?;
            }
            for (place, output) in outputs.iter().enumerate() {
                let tensor = match self.input_at {
                    Some(input) if place >= input => place + 1,
                    _ => place,
                };
                let view = output.to_plain_array_view::<f32>().map_err(failed)?;
                match view.as_slice() {
                    Some(values) => look(tensor, number, values)?,
                    None => look(tensor, number, &view.iter().copied().collect::<Vec<_>>())?,
                }
            }
        }
        Ok(())
    }
}

/// How often magnitudes fall into equal parts of a range from zero on.
struct Histogram {
    range: ValueRange,
    counts: Vec<u64>,
}

impl Histogram {
    fn new(range: ValueRange) -> Self {
        Histogram {
            range,
            counts: vec![0; BINS],
        }
    }

    fn width(&self) -> f64 {
        f64::from(self.range.high().max(-self.range.low())) / BINS as f64
    }

    fn add(&mut self, values: &[f32]) {
        let width = self.width();
        if width == 0.0 {
            return;
        }
        for value in values {
            let bin = (f64::from(value.abs()) / width) as usize;
            self.counts[bin.min(BINS - 1)] += 1;
        }
    }

    /// The range up to the lower edge of the first bin up to which there are [`HELD`] of the values. A bin less than
    /// needed, but what onnxruntime.quantization does, with which models are compared.
    fn held(&self) -> ValueRange {
        let all: u64 = self.counts.iter().sum();
        if all == 0 {
            return self.range;
        }
        let mut sum = 0;
        let before = self.counts.iter().take_while(|&&count| {
            sum += count;
            (sum as f64 / all as f64) < HELD
        });
        let limit = (before.count() as f64 * self.width()) as f32;
        ValueRange::new(self.range.low().max(-limit), self.range.high().min(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_leaves_out_what_is_rare_and_far_from_zero() {
        let mut histogram = Histogram::new(ValueRange::new(-100.0, 100.0));
        let common: Vec<f32> = (0..1_000_000)
            .map(|i| (i % 1000) as f32 / 500.0 - 1.0)
            .collect();
        histogram.add(&common);
        histogram.add(&[-100.0, 100.0]);
        let held = histogram.held();
        // A bin is 100 / 2,048 wide.
        assert!(held.low() < -0.9 && held.low() > -1.1, "{held:?}");
        assert!(held.high() > 0.9 && held.high() < 1.1, "{held:?}");
    }

    #[test]
    fn of_what_is_not_rare_a_bin_is_left_out() {
        let mut histogram = Histogram::new(ValueRange::new(-1.0, 4.0));
        histogram.add(&[-1.0, 0.0, 4.0, 2.0]);
        let bin = 4.0 / BINS as f32;
        assert_eq!(histogram.held(), ValueRange::new(-1.0, 4.0 - bin));
        let nothing = Histogram::new(ValueRange::new(0.0, 0.0)).held();
        assert_eq!(nothing, ValueRange::new(0.0, 0.0));
    }
}

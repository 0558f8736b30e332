//! The arithmetic: from ranges to scales, from floats to integers.

/// The smallest and the largest value that a tensor is to hold; always with zero between them, which integers hold
/// exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ValueRange {
    low: f32,
    high: f32,
}

impl ValueRange {
    /// From `low` to `high`, widened to zero.
    pub(super) fn new(low: f32, high: f32) -> Self {
        ValueRange {
            low: low.min(0.0),
            high: high.max(0.0),
        }
    }

    /// The range of `values`; none if one of them is not finite.
    pub(super) fn of(values: &[f32]) -> Option<Self> {
        let finite = values.iter().all(|value| value.is_finite());
        let (low, high) = values
            .iter()
            .fold((0.0_f32, 0.0_f32), |(low, high), &value| {
                (low.min(value), high.max(value))
            });
        finite.then_some(ValueRange { low, high })
    }

    /// The range that holds both.
    pub(super) fn and(self, other: Self) -> Self {
        ValueRange {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// The smallest value, at most zero.
    pub(super) fn low(self) -> f32 {
        self.low
    }

    /// The largest value, at least zero.
    pub(super) fn high(self) -> f32 {
        self.high
    }
}

/// How floats become unsigned 8-bit integers: value = (integer - zero point) x scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AffineScale {
    /// The step between neighbouring integers.
    pub(super) scale: f32,
    /// The integer that stands for zero.
    pub(super) zero_point: u8,
}

impl AffineScale {
    /// The finest one that holds all of `range`.
    pub(super) fn holding(range: ValueRange) -> Self {
        let width = f64::from(range.high) - f64::from(range.low);
        let scale = (width / f64::from(u8::MAX)) as f32;
        if !scale.is_normal() {
            // All zero, or so small that dividing by it would overflow.
            return AffineScale {
                scale: 1.0,
                zero_point: 0,
            };
        }
        let zero = (-f64::from(range.low) / f64::from(scale)).round_ties_even();
        AffineScale {
            scale,
            zero_point: zero as u8,
        }
    }

    /// The nearest integer, ties to even, or the outermost.
    pub(super) fn quantise(self, value: f32) -> u8 {
        let steps = (value / self.scale).round_ties_even() + f32::from(self.zero_point);
        steps as u8
    }
}

/// Weights as signed 8-bit integers without zero points, -127 to 127.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SymmetricWeights {
    /// The integers, in the order of the weights.
    pub(super) integers: Vec<i8>,
    /// A scale for each channel, or one.
    pub(super) scales: Vec<f32>,
}

/// Quantises `values` of `shape` with a scale for each index along `axis`, or a single one.
///
/// `biases` are those of the same channels, as parts of the input's scale: where a channel's bias would not fit into 32
/// bits, its scale is larger than its weights ask for.
pub(super) fn symmetric(
    values: &[f32],
    shape: &[u64],
    axis: Option<usize>,
    biases: Option<&[f64]>,
) -> SymmetricWeights {
    let channels = axis.map_or(1, |axis| shape[axis] as usize);
    let inner = axis.map_or(values.len(), |axis| {
        shape[axis + 1..].iter().product::<u64>() as usize
    });
    let channel = |index: usize| match axis {
        Some(_) => index / inner % channels,
        None => 0,
    };
    let mut largest = vec![0.0_f32; channels];
    for (index, value) in values.iter().enumerate() {
        let most = &mut largest[channel(index)];
        *most = most.max(value.abs());
    }
    let mut scales: Vec<f32> = largest
        .iter()
        .map(|&most| most / f32::from(i8::MAX))
        .map(|scale| if scale.is_normal() { scale } else { 1.0 })
        .collect();
    for (index, bias) in biases.into_iter().flatten().enumerate() {
        // A little less than 32 bits hold: the scale is rounded, too.
        let least = (bias.abs() / (f64::from(i32::MAX) * 0.999)) as f32;
        let scale = &mut scales[index % channels];
        *scale = scale.max(least);
    }
    let limit = f32::from(i8::MAX);
    let integers = values
        .iter()
        .enumerate()
        .map(|(index, value)| {
            (value / scales[channel(index)])
                .round_ties_even()
                .clamp(-limit, limit) as i8
        })
        .collect();
    SymmetricWeights { integers, scales }
}

/// Biases as multiples of input scale x weight scale; `weights` has one scale for each of them, or one for all.
pub(super) fn biases(values: &[f32], input: f32, weights: &[f32]) -> (Vec<i32>, Vec<f32>) {
    let scales: Vec<f32> = weights.iter().map(|weight| input * weight).collect();
    let integers = values.iter().enumerate().map(|(index, value)| {
        let scale = scales[index % scales.len()];
        (f64::from(*value) / f64::from(scale)).round_ties_even() as i32
    });
    (integers.collect(), scales)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_held_from_end_to_end_and_zero_exactly() {
        for (low, high) in [
            (-1.0, 3.0),
            (0.0, 255.0),
            (-7.5, 0.0),
            (2.0, 6.0),
            (-6.0, -2.0),
        ] {
            let range = ValueRange::new(low, high);
            let scale = AffineScale::holding(range);
            let back = |value: f32| {
                (f32::from(scale.quantise(value)) - f32::from(scale.zero_point)) * scale.scale
            };
            assert_eq!(back(0.0), 0.0);
            for value in [range.low(), range.high()] {
                assert!(
                    (back(value) - value).abs() <= scale.scale,
                    "{low} to {high}"
                );
            }
            // What is beyond is held at the end.
            assert_eq!(scale.quantise(1e9), u8::MAX);
            assert_eq!(scale.quantise(-1e9), 0);
        }
        let pixels = AffineScale::holding(ValueRange::new(0.0, 255.0));
        assert_eq!((pixels.scale, pixels.zero_point), (1.0, 0));
        let nothing = AffineScale::holding(ValueRange::new(0.0, 0.0));
        assert_eq!((nothing.scale, nothing.zero_point), (1.0, 0));
    }

    #[test]
    fn each_channel_has_its_own_scale() {
        let values = [1.0, -2.0, 100.0, 50.0, 0.5, 2.0, -25.0, 75.0];
        let by_rows = symmetric(&values, &[2, 2, 2], Some(1), None);
        assert_eq!(by_rows.scales, [2.0 / 127.0, 100.0 / 127.0]);
        assert_eq!(by_rows.integers, [64, -127, 127, 64, 32, 127, -32, 95]);
        let one = symmetric(&values, &[2, 2, 2], None, None);
        assert_eq!(one.scales, [100.0 / 127.0]);
        assert_eq!(one.integers[..3], [1, -3, 127]);
        let zero = symmetric(&[0.0; 4], &[4], Some(0), None);
        assert_eq!((zero.scales, zero.integers), (vec![1.0; 4], vec![0; 4]));
    }

    #[test]
    fn a_bias_beyond_32_bits_widens_its_channels_scale_alone() {
        let weights = symmetric(&[1e-9, 1.0], &[2], Some(0), Some(&[1e3, 1e3]));
        assert_eq!(weights.scales[1], 1.0 / 127.0);
        let (integers, scales) = biases(&[1e3, 1e3], 1.0, &weights.scales);
        for (integer, scale) in integers.iter().zip(scales) {
            assert!((f64::from(*integer) * f64::from(scale) - 1e3).abs() < 1e-2);
        }
    }
}

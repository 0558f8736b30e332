//! Reduced arithmetic gives the bits that it should, in one piece and layer by layer.

use std::sync::Arc;

use half::f16;
use layerlab_model::Network;
use layerlab_profiles::Segment;
use proptest::prelude::*;
use tract_onnx::prelude::{TValue, Tensor as TractTensor};
use tract_onnx::tract_core::axes::AxesMapping;
use tract_onnx::tract_core::internal::tvec;
use tract_onnx::tract_core::ops::cnn::{Conv, KernelFormat, PaddingSpec, PoolSpec};
use tract_onnx::tract_core::ops::nn::DataFormat;

use super::plans::{reduced, run_state};
use super::*;
use crate::device::simulated::{Accumulate, Arithmetic};
use crate::runtime::tract::{from_tract, optimized, to_tract};
use crate::runtime::{Tensor, timing_input};

const F16: Arithmetic = Arithmetic::F16 {
    accumulate: Accumulate::F32,
};
const F16_SUMS: Arithmetic = Arithmetic::F16 {
    accumulate: Accumulate::F16,
};
const ALL: [Arithmetic; 4] = [Arithmetic::F32, F16, F16_SUMS, Arithmetic::I8];

fn network(name: &str) -> Arc<Network> {
    let path = format!("{}/../tests/models/{name}.onnx", env!("CARGO_MANIFEST_DIR"));
    Arc::new(Network::open(path.as_ref(), &Default::default()).expect("a model"))
}

fn floats(tensor: &TractTensor) -> Vec<f32> {
    tensor
        .try_as_plain_ram()
        .expect("plain")
        .as_slice::<f32>()
        .expect("f32")
        .to_vec()
}

fn image(network: &Network, scale: f32) -> Vec<Tensor> {
    scaled(timing_input(network.inputs(), 1), scale)
}

fn scaled(tensors: Vec<Tensor>, scale: f32) -> Vec<Tensor> {
    let scaled = |tensor: &Tensor| {
        let mut values = tensor.to_floats();
        values.iter_mut().for_each(|value| *value *= scale);
        Tensor::from_floats(tensor.element(), tensor.shape().to_vec(), &values)
            .expect("as many values")
    };
    tensors.iter().map(scaled).collect()
}

/// The whole network as one plan, instead of layer by layer.
fn in_one_piece(network: &Network, arithmetic: Arithmetic, inputs: &[Tensor]) -> Vec<Tensor> {
    let whole = Segment::whole(network.layers().len() as u32);
    let cut = network.segment(whole).expect("the whole");
    let mut state = match arithmetic {
        Arithmetic::F32 => optimized(&cut),
        Arithmetic::F16 { .. } => reduced(&cut, rounding::round_weights),
        Arithmetic::I8 => reduced(&cut, quantised::round_weights),
    }
    .expect("a plan");
    let inputs = to_tract(inputs).expect("inputs");
    run_state(&mut state, arithmetic, inputs)
        .and_then(from_tract)
        .expect("outputs")
}

#[test]
fn layer_by_layer_gives_the_bits_of_the_network_in_one_piece() {
    for name in ["alexnet", "inception", "yolo-small", "resnet50", "vgg16"] {
        let network = network(name);
        let layers = network.layers().len() as u32;
        let input = image(&network, 255.0);
        for arithmetic in ALL {
            let plans = LayerPlans::new(Arc::clone(&network), arithmetic);
            let whole = plans.run(Segment::whole(layers), &input).expect("outputs");
            let one_piece = in_one_piece(&network, arithmetic, &input);
            assert!(whole == one_piece, "{name} {arithmetic:?}");
            let middle = layers / 2;
            let left = Segment::new(1, middle).expect("a segment");
            let right = Segment::new(middle + 1, layers).expect("a segment");
            let cut = plans.run(left, &input).expect("the left half");
            let chained = plans.run(right, &cut).expect("the right half");
            assert!(whole == chained, "{name} {arithmetic:?}");
        }
    }
}

#[test]
fn reduced_numerics_give_other_answers_but_not_very_other_ones() {
    for name in ["yolo-small", "vgg16"] {
        let network = network(name);
        let whole = Segment::whole(network.layers().len() as u32);
        let input = image(&network, 255.0);
        let [exact, f16, f16_sums, i8] = ALL.map(|arithmetic| {
            let plans = LayerPlans::new(Arc::clone(&network), arithmetic);
            plans.run(whole, &input).expect("outputs")[0].to_floats()
        });
        let largest = exact
            .iter()
            .fold(0.0f32, |largest, value| largest.max(value.abs()));
        let error = |values: &[f32]| {
            let errors = values
                .iter()
                .zip(&exact)
                .map(|(value, exact)| (value - exact).abs());
            errors.fold(0.0, f32::max) / largest
        };
        let errors = [error(&f16), error(&f16_sums), error(&i8)];
        assert!(errors[0] > 0.0 && errors[0] < 0.02, "{name} {errors:?}");
        assert!(
            errors[1] > errors[0] && errors[1] < 0.1,
            "{name} {errors:?}"
        );
        assert!(
            errors[2] > errors[0] && errors[2] < 0.7,
            "{name} {errors:?}"
        );
    }
}

// What ruins VocNet on 16-bit NPUs: LRN squares its input, and 256 squared is beyond 16 bits.
#[test]
fn the_squares_inside_lrn_overflow_in_16_bits() {
    let network = network("alexnet");
    let input = image(&network, 255.0 * 16.0);
    let first_layer = |arithmetic| {
        let plans = LayerPlans::new(Arc::clone(&network), arithmetic);
        plans.run(Segment::single(1), &input).expect("outputs")[0].to_floats()
    };
    let (exact, half) = (first_layer(Arithmetic::F32), first_layer(F16));
    assert!(half.iter().all(|value| value.is_finite()));
    // A sum of squares that is infinite divides its pixel to zero, although the pixel itself fits.
    let lost = exact
        .iter()
        .zip(&half)
        .filter(|(exact, half)| **exact > 100.0 && **half == 0.0);
    assert!(lost.count() > 10, "none of {} values was lost", exact.len());
}

#[test]
fn overflow_gives_infinities_and_nans_instead_of_errors() {
    let network = network("yolo-small");
    let layers = network.layers().len() as u32;
    // Each value fits in 16 bits, some sums of a convolution that keeps their size do not.
    let first = 19;
    let input = scaled(timing_input(network.frontier(first - 1), 1), 6e4);
    for arithmetic in [F16, F16_SUMS] {
        let plans = LayerPlans::new(Arc::clone(&network), arithmetic);
        let run = |last| {
            let segment = Segment::new(first, last).expect("a segment");
            plans.run(segment, &input).expect("outputs")[0].to_floats()
        };
        assert!(run(first).contains(&f32::INFINITY), "{arithmetic:?}");
        assert!(
            run(layers).iter().any(|value| value.is_nan()),
            "{arithmetic:?}"
        );
    }
}

/// The nearest 16-bit float of a 64-bit one, ties to even, by arithmetic alone.
fn round_16(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Eleven bits from the leading one on, but never finer than the smallest subnormal, 2^-24.
    let exponent = value.abs().log2().floor().max(-14.0);
    let unit = (exponent - 10.0).exp2();
    let rounded = (value / unit).round_ties_even() * unit;
    if rounded.abs() > 65_504.0 {
        f64::INFINITY.copysign(value)
    } else {
        rounded
    }
}

proptest! {
    #[test]
    fn rounding_is_that_of_ieee_binary16(values in prop::collection::vec(-7e4f32..7e4, 1..600)) {
        let mut rounded = values.clone();
        rounding::round(&mut rounded);
        for (value, rounded) in values.iter().zip(&rounded) {
            prop_assert_eq!(f64::from(*rounded), round_16(f64::from(*value)));
            prop_assert_eq!(*rounded, f16::from_f32(*value).to_f32());
        }
    }

    #[test]
    fn rounding_small_numbers_underflows_gradually(values in prop::collection::vec(-1e-4f32..1e-4, 1..9)) {
        let mut rounded = values.clone();
        rounding::round(&mut rounded);
        for (value, rounded) in values.iter().zip(&rounded) {
            prop_assert_eq!(f64::from(*rounded), round_16(f64::from(*value)));
        }
    }
}

fn halves(range: std::ops::Range<f32>, count: usize) -> impl Strategy<Value = Vec<f32>> {
    let half = range.prop_map(|value| f16::from_f32(value).to_f32());
    prop::collection::vec(half, count)
}

fn tensor(shape: &[usize], values: &[f32]) -> TValue {
    let count = shape.iter().product::<usize>();
    TractTensor::from_shape(shape, &values[..count])
        .expect("enough values")
        .into()
}

#[derive(Clone, Debug)]
struct ConvCase {
    side: [usize; 2],
    kernel: usize,
    stride: usize,
    pad: usize,
    dilation: usize,
    groups: usize,
    values: Vec<f32>,
}

prop_compose! {
    fn conv_case()(
        side in prop::array::uniform2(3usize..7),
        kernel in 1usize..4,
        stride in 1usize..3,
        pad in 0usize..2,
        dilation in 1usize..3,
        groups in 1usize..3,
        scale in prop::sample::select(vec![1e-3f32, 1.0, 30.0]),
        values in halves(-1.0..1.0, 2 * 4 * 36),
    ) -> ConvCase {
        let dilation = if kernel == 3 { 1 } else { dilation };
        let values = values.iter().map(|value| f16::from_f32(value * scale).to_f32()).collect();
        ConvCase { side, kernel, stride, pad, dilation, groups, values }
    }
}

const CHANNELS: usize = 4;
const OUTPUTS: usize = 6;

impl ConvCase {
    fn conv(&self) -> Conv {
        let pair = |value| tvec!(value, value);
        let pool_spec = PoolSpec::new(
            DataFormat::NCHW,
            pair(self.kernel),
            PaddingSpec::Explicit(pair(self.pad), pair(self.pad)),
            Some(pair(self.dilation)),
            Some(pair(self.stride)),
            CHANNELS,
            OUTPUTS,
        );
        Conv::new(pool_spec, KernelFormat::OIHW, self.groups, None)
    }

    fn inputs(&self) -> [TValue; 3] {
        let weights: Vec<f32> = self.values.iter().rev().copied().collect();
        [
            tensor(&[2, CHANNELS, self.side[0], self.side[1]], &self.values),
            tensor(
                &[OUTPUTS, CHANNELS / self.groups, self.kernel, self.kernel],
                &weights,
            ),
            tensor(&[OUTPUTS], &weights[7..]),
        ]
    }

    /// Straight from the definition, in 64 bits, `round` after every product and sum.
    fn reference(&self, round: fn(f64) -> f64) -> Vec<f64> {
        let [input, kernel, bias] = self.inputs().map(|value| floats(&value));
        let [height, width] = self.side;
        let reach = self.dilation * (self.kernel - 1) + 1;
        let out = |side: usize| (side + 2 * self.pad - reach) / self.stride + 1;
        let group_in = CHANNELS / self.groups;
        let mut results = Vec::new();
        for image in 0..2 {
            for (output, bias) in bias.iter().enumerate() {
                for (y, x) in (0..out(height)).flat_map(|y| (0..out(width)).map(move |x| (y, x))) {
                    let mut sum = 0.0;
                    for channel in 0..group_in {
                        let from = image * CHANNELS
                            + output / (OUTPUTS / self.groups) * group_in
                            + channel;
                        for (tap_y, tap_x) in
                            (0..self.kernel).flat_map(|y| (0..self.kernel).map(move |x| (y, x)))
                        {
                            let at =
                                |out: usize, tap: usize| out * self.stride + tap * self.dilation;
                            let (at_y, at_x) = (at(y, tap_y), at(x, tap_x));
                            let inside =
                                |at: usize, side: usize| at >= self.pad && at < side + self.pad;
                            if !inside(at_y, height) || !inside(at_x, width) {
                                continue;
                            }
                            let (at_y, at_x) = (at_y - self.pad, at_x - self.pad);
                            let value = input[(from * height + at_y) * width + at_x];
                            let tap = (output * group_in + channel) * self.kernel + tap_y;
                            let weight = kernel[tap * self.kernel + tap_x];
                            sum = round(sum + round(f64::from(value) * f64::from(weight)));
                        }
                    }
                    results.push(round(sum + f64::from(*bias)));
                }
            }
        }
        results
    }
}

proptest! {
    #[test]
    fn a_convolution_with_16_bit_sums_rounds_every_product_and_sum(case in conv_case()) {
        let reach = case.dilation * (case.kernel - 1) + 1;
        prop_assume!(case.side.iter().all(|side| side + 2 * case.pad >= reach));
        let result = accumulate::convolution(&case.conv(), &case.inputs()).expect("a result");
        let mut values = floats(&result[0]);
        rounding::round(&mut values);
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        prop_assert_eq!(&values, &case.reference(round_16));
    }

    #[test]
    fn a_convolution_of_small_integers_is_exact_in_16_bits(case in conv_case()) {
        let reach = case.dilation * (case.kernel - 1) + 1;
        prop_assume!(case.side.iter().all(|side| side + 2 * case.pad >= reach));
        let integers = case.values.iter().map(|value| (value * 4.0).round().clamp(-4.0, 4.0));
        let case = ConvCase { values: integers.collect(), ..case };
        let result = accumulate::convolution(&case.conv(), &case.inputs()).expect("a result");
        let values: Vec<f64> = floats(&result[0]).into_iter().map(f64::from).collect();
        prop_assert_eq!(values, case.reference(|value| value));
    }

    #[test]
    fn a_matrix_product_with_16_bit_sums_rounds_every_product_and_sum(
        (rows, shared, columns) in (1usize..4, 1usize..40, 1usize..5),
        right_is_transposed in any::<bool>(),
        left in halves(-20.0..20.0, 160),
        right in halves(-20.0..20.0, 200),
    ) {
        let axes = AxesMapping::for_numpy_matmul(2, false, right_is_transposed, false).expect("axes");
        let right_shape = if right_is_transposed { [columns, shared] } else { [shared, columns] };
        let (a, b) = (tensor(&[rows, shared], &left), tensor(&right_shape, &right));
        let result = accumulate::contraction(&axes, &a, &b).expect("a result");
        prop_assert_eq!(result[0].shape(), [rows, columns]);
        let mut expected = Vec::new();
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let terms = (0..shared).map(|k| {
                let b = if right_is_transposed { column * shared + k } else { k * columns + column };
                round_16(f64::from(left[row * shared + k]) * f64::from(right[b]))
            });
            expected.push(terms.fold(0.0, |sum, term| round_16(sum + term)));
        }
        let values: Vec<f64> = floats(&result[0]).into_iter().map(f64::from).collect();
        prop_assert_eq!(values, expected);
    }
}

#[test]
fn a_16_bit_sum_stops_growing_at_2048() {
    let ones = vec![1.0f32; 5_000];
    let axes = AxesMapping::for_numpy_matmul(2, false, false, false).expect("axes");
    let (a, b) = (tensor(&[1, 5_000], &ones), tensor(&[5_000, 1], &ones));
    let result = accumulate::contraction(&axes, &a, &b).expect("a result");
    assert_eq!(floats(&result[0]), [2_048.0]);
}

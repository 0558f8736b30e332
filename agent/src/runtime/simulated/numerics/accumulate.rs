//! Convolutions and matrix products whose sums are kept in 16 bits: a multiplier and an adder that both
//! round, fed in the order in which the weights lie in memory. Large sums stop growing when what is
//! added is less than half their last bit, and overflow to infinity.

use anyhow::{bail, ensure};
use tract_onnx::prelude::{TValue, TVec, Tensor, TractResult, tvec};

use tract_onnx::tract_core::axes::{AxesMapping, Axis};
use tract_onnx::tract_core::internal::InOut;
use tract_onnx::tract_core::ops::cnn::{Conv, KernelFormat};
use tract_onnx::tract_core::ops::nn::DataFormat;

use super::rounding::round;

/// A convolution of rounded tensors: input, weights, and a bias that is added last.
pub(super) fn convolution(conv: &Conv, inputs: &[TValue]) -> TractResult<TVec<TValue>> {
    let spec = &conv.pool_spec;
    ensure!(
        spec.data_format == DataFormat::NCHW && conv.kernel_fmt == KernelFormat::OIHW,
        "16-bit sums know only the layouts of ONNX"
    );
    let [input, kernel, bias] = inputs else {
        bail!("a convolution has three inputs, this one {}", inputs.len());
    };
    let (batch, channels, plane) = (input.shape()[0], input.shape()[1], &input.shape()[2..]);
    let geometry = spec.computed_padding(plane);
    let out_plane: Vec<usize> = geometry.iter().map(|axis| axis.convoluted).collect();
    let pad_before: Vec<usize> = geometry.iter().map(|axis| axis.pad_before).collect();
    let taps: Vec<Vec<(usize, usize)>> = positions(&spec.kernel_shape)
        .map(|tap| {
            let offset = |axis: usize| tap[axis] * spec.dilation(axis);
            let strides = spec.strides();
            reads(plane, &out_plane, |axis, out| {
                (out * strides[axis] + offset(axis)).checked_sub(pad_before[axis])
            })
        })
        .collect();

    let (values, weights) = (floats(input)?, floats(kernel)?);
    let biases = floats(bias)?;
    let (group_in, outputs) = (channels / conv.group, conv.output_channels());
    let (plane_len, out_len) = (plane.iter().product::<usize>(), out_plane.iter().product());
    let group_out = outputs / conv.group;
    let mut result = Vec::with_capacity(batch * outputs * out_len);
    // What one tap of the kernel sees of a channel, where it lies beyond the edge a zero, which changes no
    // sum. It is gathered once for all outputs of the group.
    let mut seen = vec![0.0f32; out_len];
    let mut products = vec![0.0f32; out_len];
    for (image, group) in
        (0..batch).flat_map(|image| (0..conv.group).map(move |group| (image, group)))
    {
        let mut sums = vec![0.0f32; group_out * out_len];
        for channel in 0..group_in {
            let plane = &values[(image * channels + group * group_in + channel) * plane_len..];
            for (tap, reads) in taps.iter().enumerate() {
                seen.fill(0.0);
                for &(to, from) in reads {
                    seen[to] = plane[from];
                }
                for (output, sums) in (group * group_out..).zip(sums.chunks_exact_mut(out_len)) {
                    let weight = weights[(output * group_in + channel) * taps.len() + tap];
                    for (product, seen) in products.iter_mut().zip(&seen) {
                        *product = weight * seen;
                    }
                    if !weight.is_finite() {
                        // Times a zero beyond the edge it would be NaN, and nothing is multiplied there.
                        products.fill(0.0);
                        for &(to, from) in reads {
                            products[to] = weight * plane[from];
                        }
                    }
                    round(&mut products);
                    for (sum, product) in sums.iter_mut().zip(&products) {
                        *sum += product;
                    }
                    round(sums);
                }
            }
        }
        for (output, sums) in (group * group_out..).zip(sums.chunks_exact_mut(out_len)) {
            let bias = biases.get(output).or(biases.first());
            let bias = bias.copied().unwrap_or(0.0);
            sums.iter_mut().for_each(|sum| *sum += bias);
        }
        result.append(&mut sums);
    }
    let shape = [&[batch, outputs], out_plane.as_slice()].concat();
    Ok(tvec!(Tensor::from_shape(&shape, &result)?.into()))
}

/// Which output position of a plane reads which input position; padding is not read.
fn reads(
    plane: &[usize],
    out_plane: &[usize],
    source: impl Fn(usize, usize) -> Option<usize>,
) -> Vec<(usize, usize)> {
    positions(out_plane)
        .enumerate()
        .filter_map(|(to, out)| {
            let from = out.iter().enumerate().try_fold(0, |from, (axis, &out)| {
                source(axis, out)
                    .filter(|&at| at < plane[axis])
                    .map(|at| from * plane[axis] + at)
            })?;
            Some((to, from))
        })
        .collect()
}

/// All positions of an array of this shape, the last axis fastest.
fn positions(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let shape = shape.to_vec();
    (0..shape.iter().product()).map(move |index| {
        let mut rest: usize = index;
        let mut position = vec![0; shape.len()];
        for (axis, &length) in shape.iter().enumerate().rev() {
            position[axis] = rest % length;
            rest /= length;
        }
        position
    })
}

/// An axis of a contraction: its length and the distance of neighbours in each tensor.
#[derive(Clone, Copy, Debug)]
struct Steps {
    length: usize,
    left: usize,
    right: usize,
    out: usize,
}

/// A generalised matrix product of two rounded tensors (the arithmetic of einsum).
pub(super) fn contraction(
    axes: &AxesMapping,
    left: &Tensor,
    right: &Tensor,
) -> TractResult<TVec<TValue>> {
    let mut shape = vec![1; axes.rank(InOut::Out(0))];
    for axis in axes.iter_all_axes() {
        for &position in &axis.outputs[0] {
            shape[position] = length(axis, left, right);
        }
    }
    let out_strides = strides(&shape);
    let mut kept: Vec<Steps> = Vec::new();
    let mut summed: Vec<Steps> = Vec::new();
    for axis in axes.iter_all_axes() {
        let steps = Steps {
            length: length(axis, left, right),
            left: stride(&axis.inputs[0], left.shape()),
            right: stride(&axis.inputs[1], right.shape()),
            out: axis.outputs[0]
                .iter()
                .map(|&position| out_strides[position])
                .sum(),
        };
        if axis.outputs[0].is_empty() {
            summed.push(steps)
        } else {
            kept.push(steps)
        }
    }
    // Along the longest axis of the result many sums grow side by side; each still grows in order.
    let longest = (0..kept.len()).max_by_key(|&axis| kept[axis].length);
    let lanes = match longest {
        Some(axis) => kept.swap_remove(axis),
        None => Steps {
            length: 1,
            left: 0,
            right: 0,
            out: 0,
        },
    };
    let terms = offsets(&summed);
    let (left, right) = (floats(left)?, floats(right)?);
    let mut result = vec![0.0f32; shape.iter().product()];
    let (mut sums, mut products) = (vec![0.0f32; lanes.length], vec![0.0f32; lanes.length]);
    for start in offsets(&kept) {
        sums.fill(0.0);
        for term in &terms {
            let (a, b) = (start.left + term.left, start.right + term.right);
            for (lane, product) in products.iter_mut().enumerate() {
                *product = left[a + lane * lanes.left] * right[b + lane * lanes.right];
            }
            round(&mut products);
            sums.iter_mut()
                .zip(&products)
                .for_each(|(sum, product)| *sum += product);
            round(&mut sums);
        }
        for (lane, sum) in sums.iter().enumerate() {
            result[start.out + lane * lanes.out] = *sum;
        }
    }
    Ok(tvec!(Tensor::from_shape(&shape, &result)?.into()))
}

/// Where each combination of positions on some axes lies in each tensor, the last axis fastest.
fn offsets(axes: &[Steps]) -> Vec<Steps> {
    let lengths: Vec<usize> = axes.iter().map(|axis| axis.length).collect();
    positions(&lengths)
        .map(|position| {
            let offset = |stride: fn(&Steps) -> usize| {
                axes.iter()
                    .zip(&position)
                    .map(|(axis, at)| stride(axis) * at)
                    .sum()
            };
            let (left, right) = (offset(|axis| axis.left), offset(|axis| axis.right));
            Steps {
                length: 1,
                left,
                right,
                out: offset(|axis| axis.out),
            }
        })
        .collect()
}

fn length(axis: &Axis, left: &Tensor, right: &Tensor) -> usize {
    let of = |positions: &[usize], shape: &[usize]| positions.iter().map(|&p| shape[p]).max();
    let (left, right) = (
        of(&axis.inputs[0], left.shape()),
        of(&axis.inputs[1], right.shape()),
    );
    left.max(right).unwrap_or(1)
}

/// The distance of neighbours along an axis; 0 where the tensor has one value for all of them.
fn stride(positions: &[usize], shape: &[usize]) -> usize {
    let strides = strides(shape);
    positions
        .iter()
        .filter(|&&p| shape[p] > 1)
        .map(|&p| strides[p])
        .sum()
}

fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

fn floats(tensor: &Tensor) -> TractResult<&[f32]> {
    tensor.try_as_plain_ram()?.as_slice()
}

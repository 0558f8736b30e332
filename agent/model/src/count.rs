//! How many additions and multiplications an operator takes, from its shapes.
//!
//! `y` is the number of elements of the first output, `x` of the first input, `k` of products or elements
//! that go into one output element, `g` of groups that are normalised or reduced on their own. Rules that
//! hold for all: a subtraction or a comparison counts as an addition; a division counts as a
//! multiplication, and so does one value of a transcendental function (exp, log, tanh, erf, sin, pow, a
//! root …); moving, rounding, casting, selecting, logic, and changing or dropping a sign count nothing; the
//! border that padding adds counts like the rest; integer arithmetic counts like that of floats.
//!
//! | operators | additions | multiplications |
//! |---|---|---|
//! | Conv, ConvInteger, QLinearConv (`k` = input channels of a group x kernel) | y(k-1), + y with a bias | yk |
//! | ConvTranspose (`k` = output channels of a group x kernel) | xk - y, + y with a bias | xk |
//! | Gemm (`k` = shared axis) | y(k-1), + y with C | yk, + y unless alpha = 1, + y unless beta = 1 |
//! | MatMul, MatMulInteger, QLinearMatMul | y(k-1) | yk |
//! | Einsum of m inputs (`p` = product of the lengths of all indices) | p - y | p(m-1) |
//! | Attention (`s` scores in `g` rows, of `d` products each; mask and softcap if there) | s(d-1), + s with a mask, + s if causal, + 3s - 2g, + y(s/g - 1) | sd + s, + 3s with a softcap, + 2s, + y s/g |
//! | MaxPool, GlobalMaxPool (`k` = window) | y(k-1) | 0 |
//! | AveragePool, GlobalAveragePool | y(k-1) | y |
//! | LpPool, GlobalLpPool (powers and a root) | y(k-1) | yk + y |
//! | LRN (squares, window sum of `size`, scale, bias, power, division) | y size | 4y |
//! | BatchNormalization (folded into a scale and a shift) | y | y |
//! | InstanceNormalization, LayerNormalization, GroupNormalization | 4x - g | 3x + 3g |
//! | MeanVarianceNormalization | 3x - g | 2x + 3g |
//! | LpNormalization | x - g | 2x + g |
//! | Relu, ThresholdedRelu | y | 0 |
//! | LeakyRelu, PRelu | y | y |
//! | Clip | y for each bound | 0 |
//! | Elu, Celu (comparison, exp, difference, scale) | 2y | 2y |
//! | Selu | 2y | 3y |
//! | Sigmoid | y | 2y |
//! | Swish | y | 3y |
//! | HardSigmoid (scale, shift, two bounds) | 3y | y |
//! | HardSwish | 3y | 2y |
//! | Softplus | y | 2y |
//! | Softsign | y | y |
//! | Gelu | y | 4y |
//! | Mish | y | 4y |
//! | Softmax (maximum, difference, exp, sum, division) | 3y - 2g | 2y |
//! | LogSoftmax | 4y - 2g | y + g |
//! | Hardmax | y - g | 0 |
//! | Add, Sub, Equal, Less, Greater, LessOrEqual, GreaterOrEqual | y | 0 |
//! | Mul, Div, Mod, Pow, Reciprocal, Sqrt, Rsqrt, Exp, Log, Erf, Tanh and other functions of one value | 0 | y |
//! | Sum, Max, Min of m inputs | y(m-1) | 0 |
//! | Mean of m inputs | y(m-1) | y |
//! | ReduceSum, ReduceL1, ReduceMax, ReduceMin, ArgMax, ArgMin | x - y | 0 |
//! | ReduceMean, ReduceLogSum | x - y | y |
//! | ReduceProd | 0 | x - y |
//! | ReduceSumSquare | x - y | x |
//! | ReduceL2 | x - y | x + y |
//! | ReduceLogSumExp | x - y | x + y |
//! | CumSum | y | 0 |
//! | Resize, linear in d axes | 2y(2^d - 1) | y(2^d - 1) |
//! | Resize, cubic in d axes | y(4^d - 1) | 4^d y |
//! | QuantizeLinear (division, zero point, two bounds) | 3y | y |
//! | DequantizeLinear | y | y |
//! | RNN, GRU, LSTM with 1, 3, 4 gates (the matrix products only; `h` hidden, `i` input values) | gates h (i+h) for each step, batch and direction | the same |
//! | Concat, Reshape, Transpose, Slice, Pad, Gather, Dropout, Cast and all others | 0 | 0 |

use tract_onnx::pb::{AttributeProto, NodeProto};

use crate::contraction;
use crate::tensor::TensorSpec;

/// Additions and multiplications of one inference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) additions: u64,
    pub(crate) multiplications: u64,
}

/// A node with the shapes it works on.
struct Shapes<'a> {
    node: &'a NodeProto,
    inputs: Vec<Option<&'a TensorSpec>>,
    output: &'a TensorSpec,
}

/// Counts the operations of `node` under the operator set `opset`; `spec` finds tensors by name.
pub(crate) fn count<'a>(
    node: &'a NodeProto,
    opset: i64,
    spec: impl Fn(&str) -> Option<&'a TensorSpec>,
) -> Count {
    let Some(output) = node.output.first().and_then(|name| spec(name)) else {
        return Count::default();
    };
    let inputs = node.input.iter().map(|name| spec(name)).collect();
    Shapes {
        node,
        inputs,
        output,
    }
    .count(opset)
}

impl Shapes<'_> {
    fn count(&self, opset: i64) -> Count {
        let (x, y) = (self.elements(0), self.output.elements());
        match self.node.op_type.as_str() {
            "Conv" | "ConvInteger" => self.convolution(1, self.bias(2)),
            "QLinearConv" => self.convolution(3, self.bias(8)),
            "ConvTranspose" => {
                let products = times(x, self.tail(1, 1));
                let bias = if self.bias(2) { y } else { 0 };
                of(products.saturating_sub(y).saturating_add(bias), products)
            }
            "Gemm" => {
                let shared = self.length(0, if self.int("transA", 0) != 0 { 0 } else { 1 });
                let c = self.bias(2);
                let scaled = u64::from(self.float("alpha", 1.0) != 1.0)
                    + u64::from(c && self.float("beta", 1.0) != 1.0);
                let Count {
                    additions,
                    multiplications,
                } = products(y, shared);
                of(
                    additions.saturating_add(if c { y } else { 0 }),
                    multiplications.saturating_add(times(y, scaled)),
                )
            }
            "MatMul" | "MatMulInteger" | "QLinearMatMul" => {
                let shared = self
                    .inputs
                    .first()
                    .copied()
                    .flatten()
                    .and_then(|a| a.shape.last());
                products(y, shared.copied().unwrap_or(0))
            }
            "Einsum" => self.einsum(),
            "Attention" => self.attention(),
            "MaxPool" => of(times(y, self.window().saturating_sub(1)), 0),
            "AveragePool" => of(times(y, self.window().saturating_sub(1)), y),
            "LpPool" => of(
                times(y, self.window().saturating_sub(1)),
                times(y, self.window().saturating_add(1)),
            ),
            "GlobalMaxPool" => of(x.saturating_sub(y), 0),
            "GlobalAveragePool" => of(x.saturating_sub(y), y),
            "GlobalLpPool" => of(x.saturating_sub(y), x.saturating_add(y)),
            "LRN" => of(times(y, self.int("size", 1).unsigned_abs()), times(y, 4)),
            "BatchNormalization" | "LeakyRelu" | "PRelu" | "Softsign" | "DequantizeLinear" => {
                of(y, y)
            }
            "InstanceNormalization" => self.normalisation(self.head(2), true),
            "LayerNormalization" => self.normalisation(self.head(self.axis(-1)), true),
            "GroupNormalization" => {
                let groups = self.int("num_groups", 1).unsigned_abs();
                self.normalisation(times(self.length(0, 0), groups), true)
            }
            "MeanVarianceNormalization" => {
                // Over all axes but the channels, unless told otherwise.
                let axes = self.ints("axes").unwrap_or(&[0, 2, 3]);
                let reduced = axes.iter().map(|&axis| self.length(0, axis));
                let each = reduced.fold(1_u64, u64::saturating_mul).max(1);
                self.normalisation(x / each, false)
            }
            "LpNormalization" => {
                let g = self.groups_along(self.axis(-1));
                of(x.saturating_sub(g), times(x, 2).saturating_add(g))
            }
            "Relu" | "ThresholdedRelu" | "Add" | "Sub" | "Equal" | "Less" | "Greater"
            | "LessOrEqual" | "GreaterOrEqual" | "CumSum" => of(y, 0),
            "Clip" => {
                let attributes = ["min", "max"]
                    .iter()
                    .filter(|name| self.attribute(name).is_some());
                let inputs = self.inputs.iter().skip(1).flatten();
                of(times(y, (attributes.count() + inputs.count()) as u64), 0)
            }
            "Elu" | "Celu" => of(times(y, 2), times(y, 2)),
            "Selu" => of(times(y, 2), times(y, 3)),
            "Sigmoid" | "Softplus" => of(y, times(y, 2)),
            "Swish" => of(y, times(y, 3)),
            "HardSigmoid" => of(times(y, 3), y),
            "HardSwish" => of(times(y, 3), times(y, 2)),
            "Gelu" | "Mish" => of(y, times(y, 4)),
            "Softmax" => {
                let g = self.softmax_groups(opset);
                of(times(y, 3).saturating_sub(times(g, 2)), times(y, 2))
            }
            "LogSoftmax" => {
                let g = self.softmax_groups(opset);
                of(times(y, 4).saturating_sub(times(g, 2)), y.saturating_add(g))
            }
            "Hardmax" => of(y.saturating_sub(self.softmax_groups(opset)), 0),
            "Mul" | "Div" | "Mod" | "Pow" | "Reciprocal" | "Sqrt" | "Rsqrt" | "Exp" | "Log"
            | "Erf" | "Tanh" | "Sin" | "Cos" | "Tan" | "Asin" | "Acos" | "Atan" | "Sinh"
            | "Cosh" | "Asinh" | "Acosh" | "Atanh" => of(0, y),
            "Sum" | "Max" | "Min" => of(times(y, self.others()), 0),
            "Mean" => of(times(y, self.others()), y),
            "ReduceSum" | "ReduceL1" | "ReduceMax" | "ReduceMin" | "ArgMax" | "ArgMin" => {
                of(x.saturating_sub(y), 0)
            }
            "ReduceMean" | "ReduceLogSum" => of(x.saturating_sub(y), y),
            "ReduceProd" => of(0, x.saturating_sub(y)),
            "ReduceSumSquare" => of(x.saturating_sub(y), x),
            "ReduceL2" | "ReduceLogSumExp" => of(x.saturating_sub(y), x.saturating_add(y)),
            "Resize" => self.resize(),
            "QuantizeLinear" => of(times(y, 3), y),
            "RNN" => self.recurrent(1),
            "GRU" => self.recurrent(3),
            "LSTM" => self.recurrent(4),
            _ => Count::default(),
        }
    }

    fn convolution(&self, weights: usize, bias: bool) -> Count {
        let y = self.output.elements();
        let Count {
            additions,
            multiplications,
        } = products(y, self.tail(weights, 1));
        of(
            additions.saturating_add(if bias { y } else { 0 }),
            multiplications,
        )
    }

    fn einsum(&self) -> Count {
        let equation = self
            .attribute("equation")
            .map(|one| String::from_utf8_lossy(&one.s));
        let shapes: Option<Vec<&[u64]>> = self
            .inputs
            .iter()
            .map(|input| input.map(|spec| &spec.shape[..]))
            .collect();
        let terms = equation.zip(shapes);
        let terms = terms.and_then(|(equation, shapes)| contraction::terms(&equation, &shapes));
        let terms = terms.unwrap_or(0);
        of(
            terms.saturating_sub(self.output.elements()),
            times(terms, self.others()),
        )
    }

    /// Scores, their softmax, and the sums of values that these weigh. Inputs have four axes, the second for heads, or three
    /// and the number of heads as an attribute.
    fn attention(&self) -> Count {
        let has_heads = self.inputs.first().copied().flatten();
        let has_heads = has_heads.is_some_and(|query| query.shape.len() == 4);
        let heads = match has_heads {
            true => self.length(0, 1),
            false => self.int("q_num_heads", 1).unsigned_abs(),
        };
        let places = self.length(0, -2);
        let width = self.length(0, -1) / if has_heads { 1 } else { heads.max(1) };
        let past = if self.bias(4) { self.length(4, 2) } else { 0 };
        let keys = self.length(1, -2).saturating_add(past);
        let rows = times(times(self.length(0, 0), heads), places);
        let scores = times(rows, keys);
        let biases = u64::from(self.bias(3)) + u64::from(self.int("is_causal", 0) != 0);
        let softcap = if self.float("softcap", 0.0) == 0.0 {
            0
        } else {
            3
        };
        let parts = [
            products(scores, width),
            of(times(scores, biases), times(scores, 1 + softcap)),
            of(
                times(scores, 3).saturating_sub(times(rows, 2)),
                times(scores, 2),
            ),
            products(self.output.elements(), keys),
        ];
        parts.into_iter().fold(Count::default(), |sum, part| Count {
            additions: sum.additions.saturating_add(part.additions),
            multiplications: sum.multiplications.saturating_add(part.multiplications),
        })
    }

    fn normalisation(&self, groups: u64, affine: bool) -> Count {
        let x = self.elements(0);
        let (additions, multiplications) = if affine { (4, 3) } else { (3, 2) };
        of(
            times(x, additions).saturating_sub(groups),
            times(x, multiplications).saturating_add(times(groups, 3)),
        )
    }

    fn resize(&self) -> Count {
        let y = self.output.elements();
        let Some(input) = self.inputs.first().copied().flatten() else {
            return Count::default();
        };
        let resized = input
            .shape
            .iter()
            .zip(&self.output.shape)
            .filter(|(before, after)| before != after);
        // No model resizes more axes than this; beyond it a shift would overflow.
        let axes = resized.count().min(8) as u32;
        match self.attribute("mode").map(|mode| mode.s.as_slice()) {
            Some(b"linear") => {
                let steps = 2_u64.pow(axes) - 1;
                of(times(y, 2 * steps), times(y, steps))
            }
            Some(b"cubic") => of(times(y, 4_u64.pow(axes) - 1), times(y, 4_u64.pow(axes))),
            _ => Count::default(),
        }
    }

    /// X is [steps, batch, input] and W is [directions, gates x hidden, input].
    fn recurrent(&self, gates: u64) -> Count {
        let hidden = self.int("hidden_size", 0).unsigned_abs();
        let values = self.length(0, 2).saturating_add(hidden);
        let each = times(times(gates, hidden), values);
        let steps = times(
            times(self.length(0, 0), self.length(0, 1)),
            self.length(1, 0),
        );
        of(times(steps, each), times(steps, each))
    }

    /// How many elements a pooling window covers.
    fn window(&self) -> u64 {
        let kernel = self.ints("kernel_shape").unwrap_or_default();
        kernel
            .iter()
            .fold(1, |product, &length| times(product, length.unsigned_abs()))
    }

    /// How many groups Softmax normalises: before operator set 13 it flattens all axes from `axis` on.
    fn softmax_groups(&self, opset: i64) -> u64 {
        if opset < 13 {
            self.head(self.axis(1))
        } else {
            self.groups_along(self.axis(-1))
        }
    }

    /// How many lines there are along one axis of the first input.
    fn groups_along(&self, axis: usize) -> u64 {
        self.elements(0) / self.length(0, axis as i64).max(1)
    }

    /// The product of the first input's axes before `axis`.
    fn head(&self, axis: usize) -> u64 {
        let shape = self
            .inputs
            .first()
            .copied()
            .flatten()
            .map_or(&[][..], |input| &input.shape);
        shape
            .iter()
            .take(axis)
            .fold(1, |product, &length| times(product, length))
    }

    /// The product of input `index`'s axes from `axis` on.
    fn tail(&self, index: usize, axis: usize) -> u64 {
        let shape = self
            .inputs
            .get(index)
            .copied()
            .flatten()
            .map_or(&[][..], |input| &input.shape);
        shape
            .iter()
            .skip(axis)
            .fold(1, |product, &length| times(product, length))
    }

    /// The attribute `axis`, counted from the front.
    fn axis(&self, default: i64) -> usize {
        let rank = self
            .inputs
            .first()
            .copied()
            .flatten()
            .map_or(0, |input| input.shape.len());
        from_front(self.int("axis", default), rank)
    }

    fn elements(&self, index: usize) -> u64 {
        self.inputs
            .get(index)
            .copied()
            .flatten()
            .map_or(0, TensorSpec::elements)
    }

    /// The length of one axis of one input; 0 where there is none.
    fn length(&self, index: usize, axis: i64) -> u64 {
        let shape = self
            .inputs
            .get(index)
            .copied()
            .flatten()
            .map_or(&[][..], |input| &input.shape);
        shape
            .get(from_front(axis, shape.len()))
            .copied()
            .unwrap_or(0)
    }

    fn bias(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(Option::is_some)
    }

    /// How many inputs there are beside the first.
    fn others(&self) -> u64 {
        self.inputs.len().saturating_sub(1) as u64
    }

    fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node
            .attribute
            .iter()
            .find(|attribute| attribute.name == name)
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name)
            .map_or(default, |attribute| attribute.i)
    }

    fn float(&self, name: &str, default: f32) -> f32 {
        self.attribute(name)
            .map_or(default, |attribute| attribute.f)
    }

    fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name)
            .map(|attribute| attribute.ints.as_slice())
    }
}

fn of(additions: u64, multiplications: u64) -> Count {
    Count {
        additions,
        multiplications,
    }
}

/// `outputs` sums of `terms` products each.
fn products(outputs: u64, terms: u64) -> Count {
    of(
        times(outputs, terms.saturating_sub(1)),
        times(outputs, terms),
    )
}

fn times(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}

/// An axis that may be counted from the back, counted from the front.
fn from_front(axis: i64, rank: usize) -> usize {
    let axis = if axis < 0 {
        axis.saturating_add(rank as i64)
    } else {
        axis
    };
    usize::try_from(axis).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;

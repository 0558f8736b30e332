//! `QuantizeLinear` as the ONNX standard defines it: divided by the scale, rounded to even, saturated.
//!
//! tract's operator for a tensor of one scale is left out for two reasons:
//!
//! - It multiplies by the scale's inverse. What lies half-way between two integers, such as a mean of two quantised
//!   numbers, may then be rounded to the other one.
//! - tract replaces what lies between a `DequantizeLinear` and it by a table of 256 integers, if that keeps its input's
//!   axes. A Softmax does, and is no function of single numbers: with such a table all classes are as likely, 1.0. And the
//!   table takes the integers that enter for signed ones where those that leave are, and the other way round.

use std::sync::LazyLock;

use tract_linalg::multithread::par_chunks_mut;
use tract_onnx::model::{OnnxOpRegister, ParsingContext};
use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::ops::element_wise::{ElementWiseMiniOp, ElementWiseOp};
use tract_onnx::tract_core::ops::quant::{QuantizeLinearI8, QuantizeLinearU8};
use tract_onnx::tract_hir::infer::InferenceOp;
use tract_onnx::tract_hir::internal::{
    Expansion, InferenceResult, Solver, StaticName, TensorProxy, expand,
};

use crate::pairs::QUANTISE;

/// What reads a node.
type Reader = fn(&ParsingContext, &NodeProto) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)>;

/// tract's own.
static THEIRS: LazyLock<Option<Reader>> =
    LazyLock::new(|| tract_onnx::onnx().op_register.0.get(QUANTISE).copied());

/// Has `operators` read `QuantizeLinear` in the way of this module.
pub(crate) fn register(operators: &mut OnnxOpRegister) {
    operators.insert(QUANTISE, read);
}

fn read(
    context: &ParsingContext,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let theirs = THEIRS.ok_or_else(|| TractError::msg("tract has no QuantizeLinear"))?;
    let (theirs, closures) = theirs(context, node)?;
    let theirs = theirs.as_op().downcast_ref::<Box<dyn Expansion>>().cloned();
    let theirs = theirs.ok_or_else(|| TractError::msg("tract's QuantizeLinear is another"))?;
    Ok((expand(QuantiseLinear(theirs)), closures))
}

/// tract's rules and its operators for a scale of each channel, and ours for one scale.
#[derive(Clone, Debug)]
struct QuantiseLinear(Box<dyn Expansion>);

impl Expansion for QuantiseLinear {
    fn name(&self) -> StaticName {
        self.0.name()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        self.0.rules(solver, inputs, outputs)
    }

    fn wire(
        &self,
        prefix: &str,
        target: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        let outputs = self.0.wire(prefix, target, inputs)?;
        let scale = target.outlet_fact(inputs[1])?.konst.clone();
        let node = target.node_mut(outputs[0].node);
        let single = node.op_as::<ElementWiseOp>().and_then(|op| {
            let u8 =
                op.0.downcast_ref()
                    .map(|op: &QuantizeLinearU8| Zero::U8(op.zero_point));
            u8.or_else(|| {
                op.0.downcast_ref()
                    .map(|op: &QuantizeLinearI8| Zero::I8(op.zero_point))
            })
        });
        if let Some((zero, scale)) = single.zip(scale) {
            let scale = scale.try_as_plain_ram()?.as_slice::<f32>()?[0];
            node.op = Box::new(ElementWiseOp(Box::new(Divide { scale, zero }), None));
        }
        Ok(outputs)
    }
}

/// The zero point, and so the type of the integers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Zero {
    U8(u8),
    I8(i8),
}

/// Quantises a tensor with one scale.
#[derive(Clone, Debug, PartialEq)]
struct Divide {
    scale: f32,
    zero: Zero,
}

// Scales are numbers.
impl Eq for Divide {}

impl Divide {
    fn quantise<T: Datum + Copy>(
        &self,
        floats: &Tensor,
        of: impl Fn(f32) -> T + Sync + Send,
    ) -> TractResult<Tensor> {
        let mut integers = Tensor::zero_dt(T::datum_type(), floats.shape())?;
        let floats = floats.cast_to::<f32>()?;
        let floats = floats.try_as_plain_ram()?;
        let floats = floats.as_slice::<f32>()?;
        let mut plain = integers.try_as_plain_ram_mut()?;
        let slice = plain.as_slice_mut::<T>()?;
        let count = slice.len();
        par_chunks_mut(slice, 1, count, |first, integers| {
            for (integer, float) in integers.iter_mut().zip(&floats[first..]) {
                *integer = of((float / self.scale).round_ties_even());
            }
            Ok(())
        })?;
        Ok(integers)
    }
}

impl ElementWiseMiniOp for Divide {
    fn name(&self) -> String {
        QUANTISE.to_owned()
    }

    fn output_type(&self, _: DatumType) -> Option<DatumType> {
        Some(match self.zero {
            Zero::U8(_) => u8::datum_type(),
            Zero::I8(_) => i8::datum_type(),
        })
    }

    fn eval_out_of_place(&self, floats: &Tensor, _: Option<DatumType>) -> TractResult<Tensor> {
        // Integers of a float saturate, and a sum of floats cannot overflow.
        match self.zero {
            Zero::U8(zero) => self.quantise(floats, |float| (float + f32::from(zero)) as u8),
            Zero::I8(zero) => self.quantise(floats, |float| (float + f32::from(zero)) as i8),
        }
    }
}

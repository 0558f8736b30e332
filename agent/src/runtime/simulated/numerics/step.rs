//! One operator of a plan while it is run, and the rounding of what operators give.

use tract_onnx::prelude::{DatumType, IntoTensor, TValue, TVec, TractResult};
use tract_onnx::tract_core::internal::{EvalContext, OpState, TypedNode};
use tract_onnx::tract_core::plan::eval;

/// One operator of a plan that is being run.
pub(super) struct Step<'a, 'b, 'c> {
    pub(super) ctx: &'a EvalContext<'a>,
    pub(super) op: Option<&'b mut (dyn OpState + 'static)>,
    pub(super) node: &'c TypedNode,
}

impl Step<'_, '_, '_> {
    /// Evaluates the operator as tract does.
    pub(super) fn evaluate(self, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        eval(self.ctx, self.op, self.node, inputs)
    }
}

/// Applies `round` to every tensor of 32-bit floats.
pub(super) fn round_all(
    values: TVec<TValue>,
    round: impl Fn(&mut [f32]),
) -> TractResult<TVec<TValue>> {
    values
        .into_iter()
        .map(|value| {
            if value.datum_type() != DatumType::F32 {
                return Ok(value);
            }
            let mut tensor = value.into_tensor();
            round(tensor.try_as_plain_ram_mut()?.as_slice_mut::<f32>()?);
            Ok(tensor.into())
        })
        .collect()
}

//! What simulated processors compute: every layer of a network with 32-bit, 16-bit or 8-bit numerics.
//!
//! Each layer is one tract model; a segment is its layers run one after the other. So all segments of a
//! network share their weights, and running it whole or in parts gives the same bits by construction.
//!
//! Reduced numerics keep tensors as 32-bit floats that hold only values the processor has: each weight
//! once when a layer is first run, each tensor that enters, and each operator's result are rounded. The
//! models are neither simplified nor optimised, so that inner steps stay operators of their own.
//! Tensors that are not 32-bit floats (shapes, indices) are left alone.

mod accumulate;
mod half_precision;
mod quantised;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex};

use layerlab_model::{Network, SubModel};
use layerlab_profiles::Segment;
use tract_onnx::prelude::{
    DatumType, IntoArcTensor, IntoTensor, TValue, TVec, Tensor, TractResult, TypedModel,
    TypedRunnableModel, TypedSimpleState,
};
use tract_onnx::tract_core::internal::{EvalContext, OpState, TypedFact, TypedNode};
use tract_onnx::tract_core::ops::konst::Const;
use tract_onnx::tract_core::plan::eval;

use super::file::Arithmetic;
use super::lock;
use crate::engine::tract::optimized;

/// The layers of a network, each made ready to run when it first runs.
pub(super) struct LayerPlans {
    network: Arc<Network>,
    arithmetic: Arithmetic,
    layers: Vec<Mutex<Option<TypedSimpleState>>>,
}

impl fmt::Debug for LayerPlans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LayerPlans")
            .field("arithmetic", &self.arithmetic)
            .finish_non_exhaustive()
    }
}

impl LayerPlans {
    /// The layers of `network`; none is ready yet.
    pub(super) fn new(network: Arc<Network>, arithmetic: Arithmetic) -> Self {
        let layers = network.layers().iter().map(|_| Mutex::new(None)).collect();
        LayerPlans {
            network,
            arithmetic,
            layers,
        }
    }

    /// Whether these are the plans of this very network.
    pub(super) fn are_of(&self, network: &Arc<Network>) -> bool {
        Arc::ptr_eq(&self.network, network)
    }

    /// The outputs of layers `segment` for `inputs`.
    pub(super) fn run(&self, segment: Segment, inputs: &[Tensor]) -> TractResult<Vec<Tensor>> {
        let mut tensors: TVec<TValue> = inputs.iter().cloned().map(TValue::from).collect();
        for layer in segment.first()..=segment.last() {
            tensors = self.run_layer(layer, tensors)?;
        }
        Ok(tensors.into_iter().map(TValue::into_tensor).collect())
    }

    fn run_layer(&self, layer: u32, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let mut slot = lock(&self.layers[layer as usize - 1]);
        let state = match &mut *slot {
            Some(state) => state,
            empty => empty.insert(self.plan(layer)?),
        };
        run_state(state, self.arithmetic, inputs)
    }

    fn plan(&self, layer: u32) -> TractResult<TypedSimpleState> {
        let cut = self.network.segment(Segment::single(layer))?;
        let round = match self.arithmetic {
            Arithmetic::F32 => return optimized(&cut),
            Arithmetic::F16 { .. } => half_precision::round_weights,
            Arithmetic::I8 => quantised::round_weights,
        };
        reduced(&cut, round)
    }
}

fn run_state(
    state: &mut TypedSimpleState,
    arithmetic: Arithmetic,
    inputs: TVec<TValue>,
) -> TractResult<TVec<TValue>> {
    match arithmetic {
        Arithmetic::F32 => state.run(inputs),
        Arithmetic::F16 { accumulate } => {
            state.run_plan_with_eval(inputs, |ctx, op, node, inputs| {
                half_precision::evaluate(accumulate, Step { ctx, op, node }, inputs)
            })
        }
        Arithmetic::I8 => state.run_plan_with_eval(inputs, |ctx, op, node, inputs| {
            quantised::evaluate(Step { ctx, op, node }, inputs)
        }),
    }
}

/// A layer as tract reads it, nothing simplified, its 32-bit constants rounded by `round`.
fn reduced(cut: &SubModel, round: fn(&mut Tensor)) -> TractResult<TypedSimpleState> {
    let mut model = cut.typed()?;
    round_constants(&mut model, round)?;
    TypedRunnableModel::new(model)?.spawn()
}

fn round_constants(model: &mut TypedModel, round: fn(&mut Tensor)) -> TractResult<()> {
    for node in &mut model.nodes {
        let Some(constant) = node.op_as::<Const>() else {
            continue;
        };
        if constant.val().datum_type() != DatumType::F32 {
            continue;
        }
        let mut tensor = constant.val().as_ref().clone();
        round(&mut tensor);
        let tensor = tensor.into_arc_tensor();
        node.outputs[0].fact = TypedFact::try_from(tensor.clone())?;
        node.op = Box::new(Const::new(tensor)?);
    }
    Ok(())
}

/// One operator of a plan that is being run.
struct Step<'a, 'b, 'c> {
    ctx: &'a EvalContext<'a>,
    op: Option<&'b mut (dyn OpState + 'static)>,
    node: &'c TypedNode,
}

impl Step<'_, '_, '_> {
    /// Evaluates the operator as tract does.
    fn evaluate(self, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        eval(self.ctx, self.op, self.node, inputs)
    }
}

/// Applies `round` to every tensor of 32-bit floats.
fn round_all(values: TVec<TValue>, round: impl Fn(&mut [f32])) -> TractResult<TVec<TValue>> {
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

/// Whether two lists of tensors hold the same bits: NaNs, too, are equal to themselves.
pub(super) fn same(these: &[Tensor], those: &[Tensor]) -> bool {
    these.len() == those.len()
        && these.iter().zip(those).all(|(this, that)| {
            this.datum_type() == that.datum_type()
                && this.shape() == that.shape()
                && this.as_bytes() == that.as_bytes()
        })
}

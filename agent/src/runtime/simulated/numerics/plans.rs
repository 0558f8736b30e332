//! The layers of a network, ready to run in some arithmetic.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use layerlab_model::{Network, SubModel};
use layerlab_profiles::Segment;
use tract_onnx::prelude::{
    DatumType, IntoArcTensor, TValue, TVec, Tensor as TractTensor, TractResult, TypedModel,
    TypedRunnableModel, TypedSimpleState,
};
use tract_onnx::tract_core::internal::TypedFact;
use tract_onnx::tract_core::ops::konst::Const;

use super::step::Step;
use super::{half_precision, quantised, rounding};
use crate::device::simulated::Arithmetic;
use crate::kept::Kept;
use crate::runtime::simulated::answer::Answer;
use crate::runtime::tract::{from_tract, optimized, to_tract};
use crate::runtime::{MainMemory, Tensor};

/// How many bytes of tensors are remembered beside the last answer.
const ANSWERS_BYTES: u64 = 64 << 20;

/// The layers of a network, each made ready to run when it first runs.
pub(in crate::runtime::simulated) struct LayerPlans {
    network: Arc<Network>,
    arithmetic: Arithmetic,
    layers: Vec<Mutex<Option<TypedSimpleState>>>,
    answers: Mutex<Kept<Arc<Answer>>>,
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
    pub(in crate::runtime::simulated) fn new(
        network: Arc<Network>,
        arithmetic: Arithmetic,
    ) -> Self {
        let layers = network.layers().iter().map(|_| Mutex::new(None)).collect();
        LayerPlans {
            network,
            arithmetic,
            layers,
            answers: Mutex::new(Kept::new(ANSWERS_BYTES)),
        }
    }

    /// Whether these are the plans of this very network.
    pub(in crate::runtime::simulated) fn are_of(&self, network: &Arc<Network>) -> bool {
        Arc::ptr_eq(&self.network, network)
    }

    /// The outputs of layers `segment` for `inputs`.
    pub(in crate::runtime::simulated) fn run(
        &self,
        segment: Segment,
        inputs: &[Tensor],
    ) -> TractResult<Vec<Tensor>> {
        let network = &self.network;
        let inputs = to_tract(inputs)?.into_vec();
        let mut memory = MainMemory::of(&network.takes(segment), inputs);
        for layer in segment.first()..=segment.last() {
            let one = Segment::single(layer);
            let inputs = memory.taken(&network.takes(one));
            let given = self.run_layer(layer, inputs.iter().cloned().collect())?;
            memory = memory.after(network, one, given.into_vec());
        }
        let outputs = memory.taken(&network.gives(segment));
        from_tract(outputs.iter().cloned().collect())
    }

    /// What `segment` answered to `inputs`, if these were the last that it was timed with.
    pub(in crate::runtime::simulated) fn last_answer(
        &self,
        segment: Segment,
        inputs: &[Tensor],
    ) -> Option<Arc<Answer>> {
        let mut answers = self.answers();
        let last = answers.find(|answer| answer.segment == segment)?;
        (last.inputs == inputs).then(|| Arc::clone(last))
    }

    /// Remembers what a segment answered, instead of what it answered before, for its next loading.
    pub(in crate::runtime::simulated) fn remember(&self, answer: Arc<Answer>) {
        let mut answers = self.answers();
        answers.forget(|last| last.segment == answer.segment);
        answers.keep(answer.bytes(), answer);
    }

    fn answers(&self) -> MutexGuard<'_, Kept<Arc<Answer>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_layer(&self, layer: u32, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let slot = self.layers[layer as usize - 1].lock();
        let mut slot = slot.unwrap_or_else(PoisonError::into_inner);
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
            Arithmetic::F16 { .. } => rounding::round_weights,
            Arithmetic::I8 => quantised::round_weights,
        };
        reduced(&cut, round)
    }
}

pub(super) fn run_state(
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
pub(super) fn reduced(
    cut: &SubModel,
    round: fn(&mut TractTensor),
) -> TractResult<TypedSimpleState> {
    let mut model = cut.typed()?;
    round_constants(&mut model, round)?;
    TypedRunnableModel::new(model)?.spawn()
}

fn round_constants(model: &mut TypedModel, round: fn(&mut TractTensor)) -> TractResult<()> {
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

//! A segment on a simulated processor: outputs from its numerics, time from its device.

use std::sync::Arc;

use layerlab_profiles::{Bytes, Nanos};

use super::answer::Answer;
use super::numerics::LayerPlans;
use crate::device::simulated::{Loading, SharedDevice};
use crate::runtime::{Inference, RuntimeError, SegmentOnProcessor, Session, Tensor};

/// A loaded segment.
pub(super) struct SimulatedSession {
    pub(super) device: SharedDevice,
    /// The processor's place in the device file.
    pub(super) place: usize,
    /// What a run takes without noise on a cool device.
    pub(super) planted: Nanos,
    pub(super) memory: Bytes,
    /// Which loading this is.
    pub(super) loading: Loading,
    pub(super) load_time: Nanos,
    pub(super) plans: Arc<LayerPlans>,
    pub(super) last: Option<Arc<Answer>>,
    pub(super) subject: SegmentOnProcessor,
}

impl Session for SimulatedSession {
    fn memory(&self) -> Bytes {
        self.memory
    }

    fn load_time(&self) -> Nanos {
        self.load_time
    }

    fn run(&mut self, inputs: &[Tensor]) -> Result<Inference, RuntimeError> {
        let answer = self.answer(inputs)?;
        let duration = self
            .device
            .run(self.place, self.subject.segment, self.loading, self.planted)
            .ok_or_else(|| {
                self.subject
                    .cannot_run("the simulated device was not told which inference it is")
            })?;
        Ok(Inference {
            outputs: answer.outputs.clone(),
            duration,
        })
    }

    /// The numerics alone: no simulated time passes.
    fn outputs(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, RuntimeError> {
        self.plans
            .run(self.subject.segment, inputs)
            .map_err(|error| self.subject.cannot_run(error))
    }
}

impl SimulatedSession {
    /// What these inputs give: computed, unless they are the last ones of this session or of an earlier one of the segment.
    fn answer(&mut self, inputs: &[Tensor]) -> Result<Arc<Answer>, RuntimeError> {
        if let Some(last) = &self.last
            && last.inputs == inputs
        {
            return Ok(Arc::clone(last));
        }
        let segment = self.subject.segment;
        let answer = match self.plans.last_answer(segment, inputs) {
            Some(known) => known,
            None => {
                let answer = Arc::new(Answer {
                    segment,
                    inputs: inputs.to_vec(),
                    outputs: self.outputs(inputs)?,
                });
                self.plans.remember(Arc::clone(&answer));
                answer
            }
        };
        self.last = Some(Arc::clone(&answer));
        Ok(answer)
    }
}

impl Drop for SimulatedSession {
    fn drop(&mut self) {
        self.device.unload(self.place, self.memory);
    }
}

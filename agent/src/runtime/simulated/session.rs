//! A segment on a simulated processor: outputs from its numerics, time from its device.

use std::sync::Arc;

use layerlab_profiles::{Bytes, Nanos};

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
    /// The last inputs with their outputs: timing runs the same inputs over and over, and the
    /// numerics cost real time.
    pub(super) last: Option<(Vec<Tensor>, Vec<Tensor>)>,
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
        let outputs = self.remembered(inputs)?;
        let duration = self
            .device
            .run(self.place, self.subject.segment, self.loading, self.planted)
            .ok_or_else(|| {
                self.subject
                    .cannot_run("the simulated device was not told which inference it is")
            })?;
        Ok(Inference { outputs, duration })
    }

    /// The numerics alone: no simulated time passes.
    fn outputs(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, RuntimeError> {
        self.plans
            .run(self.subject.segment, inputs)
            .map_err(|error| self.subject.cannot_run(error))
    }
}

impl SimulatedSession {
    fn remembered(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, RuntimeError> {
        if let Some((last, outputs)) = &self.last
            && last == inputs
        {
            return Ok(outputs.clone());
        }
        let outputs = self.outputs(inputs)?;
        self.last = Some((inputs.to_vec(), outputs.clone()));
        Ok(outputs)
    }
}

impl Drop for SimulatedSession {
    fn drop(&mut self) {
        self.device.unload(self.place, self.memory);
    }
}

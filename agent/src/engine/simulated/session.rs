//! A segment on a simulated processor: outputs from its numerics, time from its model.

use std::sync::{Arc, Mutex};

use layerlab_profiles::{Bytes, Nanos};

use super::lock;
use super::noise::Noise;
use super::numerics::LayerPlans;
use super::state::State;
use crate::engine::{EngineError, Inference, Invocation, Session, Subject, Tensor};

/// A loaded segment.
pub(super) struct SimulatedSession {
    /// What a run takes without noise on a cool device.
    pub(super) planted: Nanos,
    pub(super) noise: Noise,
    pub(super) watts: f64,
    /// The processor's place in the device file.
    pub(super) place: usize,
    pub(super) memory: Bytes,
    pub(super) load_time: Nanos,
    pub(super) state: Arc<Mutex<State>>,
    pub(super) plans: Arc<LayerPlans>,
    /// The last inputs with their outputs: timing runs the same inputs over and over, and the
    /// numerics cost real time.
    pub(super) last: Option<(Vec<Tensor>, Vec<Tensor>)>,
    pub(super) subject: Subject,
}

impl Session for SimulatedSession {
    fn memory(&self) -> Bytes {
        self.memory
    }

    fn load_time(&self) -> Nanos {
        self.load_time
    }

    fn run(&mut self, inputs: &[Tensor], invocation: Invocation) -> Result<Inference, EngineError> {
        let outputs = self.remembered(inputs)?;
        let mut state = lock(&self.state);
        let speed = state.speed();
        let time = match speed {
            // At full speed not even a rounding error separates a time from the planted one.
            1.0 => self.planted,
            _ => Nanos::from_nanos((self.planted.as_nanos() as f64 / speed).round() as u64),
        };
        let Subject { processor, segment } = &self.subject;
        let time = self.noise.scatter(time, processor, *segment, invocation);
        let (started, duration) = state.pass(time, self.watts);
        Ok(Inference {
            outputs,
            started,
            duration,
        })
    }

    /// The numerics alone: no simulated time passes.
    fn outputs(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, EngineError> {
        self.plans
            .run(self.subject.segment, inputs)
            .map_err(|error| self.subject.cannot_run(error))
    }
}

impl SimulatedSession {
    fn remembered(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, EngineError> {
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
        lock(&self.state).free(self.place, self.memory);
    }
}

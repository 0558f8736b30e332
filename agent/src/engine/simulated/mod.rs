//! A device described by a TOML file: real 16-bit or 8-bit numerics, modelled time.

#[cfg(test)]
mod calibration;
mod clock;
mod file;
mod heat;
mod noise;
mod numerics;
mod session;
mod state;
#[cfg(test)]
mod tests;
mod time;

use std::sync::{Arc, Mutex};

use layerlab_model::Network;
use layerlab_profiles::document::{Device, Processor};
use layerlab_profiles::{Bytes, Nanos, Segment};
use layerlab_protocol::Conditions;

pub use self::file::{
    Accumulate, Arithmetic, ClockKind, DeviceFile, DeviceFileError, OnChip, SimulatedProcessor,
    Throughput, Transfer,
};
pub use self::heat::Heat;
pub use self::noise::Noise;
pub use self::time::{LayerWork, PlantedTimes};

use self::numerics::LayerPlans;
use self::session::SimulatedSession;
use self::state::State;
use super::{DeviceDescription, Engine, EngineError, Session, Subject};

/// A simulated device that has been switched on.
#[derive(Debug)]
pub struct Simulated {
    device: DeviceFile,
    state: Arc<Mutex<State>>,
    /// For each processor the network that it ran last, ready to run: the sessions of a block share it.
    plans: Vec<Option<Arc<LayerPlans>>>,
}

impl Simulated {
    /// Switches the device on: its clock reads zero, it is at room temperature and its memory is free.
    pub fn new(device: DeviceFile) -> Self {
        Simulated {
            state: Arc::new(Mutex::new(State::new(&device))),
            plans: vec![None; device.processors.len()],
            device,
        }
    }

    fn plans(&mut self, place: usize, network: &Arc<Network>) -> Arc<LayerPlans> {
        if let Some(plans) = &self.plans[place]
            && plans.are_of(network)
        {
            return Arc::clone(plans);
        }
        let arithmetic = self.device.processors[place].arithmetic;
        let plans = Arc::new(LayerPlans::new(Arc::clone(network), arithmetic));
        self.plans[place] = Some(Arc::clone(&plans));
        plans
    }
}

impl Engine for Simulated {
    fn describe(&self) -> DeviceDescription {
        let processor = |processor: &SimulatedProcessor| Processor {
            name: processor.name.clone(),
            kind: processor.kind(),
            numerics: processor.arithmetic.numerics(),
            runtime: "simulated".to_owned(),
            runtime_version: env!("CARGO_PKG_VERSION").to_owned(),
            memory_bytes: processor.memory,
            threads: None,
            pinned_to_cores: None,
        };
        DeviceDescription {
            device: Device {
                name: self.device.name.clone(),
                simulated: true,
                clock: lock(&self.state).clock.kind(),
            },
            system: "simulated".to_owned(),
            processors: self.device.processors.iter().map(processor).collect(),
        }
    }

    fn now(&self) -> Nanos {
        lock(&self.state).clock.now()
    }

    fn idle(&mut self, gap: Nanos) {
        lock(&self.state).pass(gap, 0.0);
    }

    fn conditions(&mut self) -> Conditions {
        lock(&self.state).conditions()
    }

    fn load(
        &mut self,
        processor: &str,
        network: &Arc<Network>,
        segment: Segment,
    ) -> Result<Box<dyn Session>, EngineError> {
        let Some(place) = self
            .device
            .processors
            .iter()
            .position(|p| p.name == processor)
        else {
            return Err(EngineError::UnknownProcessor {
                processor: processor.to_owned(),
                known: self
                    .device
                    .processors
                    .iter()
                    .map(|p| p.name.clone())
                    .collect(),
            });
        };
        let subject = Subject {
            processor: processor.to_owned(),
            segment,
        };
        if segment.last() as usize > network.layers().len() {
            let layers = network.layers().len();
            return Err(subject.cannot_load(format!("the network has {layers} layers")));
        }
        let processor = &self.device.processors[place];
        let work = LayerWork::of(network);
        let layers = &work[segment.first() as usize - 1..segment.last() as usize];
        let weights = processor
            .arithmetic
            .stored(layers.iter().map(|layer| layer.parameters).sum());
        let memory = weights + processor.arithmetic.stored(largest_tensors(layers));
        let mut state = lock(&self.state);
        state
            .take(place, memory, processor.memory)
            .map_err(|free| EngineError::OutOfMemory {
                processor: subject.processor.clone(),
                segment,
                needed: memory,
                free,
                capacity: processor.memory.unwrap_or(Bytes::ZERO),
            })?;
        let moving = processor
            .load_bytes_per_s
            .map_or(0.0, |rate| weights.as_bytes() as f64 / rate);
        let time = processor.load_fixed + Nanos::from_nanos((moving * 1e9).round() as u64);
        let (_, load_time) = state.pass(time, 0.0);
        drop(state);
        Ok(Box::new(SimulatedSession {
            planted: PlantedTimes::new(processor, &work).segment(segment),
            noise: processor.noise,
            watts: processor.power_watts,
            place,
            memory,
            load_time,
            state: Arc::clone(&self.state),
            plans: self.plans(place, network),
            last: None,
            subject,
        }))
    }
}

/// What the widest cut of these layers takes: a processor keeps at least that much beside the weights.
fn largest_tensors(layers: &[LayerWork]) -> Bytes {
    layers
        .iter()
        .flat_map(|layer| [layer.input, layer.output])
        .max()
        .unwrap_or(Bytes::ZERO)
}

/// The state, whatever became of the thread that used it last: it is never left half changed.
fn lock<T>(state: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    state
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

//! A simulated device as it and the runtime on it share it: what is loaded, and what a run takes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use layerlab_profiles::{Bytes, Nanos, Segment};

use super::file::{DeviceFile, SimulatedProcessor};
use super::machine_noise::Loading;
use super::state::SimulatedState;

/// A simulated device that has been switched on. Copies are the same device.
#[derive(Clone, Debug)]
pub(crate) struct SharedDevice {
    file: Arc<DeviceFile>,
    state: Arc<Mutex<SimulatedState>>,
}

impl SharedDevice {
    /// Switches the device on.
    pub(super) fn new(file: DeviceFile) -> SharedDevice {
        SharedDevice {
            state: Arc::new(Mutex::new(SimulatedState::new(&file))),
            file: Arc::new(file),
        }
    }

    /// Its description.
    pub(crate) fn file(&self) -> &DeviceFile {
        &self.file
    }

    /// The processor at this place in the device file.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn processor(&self, place: usize) -> &SimulatedProcessor {
        &self.file.processors[place]
    }

    /// Takes `needed` bytes of a processor's memory and lets `time` pass. Which loading that was and how long it took by
    /// the device's own clock, or how much memory is free if it is too little.
    pub(crate) fn load(
        &self,
        place: usize,
        needed: Bytes,
        time: Nanos,
    ) -> Result<(Loading, Nanos), Bytes> {
        let mut state = self.state();
        state.take(place, needed, self.processor(place).memory)?;
        let took = state.pass(time, 0.0);
        Ok((state.loaded(), took))
    }

    /// Gives the memory of one loading back.
    pub(crate) fn unload(&self, place: usize, bytes: Bytes) {
        self.state().free(place, bytes);
    }

    /// Runs `segment` as this loading of it, which takes `planted` without noise on a cool device. How long it took by
    /// the device's own clock, or `None` if nobody announced the inference.
    pub(crate) fn run(
        &self,
        place: usize,
        segment: Segment,
        loading: Loading,
        planted: Nanos,
    ) -> Option<Nanos> {
        let processor = self.processor(place);
        let mut state = self.state();
        let invocation = state.announced.take()?;
        let factor = state.machine_factor(&self.file.machine_noise, loading, invocation);
        let time = match (factor, state.speed()) {
            // Without either not even a rounding error separates a time from the planted one.
            (1.0, 1.0) => planted,
            (factor, speed) => {
                Nanos::from_nanos((planted.as_nanos() as f64 * factor / speed).round() as u64)
            }
        };
        let time = processor
            .noise
            .scatter(time, &processor.name, segment, invocation);
        Some(state.pass(time, processor.power_watts))
    }

    /// The state, whatever became of the thread that used it last: it is never left half changed.
    pub(super) fn state(&self) -> MutexGuard<'_, SimulatedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

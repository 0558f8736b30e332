//! The state of a simulated device: its clock, its temperature, its memory, and which inference comes next.

use layerlab_profiles::{Bytes, MilliCelsius, Nanos};
use layerlab_protocol::Conditions;

use super::clock::SimulatedClock;
use super::drawing::Drawing;
use super::file::DeviceFile;
use super::heat::Heat;
use super::machine_noise::{Loading, MachineNoise, MachineNoiseState};
use crate::device::invocation::Invocation;

/// The state of a simulated device.
#[derive(Debug)]
pub(super) struct SimulatedState {
    pub(super) clock: SimulatedClock,
    /// The inference that is timed next.
    pub(super) announced: Option<Invocation>,
    /// The seed of the order that it belongs to, or that the last one did.
    pub(super) night: u64,
    /// What it draws, where it has a gauge.
    pub(super) drawing: Drawing,
    idle_watts: Option<f64>,
    heat: Option<Heat>,
    celsius: f64,
    /// When `celsius` was right.
    celsius_at: Nanos,
    /// Memory taken, by the processor's place in the device file.
    taken: Vec<Bytes>,
    /// Loaded segments, loadings so far, and visits so far.
    loaded_now: u64,
    loadings: u64,
    visits: u64,
    /// Absent until the first inference, and on a machine without such noise.
    machine_noise: Option<MachineNoiseState>,
}

impl SimulatedState {
    /// The device as it is switched on: at room temperature, its memory free.
    pub(super) fn new(device: &DeviceFile) -> Self {
        SimulatedState {
            clock: SimulatedClock::new(device.clock),
            announced: None,
            night: 0,
            drawing: Drawing::default(),
            idle_watts: device.gauge.map(|gauge| gauge.idle_watts),
            heat: device.heat,
            celsius: device.heat.map_or(0.0, |heat| heat.ambient_celsius),
            celsius_at: Nanos::ZERO,
            taken: vec![Bytes::ZERO; device.processors.len()],
            loaded_now: 0,
            loadings: 0,
            visits: 0,
            machine_noise: None,
        }
    }

    /// Lets `time` pass in which the device takes `watts`. How long it took by the device's own clock.
    pub(super) fn pass(&mut self, time: Nanos, watts: f64) -> Nanos {
        // What passed since on a real clock was spent idle.
        self.settle(0.0);
        let begin = self.clock.now();
        self.clock.pass(time);
        self.settle(watts);
        Nanos::from_nanos(self.clock.now().as_nanos() - begin.as_nanos())
    }

    /// The fraction of its full speed at which the device would compute now.
    pub(super) fn speed(&mut self) -> f64 {
        self.settle(0.0);
        self.heat.map_or(1.0, |heat| heat.speed(self.celsius))
    }

    /// The factor that the machine's noise gives an inference that begins now.
    pub(super) fn machine_factor(
        &mut self,
        noise: &MachineNoise,
        loading: Loading,
        invocation: Invocation,
    ) -> f64 {
        if *noise == MachineNoise::default() {
            return 1.0;
        }
        let now = self.clock.now();
        self.machine_noise
            .get_or_insert_with(|| MachineNoiseState::begin(noise, invocation.seed(), now))
            .factor(noise, loading, now)
    }

    /// Notes that a segment has been loaded. Onto an empty device, that begins a visit.
    pub(super) fn loaded(&mut self) -> Loading {
        self.visits += u64::from(self.loaded_now == 0);
        self.loaded_now += 1;
        self.loadings += 1;
        Loading {
            number: self.loadings,
            visit: self.visits,
            at: self.clock.now(),
        }
    }

    /// What the device tells of its temperature; nothing, if it never warms up.
    pub(super) fn conditions(&mut self) -> Conditions {
        self.settle(0.0);
        let celsius = self
            .heat
            .map(|heat| (self.celsius, heat.thermal_status(self.celsius)));
        Conditions {
            thermal_status: celsius.map(|(_, status)| status),
            temperature_millicelsius: celsius.map(|(celsius, _)| {
                MilliCelsius::from_millicelsius((celsius * 1000.0).round() as i64)
            }),
            ..Conditions::default()
        }
    }

    /// Takes `needed` bytes of `capacity`, or says how much is free.
    pub(super) fn take(
        &mut self,
        processor: usize,
        needed: Bytes,
        capacity: Option<Bytes>,
    ) -> Result<(), Bytes> {
        let taken = self.taken[processor] + needed;
        if let Some(capacity) = capacity
            && taken > capacity
        {
            let used = self.taken[processor].as_bytes();
            return Err(Bytes::from_bytes(capacity.as_bytes() - used));
        }
        self.taken[processor] = taken;
        Ok(())
    }

    /// Gives back what one loading took.
    pub(super) fn free(&mut self, processor: usize, bytes: Bytes) {
        self.loaded_now = self.loaded_now.saturating_sub(1);
        let left = self.taken[processor]
            .as_bytes()
            .saturating_sub(bytes.as_bytes());
        self.taken[processor] = Bytes::from_bytes(left);
    }

    /// Brings the temperature, and what was drawn, up to the clock.
    pub(super) fn settle(&mut self, watts: f64) {
        let now = self.clock.now();
        if let Some(heat) = &self.heat {
            let elapsed = Nanos::from_nanos(now.as_nanos() - self.celsius_at.as_nanos());
            self.celsius = heat.after(self.celsius, watts, elapsed);
        }
        if let Some(idle) = self.idle_watts {
            self.drawing.pass(now, idle + watts);
        }
        self.celsius_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Nanos = Nanos::from_millis(60_000);

    fn state() -> SimulatedState {
        let device = r#"
            name = "d"
            clock = "exact"
            [heat]
            ambient_celsius = 25
            kelvin_per_watt = 10
            joules_per_kelvin = 6
            throttle_start_celsius = 45
            slowdown_per_kelvin = 0.05
            minimum_speed = 0.5
            [[processor]]
            name = "cpu"
            kind = "cpu"
            numerics = "f32"
            convolution_flop_per_s = 1e9
            fully_connected_flop_per_s = 1e9
            pooling_flop_per_s = 1e9
            other_flop_per_s = 1e9
        "#;
        SimulatedState::new(&DeviceFile::parse("d.toml", device).expect("a device"))
    }

    #[test]
    fn work_throttles_the_device_and_rest_restores_it() {
        let mut state = state();
        assert_eq!(state.speed(), 1.0);
        state.pass(MINUTE, 4.0);
        assert!(state.speed() < 0.8, "{}", state.celsius);
        state.pass(MINUTE, 0.0);
        assert_eq!(state.speed(), 1.0, "{}", state.celsius);
    }

    #[test]
    fn memory_is_taken_until_it_is_full_and_given_back() {
        let mut state = state();
        let bytes = Bytes::from_bytes;
        let capacity = Some(bytes(100));
        assert_eq!(state.take(0, bytes(60), capacity), Ok(()));
        assert_eq!(state.take(0, bytes(60), capacity), Err(bytes(40)));
        assert_eq!(state.take(0, bytes(40), capacity), Ok(()));
        state.free(0, bytes(60));
        assert_eq!(state.take(0, bytes(60), capacity), Ok(()));
        assert_eq!(state.take(0, bytes(1 << 40), None), Ok(()));
    }
}

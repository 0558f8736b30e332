//! A device described by a TOML file: its clock, heat, memory and noise. What its processors compute, and the planted
//! times, are its runtime's (`crate::runtime::simulated`).

mod clock;
mod drawing;
mod file;
mod gauge;
mod heat;
mod machine_noise;
mod noise;
mod shared;
mod simulated_meter;
mod state;
mod switching;

use layerlab_profiles::Nanos;
use layerlab_protocol::{self as protocol, Conditions, MeterChoice};

pub use self::file::{
    Accumulate, Arithmetic, ClockKind, DeviceFile, DeviceFileError, OnChip, SimulatedProcessor,
    Throughput, Transfer,
};
pub use self::gauge::Gauge;
pub use self::heat::Heat;
pub(crate) use self::machine_noise::Loading;
pub use self::machine_noise::{Cold, Correlated, MachineNoise};
pub use self::noise::Noise;
pub(crate) use self::shared::SharedDevice;
pub use self::switching::{Level, Switching};

use self::simulated_meter::SimulatedMeter;
use super::power::{MeterError, PowerMeter};
use super::{Device, DeviceIdentity, Invocation};

/// A simulated device that has been switched on.
#[derive(Debug)]
pub struct SimulatedDevice(SharedDevice);

impl SimulatedDevice {
    /// Switches the device on: its clock reads zero, it is at room temperature and its memory is free.
    pub fn new(file: DeviceFile) -> Self {
        SimulatedDevice(SharedDevice::new(file))
    }

    /// The device for the runtime on it.
    pub(crate) fn share(&self) -> SharedDevice {
        self.0.clone()
    }
}

impl Device for SimulatedDevice {
    fn identity(&self) -> DeviceIdentity {
        DeviceIdentity {
            device: protocol::Device {
                name: self.0.file().name.clone(),
                simulated: true,
                clock: self.0.state().clock.kind(),
            },
            system: "simulated".to_owned(),
        }
    }

    fn now(&self) -> Nanos {
        self.0.state().clock.now()
    }

    fn idle(&mut self, gap: Nanos) {
        self.0.state().pass(gap, 0.0);
    }

    fn conditions(&mut self) -> Conditions {
        self.0.state().conditions()
    }

    fn power_meter(&mut self, choice: &MeterChoice) -> Result<Box<dyn PowerMeter>, MeterError> {
        match choice {
            MeterChoice::Any => Ok(Box::new(SimulatedMeter::of(self.0.clone())?)),
            other => Err(MeterError::NotSimulated(other.clone())),
        }
    }

    fn announce(&mut self, invocation: Invocation) {
        let mut state = self.0.state();
        state.night = invocation.seed();
        state.announced = Some(invocation);
    }
}

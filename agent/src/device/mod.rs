//! What the machine is that networks run on: its clock, its state, its rest and its cores.
//!
//! A [`Device`] knows nothing of networks; the runtimes on it do (`crate::runtime`).

mod answer;
mod battery;
mod clocks;
mod conditions;
mod cores;
mod free_cores;
mod host;
mod invocation;
mod kernel_files;
mod kernel_throttling;
mod power;
mod processor_time;
pub mod simulated;
mod temperatures;
mod thermal_service;

use layerlab_profiles::Nanos;
use layerlab_protocol::{self as protocol, Conditions, MeterChoice};

pub use self::cores::CoreSet;
#[cfg(test)]
pub(crate) use self::cores::allowed_cores;
pub use self::host::Host;
pub use self::invocation::Invocation;
pub use self::power::{Drawn, MeterError, PowerMeter};
pub use self::processor_time::ProcessorTime;

/// A machine, a phone, or a simulation of one.
///
/// It is used by one thread at a time.
pub trait Device: Send {
    /// What the device is. The same whenever it is asked.
    fn identity(&self) -> DeviceIdentity;

    /// The reading of the device's monotonic clock, in nanoseconds since the device was opened. It never goes back; a
    /// simulated clock stands still between calls.
    fn now(&self) -> Nanos;

    /// Lets `gap` pass with all processors idle: sleeps, or advances a simulated clock, and cools. May take longer
    /// than `gap`, as sleeping does, never shorter.
    fn idle(&mut self, gap: Nanos);

    /// The state of the device now. What it does not tell is absent. May take tens of milliseconds and processor time,
    /// so that it is asked at the ends of blocks alone.
    fn conditions(&mut self) -> Conditions;

    /// Waits until so many threads have cores that nothing else runs on, as far as its patience goes, and says whether they have.
    /// `None` where that is not told; a simulated device runs nothing else.
    fn wait_for_cores(&mut self, _threads: u32) -> Option<CoresWait> {
        None
    }

    /// Waits until it is a while since the last visit of `what` began, and begins another one. A machine keeps the state that it
    /// is in, with what its neighbours do, for seconds: visits in one of them agree with each other and are wrong together. A
    /// simulated device has only the states that its file plants, and does not wait.
    fn part_visits(&mut self, _what: &str) {}

    /// The time of all its cores until now, where it is told.
    fn processor_time(&mut self) -> Option<ProcessorTime> {
        None
    }

    /// Opens the power meter that was chosen.
    fn power_meter(&mut self, choice: &MeterChoice) -> Result<Box<dyn PowerMeter>, MeterError>;

    /// Says which inference is timed next, once before each.
    ///
    /// A simulated device draws the inference's noise from it, so that a measurement that goes on after the agent was
    /// killed gives the samples of one that was not interrupted. A real device does not care.
    fn announce(&mut self, _invocation: Invocation) {}
}

/// How a wait for cores ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoresWait {
    /// Whether nothing else ran on them then.
    pub has_cores: bool,
    /// How long it took, in nanoseconds.
    pub waited: Nanos,
}

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// Its name, whether it is simulated, and its clock.
    pub device: protocol::Device,
    /// Its operating system.
    pub system: String,
}

//! A device and its processors, as the agent tells them to its daemon and to people.

use layerlab_protocol::Processor;
use serde::Serialize;

use crate::device::{Device, DeviceIdentity};
use crate::runtime::Runtimes;

/// What a device is, and what can be measured on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceDescription {
    /// Its name, whether it is simulated, and its clock.
    pub device: layerlab_protocol::Device,
    /// Its operating system.
    pub system: String,
    /// The processors that can be measured, each under a name of its own.
    pub processors: Vec<Processor>,
}

impl DeviceDescription {
    /// What `device` is, with the processors of all its runtimes.
    pub fn of(device: &dyn Device, runtimes: &Runtimes) -> DeviceDescription {
        let DeviceIdentity { device, system } = device.identity();
        DeviceDescription {
            device,
            system,
            processors: runtimes.processors().cloned().collect(),
        }
    }
}

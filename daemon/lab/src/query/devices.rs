//! What the lab knows of devices that are listed without it.

use std::collections::BTreeSet;

use crate::record::Kept;

/// The names of the devices whose agents play simulated ones in this lab.
pub fn simulated_devices(kept: &Kept) -> BTreeSet<String> {
    let devices = kept.devices.values();
    let simulated = devices.filter(|device| device.simulated);
    simulated.map(|device| device.name.clone()).collect()
}

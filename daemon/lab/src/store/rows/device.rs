//! A device in the store.

use serde::{Deserialize, Serialize};

use super::StoredRecord;
use crate::record::Device;

/// What version 0 wrote as the description of a local device that is simulated.
const DESCRIPTION_OF_SIMULATED: &str = "simulated";

#[derive(Serialize, Deserialize)]
pub(in crate::store) struct DeviceRow {
    name: String,
    serial: String,
    description: String,
    /// What version 0 kept may not say whether it is simulated.
    simulated: Option<bool>,
    soc: Option<String>,
    abi: Option<String>,
    android: Option<u32>,
    pools: Vec<String>,
    /// What was kept before agents were asked does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    processors: Option<Vec<String>>,
    /// Neither has what was kept while phones on a network were called by their addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    // Since version 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot_id: Option<String>,
}

impl StoredRecord for Device {
    const WHAT: &'static str = "a device";
    const VERSION: u32 = 2;
    type Row = DeviceRow;
}

impl From<Device> for DeviceRow {
    fn from(device: Device) -> DeviceRow {
        DeviceRow {
            name: device.name,
            serial: device.serial,
            description: device.description,
            simulated: Some(device.simulated),
            soc: device.soc,
            abi: device.abi,
            android: device.android,
            pools: device.pools,
            processors: device.processors,
            address: device.address,
            boot_id: device.boot_id,
        }
    }
}

impl From<DeviceRow> for Device {
    fn from(row: DeviceRow) -> Device {
        let said_so = row.description == DESCRIPTION_OF_SIMULATED;
        Device {
            simulated: row.simulated.unwrap_or(said_so),
            name: row.name,
            serial: row.serial,
            description: row.description,
            soc: row.soc,
            abi: row.abi,
            android: row.android,
            pools: row.pools,
            processors: row.processors,
            address: row.address,
            boot_id: row.boot_id,
        }
    }
}

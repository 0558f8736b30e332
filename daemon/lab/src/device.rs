//! A device as the lab knows it.

use serde::{Deserialize, Serialize};

/// A phone, or another device, that the lab has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// What to call it: a serial, with `@HOST:PORT` where another server leads to it, or a local device.
    pub name: String,
    /// The phone's own serial.
    pub serial: String,
    /// Where it was reached last, if over a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// What the phone called its present boot when it was seen last; nothing of a device that is no phone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// What it is, for a person.
    pub description: String,
    /// Whether its agent plays a simulated device in this lab.
    pub simulated: bool,
    /// Its SoC, as it names it.
    pub soc: Option<String>,
    /// Its binary interface.
    pub abi: Option<String>,
    /// Its Android version.
    pub android: Option<u32>,
    /// The pools that it is in.
    pub pools: Vec<String>,
    /// The names of its processors, once an agent on it has told them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<Vec<String>>,
}

impl Device {
    /// Whether `name` means it: its name here, its serial, or the address at which it was reached last.
    pub fn is_called(&self, name: &str) -> bool {
        name == self.name || name == self.serial || self.address.as_deref() == Some(name)
    }

    /// What to call it where people read: one that is simulated says so.
    pub fn label(&self) -> String {
        label(&self.name, self.simulated, false)
    }
}

/// The name of a device with a mark if it is simulated, or a processor of it emulated.
pub(crate) fn label(name: &str, simulated: bool, emulated: bool) -> String {
    match (simulated, emulated) {
        (true, _) => format!("{name} (simulated)"),
        (false, true) => format!("{name} (emulated)"),
        (false, false) => name.to_owned(),
    }
}

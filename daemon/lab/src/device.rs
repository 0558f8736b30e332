//! A device as the lab knows it.

use serde::{Deserialize, Serialize};

/// A phone, or another device, that the lab has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "KeptDevice")]
pub struct Device {
    /// What to call it: a serial, with `@HOST:PORT` where another server leads to it, or a local device.
    pub name: String,
    /// The phone's own serial.
    pub serial: String,
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
}

impl Device {
    /// What to call it where people read: one that is simulated says so.
    pub fn label(&self) -> String {
        label(&self.name, self.simulated)
    }
}

/// The name of a device with a mark if it is simulated.
pub(crate) fn label(name: &str, simulated: bool) -> String {
    match simulated {
        true => format!("{name} (simulated)"),
        false => name.to_owned(),
    }
}

/// What earlier versions wrote as the description of a local device that is simulated.
const DESCRIPTION_OF_SIMULATED: &str = "simulated";

/// A device as it may stand in a store: what earlier versions kept does not say whether it is simulated.
#[derive(Deserialize)]
struct KeptDevice {
    name: String,
    serial: String,
    description: String,
    simulated: Option<bool>,
    soc: Option<String>,
    abi: Option<String>,
    android: Option<u32>,
    pools: Vec<String>,
}

impl From<KeptDevice> for Device {
    fn from(kept: KeptDevice) -> Device {
        let said_so = kept.description == DESCRIPTION_OF_SIMULATED;
        Device {
            simulated: kept.simulated.unwrap_or(said_so),
            name: kept.name,
            serial: kept.serial,
            description: kept.description,
            soc: kept.soc,
            abi: kept.abi,
            android: kept.android,
            pools: kept.pools,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device as version 0.1.0 kept it.
    fn kept_before(description: &str) -> Device {
        let json = format!(
            r#"{{"name":"mate10pro","serial":"mate10pro","description":"{description}","soc":null,"abi":"x86_64","android":null,"pools":[]}}"#
        );
        serde_json::from_str(&json).expect("a device")
    }

    #[test]
    fn a_device_that_was_kept_before_is_simulated_if_its_description_said_so() {
        assert!(kept_before("simulated").simulated);
        assert!(!kept_before("this host").simulated);
        assert!(!kept_before("a phone that was never simulated").simulated);
    }

    #[test]
    fn what_is_kept_now_says_itself_whether_it_is_simulated() {
        for simulated in [true, false] {
            let device = Device {
                description: "simulated".to_owned(),
                simulated,
                ..Device::default()
            };
            let json = serde_json::to_string(&device).expect("JSON");
            assert_eq!(serde_json::from_str::<Device>(&json).expect("it"), device);
        }
    }
}

//! The simulated devices that phones play in this lab.

use layerlab_farm::LinkError;
use layerlab_farm::adb::Content;
use layerlab_farm::discovery::{self, Choice};

use crate::config::Phones;
use crate::record::Device;

/// The simulated device that a phone's agent plays, if it plays one.
pub(super) fn played<'a>(phones: &'a Phones, device: &Device) -> Option<&'a String> {
    let mut simulate = phones.simulate.iter();
    let (_, played) = simulate.find(|(name, _)| device.is_called(name))?;
    Some(played)
}

/// The file of a simulated device, unread: only the agent knows what is in it.
pub(super) fn simulated(device: &str) -> Result<Content<'static>, LinkError> {
    let refused = |message: String| LinkError::Refused { message };
    match discovery::choose(device).map_err(|error| refused(error.to_string()))? {
        Choice::BuiltIn(_, toml) => Ok(Content::new(toml.as_bytes())),
        Choice::File(path) => Content::file(&path).map_err(|error| {
            refused(format!(
                "cannot read the device file {}: {error}",
                path.display()
            ))
        }),
        Choice::Host => Err(refused("`host` is no simulated device".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_phone_plays_the_device_that_its_name_or_its_serial_or_its_address_stands_for() {
        let phones = Phones {
            simulate: ["R58", "10.0.0.1:5555"]
                .map(|name| (name.to_owned(), "mate10pro".to_owned()))
                .into(),
            ..Config::default().phones
        };
        let device = |name: &str, serial: &str, address: Option<&str>| {
            let device = Device {
                name: name.to_owned(),
                serial: serial.to_owned(),
                address: address.map(str::to_owned),
                ..Device::default()
            };
            played(&phones, &device).cloned()
        };
        let mate = Some("mate10pro".to_owned());
        assert_eq!(device("R58", "other", None), mate);
        assert_eq!(device("R58@lab2:5037", "R58", None), mate);
        assert_eq!(device("R61", "R61", Some("10.0.0.1:5555")), mate);
        assert_eq!(device("R59", "R59", Some("10.0.0.2:5555")), None);
    }
}

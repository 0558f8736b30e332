//! Phones on USB. Nobody has tried this on a real phone yet.

use std::path::{Path, PathBuf};

use adb_client::usb::{ADBUSBDevice, USBTransport};
use adb_client::{ADBDeviceExt, RustADBError};
use layerlab_farm::adb::direct::frames::{Failure, FailureKind, Sighting, Target};
use rusb::{Context, Device, UsbContext};

/// How adbd's interface is known: class, subclass and protocol.
const ADBD: (u8, u8, u8) = (0xff, 0x42, 0x01);

/// All phones that are plugged in.
pub(crate) fn look() -> rusb::Result<Vec<Sighting>> {
    let devices = Context::new()?.devices()?;
    Ok(devices
        .iter()
        .filter(is_phone)
        .map(|it| sighting(&it))
        .collect())
}

/// Opens the phone with this serial.
pub(crate) fn open(serial: &str, key: &Path) -> Result<Box<dyn ADBDeviceExt>, Failure> {
    let absent = || Failure::new(FailureKind::Absent, "no such phone is plugged in");
    let context = Context::new().map_err(|error| failure(&error))?;
    let devices = context.devices().map_err(|error| failure(&error))?;
    let mut phones = devices.iter().filter(is_phone);
    let phone = phones
        .find(|phone| name(phone) == serial)
        .ok_or_else(absent)?;
    let transport = USBTransport::new_from_device(phone);
    match ADBUSBDevice::new_from_transport(transport, Some(PathBuf::from(key))) {
        Ok(device) => Ok(device.boxed()),
        Err(RustADBError::DeviceBusy) => Err(Failure::new(FailureKind::Busy, "it is in use")),
        Err(RustADBError::UsbError(error)) => Err(failure(&error)),
        Err(error) => Err(Failure::lost(error)),
    }
}

fn failure(error: &rusb::Error) -> Failure {
    let kind = match error {
        rusb::Error::Access => FailureKind::NoPermissions,
        rusb::Error::Busy => FailureKind::Busy,
        rusb::Error::NoDevice | rusb::Error::NotFound => FailureKind::Absent,
        // The library waits ten seconds for the owner, and for nothing else in vain.
        rusb::Error::Timeout => FailureKind::Unauthorized,
        _ => FailureKind::Lost,
    };
    Failure::new(kind, error)
}

fn is_phone(device: &Device<Context>) -> bool {
    let Ok(configuration) = device.active_config_descriptor() else {
        return false;
    };
    let mut interfaces = configuration.interfaces();
    interfaces.any(|interface| {
        interface
            .descriptors()
            .any(|it| (it.class_code(), it.sub_class_code(), it.protocol_code()) == ADBD)
    })
}

/// Its serial; its port where this user may not ask it.
fn name(device: &Device<Context>) -> String {
    let serial = || {
        let descriptor = device.device_descriptor().ok()?;
        let handle = device.open().ok()?;
        handle.read_serial_number_string_ascii(&descriptor).ok()
    };
    serial().unwrap_or_else(|| port(device))
}

/// Its port as the kernel calls it, such as `1-4.2`.
fn port(device: &Device<Context>) -> String {
    let ports = device.port_numbers().unwrap_or_default();
    let ports: Vec<String> = ports.iter().map(u8::to_string).collect();
    format!("{}-{}", device.bus_number(), ports.join("."))
}

fn sighting(device: &Device<Context>) -> Sighting {
    let obstacle = device.open().err().map(|error| failure(&error).kind);
    let product = || {
        let descriptor = device.device_descriptor().ok()?;
        device
            .open()
            .ok()?
            .read_product_string_ascii(&descriptor)
            .ok()
    };
    Sighting {
        target: Target::Usb(name(device)).to_string(),
        description: product().unwrap_or_default(),
        usb_path: Some(port(device)),
        obstacle,
    }
}

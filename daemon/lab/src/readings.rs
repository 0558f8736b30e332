//! Reading how a device is, right before a run, when nothing of ours works on it.

use std::path::Path;
use std::time::Duration;

use layerlab_profiles::{Bytes, MilliCelsius};
use sysinfo::{MINIMUM_CPU_UPDATE_INTERVAL, System};

use super::gates::Readings;
use layerlab_farm::adb::{AdbError, Phone, Values};

/// How long this host's load is watched, as a phone's is.
const WATCH: Duration = Duration::from_millis(500);

/// How a phone is. Takes about a second.
pub async fn of_phone(phone: &Phone) -> Result<Readings, AdbError> {
    // One after the other: the load of the first would count the others as programs of somebody else.
    let disturbances = phone.disturbances().await?;
    let battery = phone.battery().await?;
    let thermal = phone.thermal().await?;
    Ok(from_scripts(&disturbances, &battery, &thermal))
}

/// How this host is, with `storage` where its agents keep their models. Takes half a second. What layerlab does
/// for other devices meanwhile is load too.
pub async fn of_host(storage: &Path) -> Readings {
    let mut system = System::new();
    system.refresh_cpu_usage();
    tokio::time::sleep(WATCH.max(MINIMUM_CPU_UPDATE_INTERVAL)).await;
    system.refresh_cpu_usage();
    let used = system.global_cpu_usage();
    let told = used.is_finite() && !system.cpus().is_empty();
    Readings {
        other_load_percent: told.then(|| used.clamp(0.0, 100.0).round() as u8),
        storage_free_bytes: free(storage),
        ..battery(Path::new("/sys/class/power_supply"))
    }
}

fn from_scripts(disturbances: &Values, battery: &Values, thermal: &Values) -> Readings {
    let flag = |values: &Values, key| values.text(key)?.parse().ok();
    let small = |values: &Values, key| u8::try_from(values.number(key)?).ok();
    // A board without one tells values all the same.
    let fitted = battery.text("present") != Some("false");
    let free = disturbances.number("storage_free_kib");
    let free = free.and_then(|kib| u64::try_from(kib).ok());
    let temperature = battery.number("temperature_millicelsius");
    Readings {
        battery_level_percent: small(battery, "level_percent").filter(|_| fitted),
        battery_temperature_millicelsius: temperature
            .filter(|_| fitted)
            .map(MilliCelsius::from_millicelsius),
        charging: charging(battery.text("plugged"), battery.text("status")).filter(|_| fitted),
        battery_updates_stopped: flag(battery, "updates_stopped"),
        thermal_status: small(thermal, "status"),
        thermal_status_overridden: flag(thermal, "status_overridden"),
        storage_free_bytes: free.map(|kib| Bytes::from_bytes(kib.saturating_mul(1024))),
        screen_on: flag(disturbances, "screen_on"),
        other_load_percent: small(disturbances, "busy_percent"),
    }
}

/// A phone that is full, or spares its battery, is not charged and yet does not empty it.
fn charging(plugged: Option<&str>, status: Option<&str>) -> Option<bool> {
    match (plugged, status) {
        (Some("none"), _) | (_, Some("discharging")) => Some(false),
        (Some(_), _) | (None, Some("charging" | "full")) => Some(true),
        (None, _) => None,
    }
}

/// What an ordinary user may still write to the file system of `folder`, which need not exist yet.
fn free(folder: &Path) -> Option<Bytes> {
    let folder = std::path::absolute(folder).ok()?;
    let there = folder.ancestors().find(|path| path.exists())?;
    let told = rustix::fs::statvfs(there).ok()?;
    Some(Bytes::from_bytes(
        told.f_bavail.saturating_mul(told.f_frsize),
    ))
}

/// A host's own battery, as Linux tells it in the folder `supplies`. One of a mouse or a pen is not its own.
fn battery(supplies: &Path) -> Readings {
    let read = |supply: &Path, file: &str| {
        let text = std::fs::read_to_string(supply.join(file)).ok()?;
        Some(text.trim().to_owned())
    };
    let is_own = |supply: &Path| {
        read(supply, "type").as_deref() == Some("Battery")
            && read(supply, "scope").as_deref() != Some("Device")
            && read(supply, "present").as_deref() != Some("0")
    };
    let entries = std::fs::read_dir(supplies).into_iter().flatten().flatten();
    let Some(supply) = entries.map(|entry| entry.path()).find(|path| is_own(path)) else {
        return Readings::default();
    };
    let tenths: Option<i64> = read(&supply, "temp").and_then(|text| text.parse().ok());
    Readings {
        battery_level_percent: read(&supply, "capacity").and_then(|text| text.parse().ok()),
        battery_temperature_millicelsius: tenths
            .map(|tenths| MilliCelsius::from_millicelsius(tenths.saturating_mul(100))),
        charging: match read(&supply, "status").as_deref() {
            Some("Charging" | "Full" | "Not charging") => Some(true),
            Some("Discharging") => Some(false),
            _ => None,
        },
        ..Readings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATTERY: &str = "level_percent=85\ntemperature_millicelsius=27000\nstatus=charging\nplugged=usb\n\
                           present=true\nupdates_stopped=false\n";
    const THERMAL: &str = "status=3\nstatus_overridden=true\n";
    const DISTURBANCES: &str = "busy_percent=12\nscreen_on=true\nstorage_free_kib=4194304\n";

    fn read(disturbances: &str, battery: &str, thermal: &str) -> Readings {
        let values = [disturbances, battery, thermal].map(Values::parse);
        from_scripts(&values[0], &values[1], &values[2])
    }

    #[test]
    fn what_the_scripts_tell_is_read() {
        let expected = Readings {
            battery_level_percent: Some(85),
            battery_temperature_millicelsius: Some(MilliCelsius::from_millicelsius(27_000)),
            charging: Some(true),
            battery_updates_stopped: Some(false),
            thermal_status: Some(3),
            thermal_status_overridden: Some(true),
            storage_free_bytes: Some(Bytes::from_bytes(4 << 30)),
            screen_on: Some(true),
            other_load_percent: Some(12),
        };
        assert_eq!(read(DISTURBANCES, BATTERY, THERMAL), expected);
    }

    #[test]
    fn what_they_do_not_tell_is_absent() {
        let nonsense = "level_percent_missing=unsupported\nbusy_percent=1000\nscreen_on=perhaps\n\
                        storage_free_kib=-1\nstatus=\n";
        assert_eq!(read(nonsense, nonsense, nonsense), Readings::default());
    }

    #[test]
    fn a_board_without_a_battery_has_no_charge() {
        let board = BATTERY.replace("present=true", "present=false");
        let readings = read(DISTURBANCES, &board, THERMAL);
        assert_eq!(
            readings.unknown(),
            ["battery level", "battery temperature", "charging"]
        );
    }

    #[test]
    fn a_phone_charges_when_it_is_plugged_in_and_not_emptied() {
        for (plugged, status, expected) in [
            (Some("usb"), Some("charging"), Some(true)),
            (Some("usb"), Some("full"), Some(true)),
            (Some("ac wireless"), Some("not_charging"), Some(true)),
            (Some("usb"), Some("discharging"), Some(false)),
            (Some("none"), Some("charging"), Some(false)),
            (Some("usb"), None, Some(true)),
            (None, Some("full"), Some(true)),
            (None, Some("unknown"), None),
            (None, None, None),
        ] {
            assert_eq!(
                charging(plugged, status),
                expected,
                "{plugged:?} {status:?}"
            );
        }
    }

    #[test]
    fn a_host_has_its_own_battery_and_no_mouses() {
        let supplies = tempfile::tempdir().expect("a folder");
        let write = |supply: &str, files: &[(&str, &str)]| {
            let folder = supplies.path().join(supply);
            std::fs::create_dir(&folder).expect("room");
            for (name, text) in files {
                std::fs::write(folder.join(name), format!("{text}\n")).expect("room");
            }
        };
        write("AC", &[("type", "Mains"), ("online", "1")]);
        write(
            "mouse",
            &[("type", "Battery"), ("scope", "Device"), ("capacity", "3")],
        );
        assert_eq!(battery(supplies.path()), Readings::default());
        write(
            "BAT0",
            &[
                ("type", "Battery"),
                ("capacity", "61"),
                ("temp", "315"),
                ("status", "Discharging"),
            ],
        );
        let expected = Readings {
            battery_level_percent: Some(61),
            battery_temperature_millicelsius: Some(MilliCelsius::from_millicelsius(31_500)),
            charging: Some(false),
            ..Readings::default()
        };
        assert_eq!(battery(supplies.path()), expected);
        assert_eq!(battery(&supplies.path().join("none")), Readings::default());
    }

    #[tokio::test]
    async fn this_host_tells_its_load_and_its_storage() {
        let folder = tempfile::tempdir().expect("a folder");
        let readings = of_host(&folder.path().join("not/there/yet")).await;
        assert!(
            readings.other_load_percent.is_some_and(|load| load <= 100),
            "{readings:?}"
        );
        assert!(
            readings
                .storage_free_bytes
                .is_some_and(|free| free > Bytes::ZERO),
            "{readings:?}"
        );
    }
}

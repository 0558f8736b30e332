//! The battery's fuel gauge: what flows out of the battery. It proves something only while all power comes from there.

use std::path::{Path, PathBuf};

use layerlab_profiles::Nanos;
use layerlab_profiles::energy::{Meter, MeterSource};

use super::sampled::{PowerSource, SampledMeter};
use super::{MeterError, PowerMeter};
use crate::device::kernel_files::{entries, number, text};

/// Gauges average over some seconds.
const SETTLE: Nanos = Nanos::from_millis(10_000);

/// Files that say that power from outside is not taken, by the value that says so: Qualcomm's chargers, and Samsung's.
const SUSPENDED: [(&str, &str); 2] = [("input_suspend", "1"), ("batt_slate_mode", "1")];

struct FuelGauge {
    supplies: PathBuf,
    battery: PathBuf,
    /// What Android's battery service said when the meter was opened.
    charging: Option<bool>,
}

/// The fuel gauge that the kernel tells of under `sys`.
pub(super) fn open(sys: &Path, charging: Option<bool>) -> Result<Box<dyn PowerMeter>, MeterError> {
    let supplies = sys.join("class/power_supply");
    let battery = supplies.join("battery");
    if !battery.join("current_now").exists() {
        return Err(MeterError::Missing {
            what: "readings of a fuel gauge",
            place: battery,
        });
    }
    let meter = Meter {
        source: MeterSource::FuelGauge,
        name: "battery".to_owned(),
        settle_ns: SETTLE,
    };
    let gauge = FuelGauge {
        supplies,
        battery,
        charging,
    };
    Ok(Box::new(SampledMeter::of(meter, gauge)?))
}

impl FuelGauge {
    fn read_number(&self, name: &str) -> Result<i64, MeterError> {
        let path = self.battery.join(name);
        number(&path).ok_or_else(|| MeterError::Read {
            path,
            reason: "it holds no number that this user may read".to_owned(),
            remedy: "choose another --meter",
        })
    }

    fn is_suspended(&self) -> bool {
        let mut suspended = SUSPENDED.iter();
        suspended.any(|(name, value)| text(&self.battery.join(name)).as_deref() == Some(value))
    }

    /// Whether any supply but the battery delivers power; `None` where none of them tells.
    fn is_plugged(&self) -> Option<bool> {
        let others = entries(&self.supplies, "")
            .filter(|(_, supply)| text(&supply.join("type")).as_deref() != Some("Battery"));
        let online: Vec<u8> = others
            .filter_map(|(_, supply)| number(&supply.join("online")))
            .collect();
        (!online.is_empty()).then(|| online.iter().any(|online| *online > 0))
    }
}

impl PowerSource for FuelGauge {
    fn read(&mut self) -> Result<(i64, f64), MeterError> {
        // Makers do not agree on the sign of a current that flows out.
        let microamperes = self.read_number("current_now")?.abs();
        let microvolts = self.read_number("voltage_now")?;
        Ok((microamperes, microvolts as f64 / 1e6))
    }

    fn refuse_unless_telling(&mut self) -> Result<(), MeterError> {
        if self.is_suspended() {
            return Ok(());
        }
        let status = text(&self.battery.join("status"));
        let by_status = match status.as_deref() {
            Some("Charging" | "Full" | "Not charging") => Some(true),
            _ => None,
        };
        // A weak supply shares the load with a battery that discharges.
        match (self.is_plugged(), by_status.or(self.charging)) {
            (Some(true), _) | (_, Some(true)) => Err(MeterError::Powered),
            (Some(false), _) | (None, Some(false)) => Ok(()),
            (None, None) => Err(MeterError::PowerUnknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A phone's folder of supplies: the battery, and USB that is plugged in or not.
    fn phone(folder: &Path, online: &str, status: &str) -> PathBuf {
        let write = |name: &str, text: &str| {
            let path = folder.join("class/power_supply").join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("room");
            fs::write(path, format!("{text}\n")).expect("room");
        };
        write("battery/type", "Battery");
        write("battery/current_now", "-250000");
        write("battery/voltage_now", "4000000");
        write("battery/status", status);
        write("usb/type", "USB");
        write("usb/online", online);
        folder.join("class/power_supply/battery")
    }

    #[test]
    fn what_flows_out_of_the_battery_is_the_power() {
        let folder = tempfile::tempdir().expect("a folder");
        let battery = phone(folder.path(), "0", "Discharging");
        let mut meter = open(folder.path(), None).expect("unplugged");
        let at = Nanos::from_millis;
        meter.begin(at(0)).expect("readings");
        fs::write(battery.join("current_now"), "-350000").expect("room");
        // Too soon after the last reading to look again.
        meter.poll(at(50)).expect("nothing to read");
        meter.poll(at(1_000)).expect("readings");
        let drawn = meter.end(at(2_000)).expect("readings");
        // From 1 W to 1.4 W in a second, and 1.4 W for another.
        assert_eq!(drawn.energy.as_nanojoules(), 2_600_000_000);
        assert_eq!((drawn.readings, drawn.step_uw), (3, Some(200_000)));
    }

    #[test]
    fn a_phone_that_is_powered_from_outside_is_refused_unless_that_is_suspended() {
        let folder = tempfile::tempdir().expect("a folder");
        // A weak supply shares the load with the battery.
        for status in ["Charging", "Full", "Discharging", "Not charging"] {
            phone(folder.path(), "1", status);
            let refused = open(folder.path(), None).err().expect(status).to_string();
            assert!(refused.contains("unplug it"), "{refused}");
        }
        let battery = phone(folder.path(), "1", "Discharging");
        fs::write(battery.join("input_suspend"), "1\n").expect("room");
        assert!(open(folder.path(), Some(true)).is_ok());
    }

    #[test]
    fn a_phone_that_is_plugged_in_meanwhile_is_refused_at_the_end_of_the_window() {
        let folder = tempfile::tempdir().expect("a folder");
        phone(folder.path(), "0", "Discharging");
        let mut meter = open(folder.path(), None).expect("unplugged");
        meter.begin(Nanos::ZERO).expect("readings");
        phone(folder.path(), "1", "Charging");
        let end = meter.end(Nanos::from_millis(30_000));
        assert!(matches!(end, Err(MeterError::Powered)));
    }

    #[test]
    fn where_nothing_tells_of_power_the_battery_service_decides() {
        let folder = tempfile::tempdir().expect("a folder");
        phone(folder.path(), "0", "Unknown");
        fs::remove_file(folder.path().join("class/power_supply/usb/online")).expect("it is there");
        let open = |charging| open(folder.path(), charging);
        assert!(matches!(open(Some(true)), Err(MeterError::Powered)));
        assert!(matches!(open(None), Err(MeterError::PowerUnknown)));
        assert!(open(Some(false)).is_ok());
    }
}

//! Whether a device is fit to be measured now: what it tells, held against what a run asks for. Pure.
//!
//! There is no hysteresis: a device at its limit is ready. A device is looked at before a run, not while
//! one goes on, so that nothing starts and stops around a limit; what heats up in a run is the agent's to
//! reject.

mod gate;
mod not_ready;

pub use gate::{Gate, GaveUp, Patience, Verdict};
pub use not_ready::NotReady;

use layerlab_profiles::{Bytes, MilliCelsius};
use serde::{Deserialize, Serialize};

/// How a device is. What it does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Readings {
    /// How full its battery is.
    pub battery_level_percent: Option<u8>,
    /// How warm its battery is.
    pub battery_temperature_millicelsius: Option<MilliCelsius>,
    /// Whether it gets power, and its battery is not emptied in spite of that.
    pub charging: Option<bool>,
    /// Whether somebody has frozen its battery's values by hand: they then say nothing about now.
    pub battery_updates_stopped: Option<bool>,
    /// What it says about its heat, from 0 (none) to 6 (shutdown).
    pub thermal_status: Option<u8>,
    /// Whether somebody has set that status by hand: it then says nothing about now.
    pub thermal_status_overridden: Option<bool>,
    /// What is free where models and journals are stored.
    pub storage_free_bytes: Option<Bytes>,
    /// Whether its screen is on.
    pub screen_on: Option<bool>,
    /// How much of all its cores other programs use.
    pub other_load_percent: Option<u8>,
}

impl Readings {
    /// How warm its battery is, in degrees Celsius.
    pub fn battery_temperature_celsius(&self) -> Option<f64> {
        let temperature = self.battery_temperature_millicelsius?;
        Some(temperature.as_millicelsius() as f64 / 1_000.0)
    }

    /// What the device does not tell, in words: such gates are open, and a report has to say so.
    pub fn unknown(&self) -> Vec<&'static str> {
        let known = [
            ("battery level", self.battery_level_percent.is_some()),
            (
                "battery temperature",
                self.battery_temperature_millicelsius.is_some(),
            ),
            ("charging", self.charging.is_some()),
            ("thermal status", self.thermal_status.is_some()),
            ("free storage", self.storage_free_bytes.is_some()),
            ("screen", self.screen_on.is_some()),
            ("load", self.other_load_percent.is_some()),
        ];
        let unknown = known.into_iter().filter(|(_, known)| !known);
        unknown.map(|(name, _)| name).collect()
    }
}

/// What a run asks of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    /// The emptiest that its battery may be.
    pub battery_level_percent: u8,
    /// The warmest that its battery may be.
    pub battery_temperature_millicelsius: MilliCelsius,
    /// Whether it must be charging.
    pub charging_required: bool,
    /// The worst thermal status, from 0 (none) to 6 (shutdown).
    pub thermal_status: u8,
    /// The least free storage.
    pub storage_free_bytes: Bytes,
    /// Whether its screen must be off.
    pub screen_off_required: bool,
    /// The most that other programs may use of all its cores.
    pub other_load_percent: u8,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds {
            battery_level_percent: 30,
            battery_temperature_millicelsius: MilliCelsius::from_millicelsius(37_000),
            charging_required: false,
            thermal_status: 1,
            storage_free_bytes: Bytes::from_bytes(1 << 30),
            screen_off_required: true,
            other_load_percent: 20,
        }
    }
}

/// Everything that keeps a device from being measured now; nothing if it is ready. What it does not tell
/// keeps it from nothing.
pub fn check(readings: &Readings, thresholds: &Thresholds) -> Vec<NotReady> {
    let mut reasons = Vec::new();
    // What is frozen is not judged: the reason that it is frozen stands for it.
    if readings.battery_updates_stopped == Some(true) {
        reasons.push(NotReady::BatteryFrozen);
    } else {
        reasons.extend(battery(readings, thresholds));
    }
    if readings.thermal_status_overridden == Some(true) {
        reasons.push(NotReady::ThermalStatusOverridden);
    } else {
        let hot = readings
            .thermal_status
            .filter(|&status| status > thresholds.thermal_status);
        reasons.extend(hot.map(|status| NotReady::ThermalStatus {
            status,
            limit: thresholds.thermal_status,
        }));
    }
    let full = readings
        .storage_free_bytes
        .filter(|&free| free < thresholds.storage_free_bytes);
    reasons.extend(full.map(|free| NotReady::StorageLow {
        free,
        limit: thresholds.storage_free_bytes,
    }));
    if thresholds.screen_off_required && readings.screen_on == Some(true) {
        reasons.push(NotReady::ScreenOn);
    }
    let busy = readings
        .other_load_percent
        .filter(|&load| load > thresholds.other_load_percent);
    reasons.extend(busy.map(|percent| NotReady::Busy {
        percent,
        limit_percent: thresholds.other_load_percent,
    }));
    reasons
}

fn battery(readings: &Readings, thresholds: &Thresholds) -> impl Iterator<Item = NotReady> {
    let level = readings.battery_level_percent;
    let low = level.filter(|&level| level < thresholds.battery_level_percent);
    let temperature = readings.battery_temperature_millicelsius;
    let warm = temperature.filter(|&now| now > thresholds.battery_temperature_millicelsius);
    let idle = thresholds.charging_required && readings.charging == Some(false);
    [
        low.map(|percent| NotReady::BatteryLow {
            percent,
            limit_percent: thresholds.battery_level_percent,
        }),
        warm.map(|temperature| NotReady::BatteryWarm {
            temperature,
            limit: thresholds.battery_temperature_millicelsius,
        }),
        idle.then_some(NotReady::NotCharging),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A phone that has nothing to do.
    fn calm() -> Readings {
        Readings {
            battery_level_percent: Some(85),
            battery_temperature_millicelsius: Some(MilliCelsius::from_millicelsius(27_000)),
            charging: Some(true),
            battery_updates_stopped: Some(false),
            thermal_status: Some(0),
            thermal_status_overridden: Some(false),
            storage_free_bytes: Some(Bytes::from_bytes(64 << 30)),
            screen_on: Some(false),
            other_load_percent: Some(3),
        }
    }

    fn strict() -> Thresholds {
        Thresholds {
            charging_required: true,
            ..Thresholds::default()
        }
    }

    fn sentences(change: impl FnOnce(&mut Readings)) -> Vec<String> {
        let mut readings = calm();
        change(&mut readings);
        let reasons = check(&readings, &strict());
        reasons.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_gate_closes_with_its_sentence_and_alone() {
        let millicelsius = |value| Some(MilliCelsius::from_millicelsius(value));
        let bytes = |value| Some(Bytes::from_bytes(value));
        type Change = Box<dyn FnOnce(&mut Readings)>;
        let table: Vec<(Change, &str)> = vec![
            (
                Box::new(|now| now.battery_level_percent = Some(22)),
                "battery 22 % < 30 %",
            ),
            (
                Box::new(move |now| now.battery_temperature_millicelsius = millicelsius(41_500)),
                "battery 41.5 °C > 37 °C",
            ),
            (Box::new(|now| now.charging = Some(false)), "not charging"),
            (
                Box::new(|now| now.battery_updates_stopped = Some(true)),
                "battery values are frozen (dumpsys battery reset mends it)",
            ),
            (
                Box::new(|now| now.thermal_status = Some(3)),
                "thermal status severe > light",
            ),
            (
                Box::new(|now| now.thermal_status_overridden = Some(true)),
                "thermal status is set by hand (cmd thermalservice reset mends it)",
            ),
            (
                Box::new(move |now| now.storage_free_bytes = bytes(333 << 20)),
                "storage 0.3 GiB free < 1 GiB",
            ),
            (Box::new(|now| now.screen_on = Some(true)), "screen is on"),
            (
                Box::new(|now| now.other_load_percent = Some(45)),
                "other programs use 45 % of the CPUs > 20 %",
            ),
        ];
        for (change, sentence) in table {
            assert_eq!(sentences(change), [sentence]);
        }
    }

    #[test]
    fn a_device_at_every_limit_is_ready() {
        let limits = strict();
        let readings = Readings {
            battery_level_percent: Some(limits.battery_level_percent),
            battery_temperature_millicelsius: Some(limits.battery_temperature_millicelsius),
            thermal_status: Some(limits.thermal_status),
            storage_free_bytes: Some(limits.storage_free_bytes),
            other_load_percent: Some(limits.other_load_percent),
            ..calm()
        };
        assert_eq!(check(&readings, &limits), []);
        assert_eq!(check(&calm(), &limits), []);
    }

    #[test]
    fn what_a_device_does_not_tell_closes_no_gate_and_is_named() {
        let silent = Readings::default();
        assert_eq!(check(&silent, &strict()), []);
        let unknown = [
            "battery level",
            "battery temperature",
            "charging",
            "thermal status",
            "free storage",
            "screen",
            "load",
        ];
        assert_eq!(silent.unknown(), unknown);
        assert_eq!(calm().unknown(), [""; 0]);
        let no_sensor = Readings {
            battery_temperature_millicelsius: None,
            ..calm()
        };
        assert_eq!(no_sensor.unknown(), ["battery temperature"]);
    }

    #[test]
    fn frozen_values_are_not_judged() {
        let frozen = sentences(|now| {
            now.battery_updates_stopped = Some(true);
            now.battery_level_percent = Some(1);
            now.charging = Some(false);
            now.thermal_status_overridden = Some(true);
            now.thermal_status = Some(6);
        });
        assert_eq!(frozen.len(), 2, "{frozen:?}");
    }

    #[test]
    fn what_is_not_asked_for_closes_no_gate() {
        let readings = Readings {
            charging: Some(false),
            screen_on: Some(true),
            ..calm()
        };
        let lenient = Thresholds {
            charging_required: false,
            screen_off_required: false,
            ..Thresholds::default()
        };
        assert_eq!(check(&readings, &lenient), []);
        assert_eq!(check(&readings, &strict()).len(), 2);
    }

    #[test]
    fn all_reasons_are_given_at_once() {
        let all = sentences(|now| {
            now.battery_level_percent = Some(0);
            now.battery_temperature_millicelsius = Some(MilliCelsius::from_millicelsius(37_001));
            now.charging = Some(false);
            now.thermal_status = Some(2);
            now.storage_free_bytes = Some(Bytes::ZERO);
            now.screen_on = Some(true);
            now.other_load_percent = Some(100);
        });
        assert_eq!(all.len(), 7, "{all:?}");
    }

    #[test]
    fn a_worse_reading_never_opens_a_gate() {
        let limits = Thresholds::default();
        let mut before = 0;
        for status in 0..=7 {
            let reading = Readings {
                thermal_status: Some(status),
                battery_level_percent: Some(100 - 14 * status),
                other_load_percent: Some(14 * status),
                ..calm()
            };
            let reasons = check(&reading, &limits).len();
            assert!(reasons >= before, "status {status}");
            before = reasons;
        }
        assert_eq!(before, 3);
    }
}

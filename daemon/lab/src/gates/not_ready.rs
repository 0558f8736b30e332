//! Why a device is not ready, in a person's words, and what that person can do.

use std::fmt;

use layerlab_profiles::{Bytes, MilliCelsius};
use serde::{Deserialize, Serialize};

/// One reason why a device cannot be measured now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum NotReady {
    /// Its battery is too empty.
    BatteryLow {
        /// How full it is.
        percent: u8,
        /// How full it must be.
        limit_percent: u8,
    },
    /// Its battery is too warm.
    BatteryWarm {
        /// How warm it is.
        temperature: MilliCelsius,
        /// How warm it may be.
        limit: MilliCelsius,
    },
    /// It is not charging.
    NotCharging,
    /// Its battery's values are not those of now.
    BatteryFrozen,
    /// It says that it is too hot.
    ThermalStatus {
        /// What it says, from 0 (none) to 6 (shutdown).
        status: u8,
        /// The worst that it may say.
        limit: u8,
    },
    /// What it says about its heat was set by hand.
    ThermalStatusOverridden,
    /// Its storage is too full.
    StorageLow {
        /// What is free.
        free: Bytes,
        /// What must be free.
        limit: Bytes,
    },
    /// Its screen is on.
    ScreenOn,
    /// Other programs use it.
    Busy {
        /// What they use of all cores.
        percent: u8,
        /// What they may use.
        limit_percent: u8,
    },
    /// It could not be asked.
    Unread {
        /// What went wrong.
        why: String,
    },
}

impl NotReady {
    /// What a person can do if waiting does not mend it.
    pub fn remedy(&self) -> &'static str {
        match self {
            NotReady::BatteryLow { .. } => "charge it",
            NotReady::NotCharging => "plug it into a charger, or a port that gives more power",
            NotReady::BatteryWarm { .. } | NotReady::ThermalStatus { .. } => {
                "let it cool, out of its case and the sun"
            }
            NotReady::BatteryFrozen => "run `adb shell dumpsys battery reset`",
            NotReady::ThermalStatusOverridden => "run `adb shell cmd thermalservice reset`",
            NotReady::StorageLow { .. } => "delete something on it",
            NotReady::ScreenOn => "switch its screen off",
            NotReady::Busy { .. } => "close what runs on it",
            NotReady::Unread { .. } => "see `layerlab doctor`",
        }
    }
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotReady::BatteryLow {
                percent,
                limit_percent,
            } => write!(f, "battery {percent} % < {limit_percent} %"),
            NotReady::BatteryWarm { temperature, limit } => {
                let (temperature, limit) = (celsius(*temperature), celsius(*limit));
                write!(f, "battery {temperature} °C > {limit} °C")
            }
            NotReady::NotCharging => f.write_str("not charging"),
            NotReady::BatteryFrozen => {
                f.write_str("battery values are frozen (dumpsys battery reset mends it)")
            }
            NotReady::ThermalStatus { status, limit } => {
                let (status, limit) = (status_name(*status), status_name(*limit));
                write!(f, "thermal status {status} > {limit}")
            }
            NotReady::ThermalStatusOverridden => {
                f.write_str("thermal status is set by hand (cmd thermalservice reset mends it)")
            }
            NotReady::StorageLow { free, limit } => {
                // Rounded apart, so that the one never reads like the other.
                let (free, limit) = (gib(*free, f64::floor), gib(*limit, f64::ceil));
                write!(f, "storage {free} GiB free < {limit} GiB")
            }
            NotReady::ScreenOn => f.write_str("screen is on"),
            NotReady::Busy {
                percent,
                limit_percent,
            } => write!(
                f,
                "other programs use {percent} % of the CPUs > {limit_percent} %"
            ),
            NotReady::Unread { why } => write!(f, "cannot be asked ({why})"),
        }
    }
}

/// Android's word for a thermal status.
fn status_name(status: u8) -> String {
    let names = [
        "none",
        "light",
        "moderate",
        "severe",
        "critical",
        "emergency",
        "shutdown",
    ];
    let name = names.get(usize::from(status));
    name.map_or_else(|| status.to_string(), |name| (*name).to_owned())
}

/// Degrees, exact and as short as they can be.
fn celsius(temperature: MilliCelsius) -> String {
    (temperature.as_millicelsius() as f64 / 1000.0).to_string()
}

/// GiB, rounded to a tenth.
fn gib(size: Bytes, round: fn(f64) -> f64) -> f64 {
    round(size.as_bytes() as f64 * 10.0 / (1u64 << 30) as f64) / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperatures_are_exact() {
        for (millicelsius, text) in [
            (37_000, "37"),
            (37_001, "37.001"),
            (-1_500, "-1.5"),
            (0, "0"),
        ] {
            assert_eq!(celsius(MilliCelsius::from_millicelsius(millicelsius)), text);
        }
    }

    #[test]
    fn a_status_that_android_does_not_have_yet_is_a_number() {
        let names = [0, 1, 2, 3, 4, 5, 6, 7].map(status_name);
        assert_eq!(
            names.join(" "),
            "none light moderate severe critical emergency shutdown 7"
        );
    }

    #[test]
    fn storage_never_reads_as_if_it_were_enough() {
        let mib = |mib: u64| Bytes::from_bytes(mib << 20);
        for (free, limit, text) in [
            (mib(0), mib(1024), "storage 0 GiB free < 1 GiB"),
            (mib(1023), mib(1024), "storage 0.9 GiB free < 1 GiB"),
            (mib(1500), mib(1501), "storage 1.4 GiB free < 1.5 GiB"),
            (mib(7), mib(8), "storage 0 GiB free < 0.1 GiB"),
        ] {
            assert_eq!(NotReady::StorageLow { free, limit }.to_string(), text);
        }
    }
}

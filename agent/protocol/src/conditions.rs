//! The state of a device between inferences, as journals hold it.

use std::collections::BTreeMap;

use layerlab_profiles::document;
use layerlab_profiles::units::MilliCelsius;
use serde::{Deserialize, Serialize};

/// The state of a device between inferences. What it does not tell is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// Android's thermal status: 0 none, 1 light, 2 moderate, 3 severe, 4 critical, 5 emergency, 6 shutdown.
    pub thermal_status: Option<u8>,
    /// The temperature of the hottest sensor that can be read.
    pub temperature_millicelsius: Option<MilliCelsius>,
    /// How full the battery is.
    pub battery_percent: Option<u8>,
    /// The highest frequency that each group of cores may have now, by the group's name.
    pub frequency_caps_khz: BTreeMap<String, u64>,
    /// The temperature of its skin: what Android throttles by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skin_temperature_millicelsius: Option<MilliCelsius>,
    /// The temperature of the hottest part of its SoC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soc_temperature_millicelsius: Option<MilliCelsius>,
    /// The temperature of its battery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery_temperature_millicelsius: Option<MilliCelsius>,
    /// Whether it gets power, and its battery is not emptied in spite of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charging: Option<bool>,
    /// The frequency that each group of cores, and each accelerator that the kernel tells of, has now, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub frequencies_khz: BTreeMap<String, u64>,
}

impl From<Conditions> for document::Conditions {
    fn from(conditions: Conditions) -> Self {
        document::Conditions {
            thermal_status: conditions.thermal_status,
            temperature_millicelsius: conditions.temperature_millicelsius,
            skin_temperature_millicelsius: conditions.skin_temperature_millicelsius,
            soc_temperature_millicelsius: conditions.soc_temperature_millicelsius,
            battery_temperature_millicelsius: conditions.battery_temperature_millicelsius,
            battery_percent: conditions.battery_percent,
            charging: conditions.charging,
            frequency_caps_khz: conditions.frequency_caps_khz,
            frequencies_khz: conditions.frequencies_khz,
        }
    }
}

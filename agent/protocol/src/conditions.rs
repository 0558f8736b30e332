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
}

impl From<Conditions> for document::Conditions {
    fn from(conditions: Conditions) -> Self {
        document::Conditions {
            thermal_status: conditions.thermal_status,
            temperature_millicelsius: conditions.temperature_millicelsius,
            battery_percent: conditions.battery_percent,
            frequency_caps_khz: conditions.frequency_caps_khz,
        }
    }
}

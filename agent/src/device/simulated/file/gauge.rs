//! The section `[gauge]` of a device file, and the checks that make it a [`Gauge`].

use layerlab_profiles::Nanos;
use serde::Deserialize;

use super::DeviceFileError;
use super::check::{ABOVE_ZERO, AT_LEAST_ZERO, Place, Range};
use crate::device::simulated::gauge::Gauge;

const ANY: Range = Range {
    holds: |_| true,
    expected: "a number",
};

/// More often than this no window needs readings.
const SHORTEST_PERIOD_MS: u64 = 1;

/// What tells how much the device draws.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGauge {
    /// What the device draws beside its processors.
    idle_watts: Option<f64>,
    /// Readings are multiples of this.
    step_watts: Option<f64>,
    /// How often there is a new reading: the mean since the one before.
    period_ms: Option<i64>,
    /// How late that is; absent: not at all.
    delay_ms: Option<i64>,
    /// By how much readings are too high; absent: 0.
    offset_watts: Option<f64>,
    /// The standard deviation of what else a reading is off; absent: 0.
    noise_watts: Option<f64>,
    /// Whether the device is powered from outside; absent: it runs from its battery.
    powered: Option<bool>,
}

impl RawGauge {
    pub(super) fn check(self, file: &str) -> Result<Gauge, DeviceFileError> {
        let place = Place {
            file,
            place: "[gauge]".to_owned(),
        };
        let expected = "a whole number above 0";
        let period = place.optional_count("period_ms", self.period_ms)?;
        let period = place.required("period_ms", period, expected)?;
        if period < SHORTEST_PERIOD_MS {
            return Err(place.senseless("period_ms", period, expected));
        }
        let delay = place.optional_count("delay_ms", self.delay_ms)?;
        let optional = |field, value, range| {
            let number = place.optional_number(field, value, range)?;
            Ok(number.unwrap_or(0.0))
        };
        Ok(Gauge {
            idle_watts: place.number("idle_watts", self.idle_watts, &AT_LEAST_ZERO)?,
            step_watts: place.number("step_watts", self.step_watts, &ABOVE_ZERO)?,
            period: Nanos::from_millis(period),
            delay: Nanos::from_millis(delay.unwrap_or(0)),
            offset_watts: optional("offset_watts", self.offset_watts, &ANY)?,
            noise_watts: optional("noise_watts", self.noise_watts, &AT_LEAST_ZERO)?,
            powered: self.powered.unwrap_or(false),
        })
    }
}

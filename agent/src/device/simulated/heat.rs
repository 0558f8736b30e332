//! How a simulated device warms up, cools and slows down: one lump of heat behind one resistance.

use layerlab_profiles::Nanos;

/// A first-order (RC) thermal model with throttling above a temperature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heat {
    /// The temperature of the room, which the device has at the start.
    pub ambient_celsius: f64,
    /// How much warmer than the room it gets in the end for each watt.
    pub kelvin_per_watt: f64,
    /// The heat that warms it by one kelvin.
    pub joules_per_kelvin: f64,
    /// Above this temperature it slows down.
    pub throttle_start_celsius: f64,
    /// The fraction of its full speed that it loses for each kelvin above.
    pub slowdown_per_kelvin: f64,
    /// The fraction of its full speed that it keeps however hot it is.
    pub minimum_speed: f64,
}

impl Heat {
    /// The temperature after `elapsed` at constant power, from `celsius` at its start.
    pub fn after(&self, celsius: f64, watts: f64, elapsed: Nanos) -> f64 {
        let settled = self.ambient_celsius + watts * self.kelvin_per_watt;
        let time_constant_ns = self.kelvin_per_watt * self.joules_per_kelvin * 1e9;
        settled + (celsius - settled) * (-(elapsed.as_nanos() as f64) / time_constant_ns).exp()
    }

    /// Android's thermal status: 0 (none) while the device keeps its speed, 1 (light) as soon as it slows
    /// down, 3 (severe) at its minimum speed.
    pub fn thermal_status(&self, celsius: f64) -> u8 {
        match self.speed(celsius) {
            speed if speed >= 1.0 => 0,
            speed if speed > self.minimum_speed => 1,
            _ => 3,
        }
    }

    /// The fraction of its full speed at which the device computes.
    pub fn speed(&self, celsius: f64) -> f64 {
        let excess = (celsius - self.throttle_start_celsius).max(0.0);
        (1.0 - self.slowdown_per_kelvin * excess).max(self.minimum_speed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAT: Heat = Heat {
        ambient_celsius: 25.0,
        kelvin_per_watt: 10.0,
        joules_per_kelvin: 6.0,
        throttle_start_celsius: 45.0,
        slowdown_per_kelvin: 0.05,
        minimum_speed: 0.5,
    };
    const MINUTE: Nanos = Nanos::from_millis(60_000);

    #[test]
    fn after_one_time_constant_the_device_has_63_per_cent_of_its_final_rise() {
        let celsius = HEAT.after(25.0, 4.0, MINUTE);
        assert!(
            (celsius - (25.0 + 40.0 * 0.632_120_558)).abs() < 1e-6,
            "{celsius}"
        );
    }

    #[test]
    fn an_idle_device_cools_towards_the_room() {
        let warm = HEAT.after(60.0, 0.0, MINUTE);
        assert!(warm > 25.0 && warm < 60.0);
        assert!((HEAT.after(60.0, 0.0, Nanos::from_millis(3_600_000)) - 25.0).abs() < 1e-9);
    }

    #[test]
    fn ten_short_steps_are_one_long_step() {
        let tenth = Nanos::from_millis(6_000);
        let steps = (0..10).fold(25.0, |celsius, _| HEAT.after(celsius, 3.0, tenth));
        assert!((steps - HEAT.after(25.0, 3.0, MINUTE)).abs() < 1e-9);
    }

    #[test]
    fn the_thermal_status_rises_with_the_slowdown() {
        for (celsius, status) in [(30.0, 0), (46.0, 1), (80.0, 3)] {
            assert_eq!(HEAT.thermal_status(celsius), status, "{celsius}");
        }
    }

    #[test]
    fn speed_falls_from_the_throttling_temperature_to_its_minimum() {
        for (celsius, speed) in [
            (25.0, 1.0),
            (45.0, 1.0),
            (47.0, 0.9),
            (55.0, 0.5),
            (90.0, 0.5),
        ] {
            assert!((HEAT.speed(celsius) - speed).abs() < 1e-12, "{celsius}");
        }
    }
}

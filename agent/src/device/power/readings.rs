//! Readings of a power, and what they make of a window.

use layerlab_profiles::{NanoJoules, Nanos};

use super::{Drawn, MeterError};

/// The readings of one window, and what all readings until now have in common.
#[derive(Debug, Default)]
pub(in crate::device) struct PowerReadings {
    /// When each was taken, and the power in µW.
    taken: Vec<(Nanos, f64)>,
    /// The greatest common divisor of all values that the meter gave, in its own unit, and one of them.
    divisor: u64,
    first: Option<u64>,
    is_one_value: bool,
    /// What that unit is in µW.
    unit_uw: f64,
}

impl PowerReadings {
    /// A window begins.
    pub(in crate::device) fn begin(&mut self) {
        self.taken.clear();
    }

    /// The meter gave `value`, in a unit of so many µW.
    pub(in crate::device) fn add(&mut self, at: Nanos, value: i64, unit_uw: f64) {
        let magnitude = value.unsigned_abs();
        match self.first {
            None => (self.first, self.is_one_value) = (Some(magnitude), true),
            Some(first) => self.is_one_value &= first == magnitude,
        }
        self.divisor = divisor(self.divisor, magnitude);
        self.unit_uw = unit_uw;
        self.taken.push((at, value as f64 * unit_uw));
    }

    /// When the last reading of the window was taken.
    pub(in crate::device) fn last(&self) -> Option<Nanos> {
        self.taken.last().map(|&(at, _)| at)
    }

    /// What was drawn from `began` to `ended`: the mean power between the first and the last reading, over all of the window.
    pub(in crate::device) fn drawn(&self, began: Nanos, ended: Nanos) -> Result<Drawn, MeterError> {
        let window = ended - began;
        let readings = self.taken.len() as u64;
        let too_few = MeterError::TooFew { readings, window };
        let (Some(&(first, _)), Some(&(last, _))) = (self.taken.first(), self.taken.last()) else {
            return Err(too_few);
        };
        let between = (last - first).as_nanos() as f64;
        if between <= 0.0 {
            return Err(too_few);
        }
        let area: f64 = self
            .taken
            .windows(2)
            .map(|pair| {
                let time = (pair[1].0 - pair[0].0).as_nanos() as f64;
                time * f64::midpoint(pair[0].1, pair[1].1)
            })
            .sum();
        let mean_uw = area / between;
        let squares = self
            .taken
            .iter()
            .map(|(_, power)| (power - mean_uw).powi(2));
        let scatter = (squares.sum::<f64>() / (readings - 1).max(1) as f64).sqrt();
        let step_uw = self.divisor as f64 * self.unit_uw;
        Ok(Drawn {
            // µW · ns are fJ.
            energy: NanoJoules::from_nanojoules(
                (mean_uw * window.as_nanos() as f64 / 1e6).round() as i64
            ),
            readings,
            scatter_uw: scatter.round() as u64,
            step_uw: (!self.is_one_value).then(|| step_uw.round() as u64),
        })
    }
}

/// The greatest common divisor (Euclid); 0 has all divisors.
fn divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_millis(1_000);

    #[test]
    fn a_mean_is_taken_over_the_time_of_each_reading() {
        let mut readings = PowerReadings::default();
        for (at, value) in [(0, 6), (1_000, 6), (2_000, 12), (4_000, 12)] {
            readings.add(Nanos::from_millis(at), value, 1_000.0);
        }
        let drawn = readings
            .drawn(Nanos::ZERO, Nanos::from_millis(4_000))
            .expect("four");
        // 6 mW for a second, a second between, and 12 mW for two.
        assert_eq!(drawn.energy, NanoJoules::from_nanojoules(39_000_000));
        assert_eq!((drawn.readings, drawn.step_uw), (4, Some(6_000)));
    }

    #[test]
    fn one_reading_is_no_average_and_one_value_tells_no_step() {
        let mut readings = PowerReadings::default();
        readings.add(SECOND, 5, 1.0);
        assert!(readings.drawn(Nanos::ZERO, SECOND).is_err());
        readings.add(SECOND + SECOND, 5, 1.0);
        let drawn = readings.drawn(SECOND, SECOND + SECOND).expect("two");
        assert_eq!((drawn.step_uw, drawn.scatter_uw), (None, 0));
        readings.begin();
        assert!(readings.drawn(Nanos::ZERO, SECOND).is_err());
    }
}

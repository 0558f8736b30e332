//! The power gauge of a simulated device: what it draws, seen late, in steps, beside the mark, and averaged over a while.

use layerlab_profiles::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use sha2::{Digest, Sha256};

use super::drawing::Drawing;

/// A gauge, as a device file plants it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauge {
    /// What the device draws while it idles, and beside its processors while these work.
    pub idle_watts: f64,
    /// Readings are multiples of this.
    pub step_watts: f64,
    /// How often there is a new reading, which is the mean since the one before.
    pub period: Nanos,
    /// How late that is.
    pub delay: Nanos,
    /// By how much readings are too high.
    pub offset_watts: f64,
    /// The standard deviation of what else a reading is off.
    pub noise_watts: f64,
    /// Whether the device is powered from outside, so that its gauge proves nothing.
    pub powered: bool,
}

impl Gauge {
    /// The reading with this number, in steps.
    pub(super) fn reading(&self, number: u64, drawing: &Drawing, night: u64) -> i64 {
        let shown = number * self.period.as_nanos();
        let ended = Nanos::from_nanos(shown) - self.delay;
        let began = ended - self.period;
        let seconds = (ended - began).as_nanos() as f64 / 1e9;
        let watts = match seconds > 0.0 {
            true => (drawing.joules(ended) - drawing.joules(began)) / seconds,
            false => self.idle_watts,
        };
        let noise: f64 = random(night, number).sample(StandardNormal);
        ((watts + self.offset_watts + self.noise_watts * noise) / self.step_watts).round() as i64
    }
}

/// Noise is a function of a reading's number and of the run, whenever it is read.
fn random(night: u64, number: u64) -> ChaCha8Rng {
    let mut hash = Sha256::new();
    hash.update(b"layerlab gauge 1\0");
    hash.update(night.to_le_bytes());
    hash.update(number.to_le_bytes());
    ChaCha8Rng::from_seed(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_millis(1_000);

    #[test]
    fn a_reading_is_late_in_steps_and_off() {
        let gauge = Gauge {
            idle_watts: 1.0,
            step_watts: 0.5,
            period: SECOND,
            delay: Nanos::from_millis(500),
            offset_watts: 0.3,
            noise_watts: 0.0,
            powered: false,
        };
        let mut drawing = Drawing::default();
        drawing.pass(SECOND, 1.0);
        drawing.pass(SECOND + SECOND, 3.0);
        // At 2 s the mean from 0.5 s to 1.5 s: 2 W, and 0.3 W too much, in steps of 0.5 W.
        assert_eq!(gauge.reading(2, &drawing, 1), 5);
    }
}

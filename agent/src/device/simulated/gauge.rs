//! The power gauge of a simulated device: what it draws, seen late, in steps, beside the mark, and averaged over a while.

use std::collections::VecDeque;

use layerlab_profiles::Nanos;
use layerlab_profiles::energy::{Meter, MeterSource};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;
use sha2::{Digest, Sha256};

use super::shared::SharedDevice;
use crate::device::power::{Drawn, MeterError, PowerMeter, PowerReadings};

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

/// What a device has drawn until now, as far back as its gauge still looks.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    /// When the power changed last, and the energy in joules until then. The power is the same between two of them.
    until: VecDeque<(Nanos, f64)>,
    watts: f64,
}

impl Drawing {
    /// Since it was told last, until now, the device drew so many watts.
    pub(super) fn pass(&mut self, now: Nanos, watts: f64) {
        let (at, joules) = self.until.back().copied().unwrap_or_default();
        if now <= at {
            return;
        }
        let joules = joules + watts * (now - at).as_nanos() as f64 / 1e9;
        if self.until.len() > 1 && self.watts.to_bits() == watts.to_bits() {
            self.until.pop_back();
        } else if self.until.is_empty() {
            self.until.push_back((at, 0.0));
        }
        self.watts = watts;
        self.until.push_back((now, joules));
    }

    /// The energy in joules until some moment that was passed.
    fn joules(&self, at: Nanos) -> f64 {
        let after = self.until.partition_point(|&(until, _)| until < at);
        match (
            after.checked_sub(1).map(|one| self.until[one]),
            self.until.get(after),
        ) {
            (Some((begin, least)), Some(&(end, most))) => {
                let share = (at - begin).as_nanos() as f64 / (end - begin).as_nanos() as f64;
                least + (most - least) * share
            }
            (Some((_, joules)), None) | (None, Some(&(_, joules))) => joules,
            (None, None) => 0.0,
        }
    }

    /// Forgets what was before some moment.
    fn forget(&mut self, before: Nanos) {
        while self.until.len() > 2 && self.until[1].0 < before {
            self.until.pop_front();
        }
    }
}

/// The gauge as it is read.
pub(super) struct SimulatedMeter {
    device: SharedDevice,
    gauge: Gauge,
    readings: PowerReadings,
    began: Nanos,
}

impl SimulatedMeter {
    pub(super) fn of(device: SharedDevice) -> Result<SimulatedMeter, MeterError> {
        let gauge = device.file().gauge.ok_or(MeterError::NoGauge)?;
        if gauge.powered {
            return Err(MeterError::Powered);
        }
        Ok(SimulatedMeter {
            device,
            gauge,
            readings: PowerReadings::default(),
            began: Nanos::ZERO,
        })
    }
}

impl Gauge {
    /// The reading with this number, in steps.
    fn reading(&self, number: u64, drawing: &Drawing, night: u64) -> i64 {
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

impl PowerMeter for SimulatedMeter {
    fn meter(&self) -> Meter {
        Meter {
            source: MeterSource::Simulated,
            name: "gauge".to_owned(),
            settle_ns: self.gauge.delay + self.gauge.period + self.gauge.period,
        }
    }

    fn begin(&mut self, now: Nanos) -> Result<(), MeterError> {
        let looks_back = self.gauge.delay + self.gauge.period + self.gauge.period;
        self.device.state().drawing.forget(now - looks_back);
        self.readings.begin();
        self.began = now;
        Ok(())
    }

    fn poll(&mut self, _now: Nanos) -> Result<(), MeterError> {
        Ok(())
    }

    fn end(&mut self, now: Nanos) -> Result<Drawn, MeterError> {
        let mut state = self.device.state();
        state.settle(0.0);
        let night = state.night;
        let period = self.gauge.period.as_nanos();
        let first = self.began.as_nanos().div_ceil(period);
        for number in first..=now.as_nanos() / period {
            let steps = self.gauge.reading(number, &state.drawing, night);
            let at = Nanos::from_nanos(number * period);
            self.readings.add(at, steps, self.gauge.step_watts * 1e6);
        }
        drop(state);
        self.readings.drawn(self.began, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = Nanos::from_millis(1_000);

    #[test]
    fn what_was_drawn_is_known_between_changes() {
        let mut drawing = Drawing::default();
        let at = Nanos::from_millis;
        drawing.pass(at(1_000), 2.0);
        drawing.pass(at(1_500), 2.0);
        drawing.pass(at(2_500), 5.0);
        assert_eq!(drawing.until.len(), 3, "what is the same is kept once");
        for (millis, joules) in [
            (0, 0.0),
            (500, 1.0),
            (1_500, 3.0),
            (2_000, 5.5),
            (2_500, 8.0),
        ] {
            assert_eq!(drawing.joules(at(millis)), joules, "{millis}");
        }
        drawing.forget(at(2_000));
        assert_eq!(drawing.joules(at(2_000)), 5.5);
    }

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

//! A simulated device's gauge as the agent reads it: readings come by the device's clock, whenever they are asked for.

use layerlab_profiles::Nanos;
use layerlab_profiles::energy::{Meter, MeterSource};

use super::gauge::Gauge;
use super::shared::SharedDevice;
use crate::device::power::{Drawn, MeterError, PowerMeter, PowerReadings};

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

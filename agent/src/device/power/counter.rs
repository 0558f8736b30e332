//! A meter that counts energy.

use layerlab_profiles::energy::Meter;
use layerlab_profiles::{NanoJoules, Nanos};

use super::{Drawn, MeterError, PowerMeter};

/// Counters are looked at so often, so that none wraps twice unseen.
const EVERY: Nanos = Nanos::from_millis(1_000);

/// Something that counts energy.
pub(super) trait EnergySource: Send {
    /// Since it was opened, in µJ, and when it was counted, by whatever clock it has; `now` is the device's.
    fn read(&mut self, now: Nanos) -> Result<Counted, MeterError>;
}

/// What was counted until some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) at: Nanos,
    pub(super) microjoules: u64,
}

/// A meter of that.
pub(super) struct CounterMeter<S> {
    meter: Meter,
    source: S,
    began: Nanos,
    looked: Nanos,
    first: Counted,
}

impl<S: EnergySource> CounterMeter<S> {
    pub(super) fn of(meter: Meter, mut source: S) -> Result<CounterMeter<S>, MeterError> {
        let first = source.read(Nanos::ZERO)?;
        Ok(CounterMeter {
            meter,
            source,
            began: Nanos::ZERO,
            looked: Nanos::ZERO,
            first,
        })
    }
}

impl<S: EnergySource> PowerMeter for CounterMeter<S> {
    fn meter(&self) -> Meter {
        self.meter.clone()
    }

    fn begin(&mut self, now: Nanos) -> Result<(), MeterError> {
        self.first = self.source.read(now)?;
        (self.began, self.looked) = (now, now);
        Ok(())
    }

    fn poll(&mut self, now: Nanos) -> Result<(), MeterError> {
        if now >= self.looked + EVERY {
            self.looked = now;
            self.source.read(now)?;
        }
        Ok(())
    }

    fn end(&mut self, now: Nanos) -> Result<Drawn, MeterError> {
        let last = self.source.read(now)?;
        let window = now - self.began;
        let counted_for = (last.at - self.first.at).as_nanos() as f64;
        if counted_for <= 0.0 {
            let readings = 1;
            return Err(MeterError::TooFew { readings, window });
        }
        let microjoules = last.microjoules.saturating_sub(self.first.microjoules) as f64;
        let of_window = microjoules * window.as_nanos() as f64 / counted_for;
        Ok(Drawn {
            energy: NanoJoules::from_nanojoules((of_window * 1e3).round() as i64),
            readings: 2,
            scatter_uw: 0,
            step_uw: None,
        })
    }
}

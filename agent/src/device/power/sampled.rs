//! A meter whose power is looked at again and again.

use layerlab_profiles::Nanos;
use layerlab_profiles::energy::Meter;

use super::{Drawn, MeterError, PowerMeter, PowerReadings};

/// Meters of this sort renew their value a few times a second at most, and looking costs little then.
const EVERY: Nanos = Nanos::from_millis(100);

/// Something whose power can be read now.
pub(super) trait PowerSource: Send {
    /// The power, as a number in a unit of so many µW.
    fn read(&mut self) -> Result<(i64, f64), MeterError>;

    /// Refuses what proves nothing now.
    fn refuse_unless_telling(&mut self) -> Result<(), MeterError> {
        Ok(())
    }
}

/// A meter of that.
pub(super) struct SampledMeter<S> {
    meter: Meter,
    source: S,
    readings: PowerReadings,
    began: Nanos,
}

impl<S: PowerSource> SampledMeter<S> {
    pub(super) fn of(meter: Meter, mut source: S) -> Result<SampledMeter<S>, MeterError> {
        source.refuse_unless_telling()?;
        source.read()?;
        Ok(SampledMeter {
            meter,
            source,
            readings: PowerReadings::default(),
            began: Nanos::ZERO,
        })
    }

    fn take(&mut self, now: Nanos) -> Result<(), MeterError> {
        let (value, unit_uw) = self.source.read()?;
        self.readings.add(now, value, unit_uw);
        Ok(())
    }
}

impl<S: PowerSource> PowerMeter for SampledMeter<S> {
    fn meter(&self) -> Meter {
        self.meter.clone()
    }

    fn begin(&mut self, now: Nanos) -> Result<(), MeterError> {
        self.readings.begin();
        self.began = now;
        self.take(now)
    }

    fn poll(&mut self, now: Nanos) -> Result<(), MeterError> {
        match self.readings.last() {
            Some(last) if now < last + EVERY => Ok(()),
            _ => self.take(now),
        }
    }

    fn end(&mut self, now: Nanos) -> Result<Drawn, MeterError> {
        self.take(now)?;
        // It may have been plugged in meanwhile.
        self.source.refuse_unless_telling()?;
        self.readings.drawn(self.began, now)
    }
}

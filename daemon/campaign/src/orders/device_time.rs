//! How much of a device's time a part of a run has taken.

use layerlab_profiles::Nanos;
use layerlab_profiles::document::Sample;

/// Device time, by the device's own clock.
#[derive(Default)]
pub(super) struct DeviceTime {
    total: Nanos,
    last: Option<Nanos>,
}

impl DeviceTime {
    /// Counts what passed since the sample before. A clock that has gone back was started anew, and what
    /// passed in between is not known.
    pub(super) fn count(&mut self, sample: &Sample) {
        let end = sample.started + sample.duration;
        let since = self.last.map_or(sample.duration, |last| end - last);
        self.total = self.total + since;
        self.last = Some(end);
    }

    /// What passed until then was spent on something else.
    pub(super) fn leave_out(&mut self, until: Nanos) {
        self.last = self.last.map(|_| until);
    }

    /// All that was counted.
    pub(super) fn total(&self) -> Nanos {
        self.total
    }
}

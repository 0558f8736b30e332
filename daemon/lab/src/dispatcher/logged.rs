//! What happens, in the daemon's log: each event once it is in the store, with its job, its run and its device.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::record::{Event, RecordChange, What};

/// The events among `changes`.
pub(super) fn events(changes: &[RecordChange]) -> Vec<Event> {
    let events = changes.iter().filter_map(|change| match change {
        RecordChange::Event(event) => Some(event.clone()),
        _ => None,
    });
    events.collect()
}

/// Writes them to the log.
pub(super) fn log(events: &[Event]) {
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    for event in events {
        let words = event.what.words(now, &zone);
        let (job, run, device) = (event.job, event.run, event.device.as_deref());
        match &event.what {
            // The daemon says these itself.
            What::DaemonStarted { .. } | What::DaemonStopped { .. } => {}
            What::Failed { .. }
            | What::AttemptFailed { .. }
            | What::Quarantined { .. }
            | What::Trouble { .. }
            | What::Worse { .. } => {
                tracing::warn!(job, run, device, "{words}");
            }
            _ => tracing::info!(job, run, device, "{words}"),
        }
    }
}

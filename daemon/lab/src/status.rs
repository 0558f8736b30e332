//! How the lab is now, for whoever asks.

mod elsewhere;
mod waiting;

use jiff::{SignedDuration, Timestamp};

use super::record::Run;
use super::state::{LabState, Place, Work};
use super::talk::{DeviceState, DeviceStatus, Status};
use elsewhere::Elsewhere;

/// How the lab is at `now`.
pub(super) fn status(state: &LabState, trouble: Option<String>, now: Timestamp) -> Status {
    let elsewhere = Elsewhere::of(state);
    let devices = state.kept.devices.keys().filter_map(|name| {
        let elsewhere = elsewhere.device(name, now);
        elsewhere.or_else(|| device(state, name, now))
    });
    Status {
        host: state.kept.host.clone(),
        trouble,
        devices: devices.collect(),
        waiting: waiting::waiting(state, now),
        impossible: waiting::impossible(state),
        counts: state.counts.clone(),
    }
}

/// A device that is there, or taken.
fn device(state: &LabState, name: &str, now: Timestamp) -> Option<DeviceStatus> {
    let known = state.kept.devices.get(name)?;
    let place = state.places.get(name);
    let reserved = state.reservation(name, now);
    let doing = match (place, reserved) {
        (Some(place), _) if place.work != Work::Free => busy(place),
        (place, Some(reserved)) => Doing {
            state: DeviceState::Reserved,
            since: place.map_or(reserved.from, |place| reserved.from.max(place.changed)),
            reason: Some(reserved.note.clone()),
        },
        (Some(place), None) => idle(state, name, place, now),
        (None, None) => return None,
    };
    let run = place.and_then(|place| place.work.run());
    let free_at = match (doing.state, reserved) {
        (_, Some(reserved)) => Some(reserved.until),
        (DeviceState::Quarantined, _) => state.left_alone(name, now).map(|entry| entry.until),
        (DeviceState::Busy, _) => run.and_then(|run| free_at(place?, &state.kept.runs[&run], now)),
        _ => None,
    };
    Some(DeviceStatus {
        device: known.clone(),
        host: place.and(state.kept.host.clone()),
        state: doing.state,
        since: doing.since.min(now),
        reason: doing.reason.filter(|reason| !reason.is_empty()),
        run,
        progress: place.filter(|_| run.is_some()).map(|place| place.progress),
        journal_kept_at: place
            .filter(|_| run.is_some())
            .and_then(|place| place.journal_kept_at),
        read: place.and_then(|place| place.read.clone()),
        free_at,
    })
}

/// What a device is doing, since when, and why.
struct Doing {
    state: DeviceState,
    since: Timestamp,
    reason: Option<String>,
}

/// A device with a run.
fn busy(place: &Place) -> Doing {
    let (state, since, reason) = match (place.work, &place.not_ready) {
        (Work::Leaving(_), _) => (DeviceState::Parking, place.changed, None),
        (_, Some(reason)) => (DeviceState::Waiting, place.changed, Some(reason.clone())),
        _ if !place.is_there => {
            let back = "its run goes on when it is back".to_owned();
            (DeviceState::Gone, place.since, Some(back))
        }
        _ => (DeviceState::Busy, place.changed, None),
    };
    Doing {
        state,
        since,
        reason,
    }
}

/// A device without a run that nobody has taken.
fn idle(state: &LabState, name: &str, place: &Place, now: Timestamp) -> Doing {
    let left_alone = state.left_alone(name, now);
    let (state, since, reason) = match left_alone {
        _ if !place.is_there => (DeviceState::Gone, place.since, None),
        Some(entry) => (DeviceState::Quarantined, entry.since, Some(entry.why())),
        None => (
            DeviceState::Free,
            place
                .since
                .max(place.changed)
                .max(state.last_quarantine(name)),
            None,
        ),
    };
    Doing {
        state,
        since,
        reason,
    }
}

/// When the run on a device will be over if it takes as long as such runs usually do there; not of one that takes longer.
fn free_at(place: &Place, run: &Run, now: Timestamp) -> Option<Timestamp> {
    let left = place.usual_wall_ms?.saturating_sub(run.spent.wall_ms);
    let left = SignedDuration::from_millis(i64::try_from(left).ok()?);
    let end = place.begun.checked_add(place.waited).ok()?;
    let end = end.checked_add(left).ok()?;
    (end > now).then_some(end)
}

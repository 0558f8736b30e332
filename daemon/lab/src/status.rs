//! How the lab is now, for whoever asks.

use jiff::{SignedDuration, Timestamp};

use super::record::{Device, Job, Run, RunState};
use super::state::{LabState, Place, Work};
use super::talk::{DeviceState, DeviceStatus, Status};

/// How the lab is at `now`.
pub(super) fn status(state: &LabState, trouble: Option<String>, now: Timestamp) -> Status {
    let devices = state.kept.devices.values();
    let devices = devices.filter_map(|device| {
        let place = state.places.get(&device.name);
        let reserved = state.reservation(&device.name, now);
        if place.is_none() && reserved.is_none() {
            return None;
        }
        let (doing, reason) = match (place, reserved) {
            (Some(place), _) if place.work != Work::Free => busy(place),
            (_, Some(reserved)) => (DeviceState::Reserved, Some(reserved.note.clone())),
            (Some(place), None) => idle(place, now),
            (None, None) => (DeviceState::Gone, None),
        };
        let run = place.and_then(|place| place.work.run());
        Some(DeviceStatus {
            device: device.clone(),
            state: doing,
            since: place.map_or(now, |place| place.since),
            reason: reason.filter(|reason| !reason.is_empty()),
            run,
            progress: place.filter(|_| run.is_some()).map(|place| place.progress),
            free_at: match reserved {
                Some(reserved) => Some(reserved.until),
                None => run.and_then(|run| free_at(place?, state.kept.runs.get(&run)?, now)),
            },
        })
    });
    let waiting = state.waiting.values().flatten().filter_map(|&number| {
        let (job, run) = state.run(number)?;
        Some((number, why_waiting(state, job, run, now)))
    });
    Status {
        trouble,
        devices: devices.collect(),
        waiting: waiting.collect(),
    }
}

/// Why a run is on no device.
fn why_waiting(state: &LabState, job: &Job, run: &Run, now: Timestamp) -> String {
    if let Some(why) = state.held_back(job, now) {
        return why;
    }
    let mut meant: Vec<&Device> = (state.kept.devices.values())
        .filter(|device| state.suits(job, run, device))
        .collect();
    let home = meant.iter().position(|device| {
        run.state == RunState::Parked && run.phone.as_ref() == Some(&device.name)
    });
    if let Some(home) = home {
        meant = vec![meant[home]];
    }
    if meant.is_empty() {
        return match &run.only {
            Some(only) => format!("{only} was never seen"),
            None => format!("no device is {}", job.spec.devices[run.selector]),
        };
    }
    let how = |device: &&Device| {
        let place = state.places.get(&device.name);
        let word = match place {
            None => DeviceState::Gone,
            Some(place) if place.work != Work::Free => DeviceState::Busy,
            Some(_) if state.reservation(&device.name, now).is_some() => DeviceState::Reserved,
            Some(place) => idle(place, now).0,
        };
        format!("{} is {word}", device.name)
    };
    meant.iter().map(how).collect::<Vec<_>>().join(", ")
}

fn busy(place: &Place) -> (DeviceState, Option<String>) {
    match (place.work, &place.not_ready) {
        (Work::Leaving(_), _) => (DeviceState::Parking, None),
        (_, Some(reason)) => (DeviceState::Waiting, Some(reason.clone())),
        _ if !place.is_there => (
            DeviceState::Gone,
            Some("its run goes on when it is back".to_owned()),
        ),
        _ => (DeviceState::Busy, None),
    }
}

fn idle(place: &Place, now: Timestamp) -> (DeviceState, Option<String>) {
    match &place.rests {
        _ if !place.is_there => (DeviceState::Gone, None),
        Some((until, reason)) if *until > now => (DeviceState::Quarantined, Some(reason.clone())),
        _ => (DeviceState::Free, None),
    }
}

/// When the run on a device will be over if it takes as long as such runs usually do there.
fn free_at(place: &Place, run: &Run, now: Timestamp) -> Option<Timestamp> {
    let left = place.usual_wall_ms?.saturating_sub(run.spent.wall_ms);
    let end = run
        .started?
        .checked_add(SignedDuration::from_millis(left as i64))
        .ok()?;
    Some(end.max(now))
}

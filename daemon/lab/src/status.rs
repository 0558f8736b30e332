//! How the lab is now, for whoever asks.

use jiff::{SignedDuration, Timestamp};

use super::record::{Device, Job, Run, RunState};
use super::state::{Place, State, Work};
use super::talk::{DeviceStatus, Status};

/// How the lab is at `now`.
pub(super) fn status(state: &State, trouble: Option<String>, now: Timestamp) -> Status {
    let devices = state.kept.devices.values();
    let devices = devices.filter_map(|device| {
        let place = state.places.get(&device.name);
        let reserved = state.reservation(&device.name, now);
        if place.is_none() && reserved.is_none() {
            return None;
        }
        let (word, reason) = match (place, reserved) {
            (Some(place), _) if place.work != Work::Free => busy(place),
            (_, Some(reserved)) => ("reserved", Some(reserved.note.clone())),
            (Some(place), None) => idle(place, now),
            (None, None) => ("gone", None),
        };
        let run = place.and_then(|place| place.work.run());
        Some(DeviceStatus {
            device: device.clone(),
            state: word.to_owned(),
            since: place.map_or(now, |place| place.since),
            reason: reason.filter(|reason| !reason.is_empty()),
            run,
            progress: place.filter(|_| run.is_some()).map(|place| place.progress),
            free_at: match reserved {
                Some(reserved) => Some(reserved.until),
                None => run.and_then(|run| free_at(state, state.kept.runs.get(&run)?, now)),
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
fn why_waiting(state: &State, job: &Job, run: &Run, now: Timestamp) -> String {
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
            None => "gone",
            Some(place) if place.work != Work::Free => "busy",
            Some(_) if state.reservation(&device.name, now).is_some() => "reserved",
            Some(place) => idle(place, now).0,
        };
        format!("{} is {word}", device.name)
    };
    meant.iter().map(how).collect::<Vec<_>>().join(", ")
}

fn busy(place: &Place) -> (&'static str, Option<String>) {
    match (place.work, &place.not_ready) {
        (Work::Leaving(_), _) => ("parking", None),
        (_, Some(reason)) => ("waiting", Some(reason.clone())),
        _ if !place.is_there => ("gone", Some("its run goes on when it is back".to_owned())),
        _ => ("busy", None),
    }
}

fn idle(place: &Place, now: Timestamp) -> (&'static str, Option<String>) {
    match &place.rests {
        _ if !place.is_there => ("gone", None),
        Some((until, reason)) if *until > now => ("quarantined", Some(reason.clone())),
        _ => ("free", None),
    }
}

/// When a run will be over if it takes as long as the median of those of the same model, as long as such there are.
fn free_at(state: &State, run: &Run, now: Timestamp) -> Option<Timestamp> {
    let model = |run: &Run| {
        let job = state.kept.jobs.get(&run.job)?;
        Some((&job.spec.models.get(run.model)?.sha256, &job.spec.measure))
    };
    let wanted = model(run)?;
    let mut took: Vec<u64> = state
        .kept
        .runs
        .values()
        .filter(|past| past.state == RunState::Done && past.phone == run.phone)
        .filter(|past| model(past) == Some(wanted))
        .map(|past| past.spent.wall_ms)
        .collect();
    took.sort_unstable();
    let median = *took.get(took.len() / 2)?;
    let left = median.saturating_sub(run.spent.wall_ms);
    let end = run
        .started?
        .checked_add(SignedDuration::from_millis(left as i64))
        .ok()?;
    Some(end.max(now))
}

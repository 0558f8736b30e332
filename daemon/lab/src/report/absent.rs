//! Why a run has given nothing.

use jiff::Timestamp;

use super::history::History;
use super::{Absent, device_of};
use crate::record::{Device, Job, JobState, Kept, Run, RunState, What};
use crate::window::WindowState;

/// The run's own reason if it has one, else what can be seen from outside.
pub(super) fn explain(kept: &Kept, history: &History, job: &Job, run: &Run) -> Absent {
    if run.ended.is_some_and(|ended| ended > history.until) {
        return because("it ended after the time that this report is about");
    }
    if let Some(starved) = run.starved() {
        return because(&starved);
    }
    if let Some(reason) = &run.reason {
        return because(reason);
    }
    match run.state {
        RunState::Queued => wait(kept, history, job, run),
        RunState::Running => because(&format!("it is on {}", device_of(job, run))),
        RunState::Parked => {
            because(last_reason(history, run).unwrap_or("it was left between two blocks"))
        }
        RunState::Failed => because(last_reason(history, run).unwrap_or("it was given up")),
        RunState::Cancelled => because("its job was cancelled"),
        RunState::Expired => because("its job's deadline came first"),
        // A run that is done before the end of the report is published.
        RunState::Done => because(&format!(
            "its {} was published later",
            job.spec.kind().given(1)
        )),
    }
}

fn because(reason: &str) -> Absent {
    Absent {
        reason: reason.to_owned(),
        until: None,
    }
}

/// What last kept the run from getting on.
fn last_reason<'a>(history: &History<'a>, run: &Run) -> Option<&'a str> {
    let mut events = history.of_run(run.number).rev();
    events.find_map(|event| match &event.what {
        What::NotReady { reason }
        | What::Parked { reason }
        | What::AttemptFailed { reason }
        | What::Failed { reason } => Some(reason.as_str()),
        _ => None,
    })
}

/// Why a run that is on no device is on none.
fn wait(kept: &Kept, history: &History, job: &Job, run: &Run) -> Absent {
    if job.state == JobState::Paused {
        return because("its job is paused");
    }
    if let Some(from) = job.spec.not_before.filter(|from| *from > history.until) {
        return Absent {
            reason: "its job is not to begin yet".to_owned(),
            until: Some(from),
        };
    }
    if let Some(WindowState::Closed { opens }) =
        (job.spec.window.as_ref()).map(|window| window.state(history.until))
    {
        return Absent {
            reason: "its job's window is closed".to_owned(),
            until: Some(opens),
        };
    }
    let devices: Vec<&Device> = (kept.devices.values())
        .filter(|device| fits(job, run, device))
        .collect();
    if devices.is_empty() {
        return because(&format!(
            "no device that the lab has seen is {}",
            device_of(job, run)
        ));
    }
    let obstacles: Vec<Option<Absent>> = (devices.iter())
        .map(|device| obstacle(kept, history, device))
        .collect();
    let free = devices.iter().zip(&obstacles);
    let free = free.filter(|(_, obstacle)| obstacle.is_none());
    let free: Vec<String> = free.map(|(device, _)| device.label()).collect();
    if !free.is_empty() {
        let turn = format!("it waits for its turn on {}", free.join(", "));
        return match last_reason(history, run) {
            Some(reason) => because(&format!("{turn}; {reason}")),
            None => because(&turn),
        };
    }
    let obstacles = obstacles.into_iter().flatten();
    let (reasons, ends): (Vec<String>, Vec<Option<Timestamp>>) = obstacles
        .map(|absent| (absent.reason, absent.until))
        .unzip();
    Absent {
        reason: reasons.join("; "),
        until: ends.into_iter().flatten().min(),
    }
}

fn fits(job: &Job, run: &Run, device: &Device) -> bool {
    match &run.only {
        Some(only) => *only == device.name && (job.spec.takes_simulated() || !device.simulated),
        None => (job.spec.devices.get(run.selector))
            .is_none_or(|selector| job.spec.means(selector, device)),
    }
}

/// What keeps `device` from any run.
fn obstacle(kept: &Kept, history: &History, device: &Device) -> Option<Absent> {
    let now = history.until;
    let mut quarantines = history.quarantines();
    let quarantine = quarantines.find(|entry| entry.device == device.name && entry.until > now);
    if let Some(entry) = quarantine {
        return Some(Absent {
            reason: format!("{} is left alone: {}", device.label(), entry.reason),
            until: Some(entry.until),
        });
    }
    let mut reservations = kept.reservations.values();
    let taken = reservations
        .find(|taken| taken.device == device.name && taken.from <= now && now < taken.until);
    if let Some(taken) = taken {
        let note = match taken.note.trim() {
            "" => String::new(),
            note => format!(" ({note})"),
        };
        return Some(Absent {
            reason: format!("{} is reserved{note}", device.label()),
            until: Some(taken.until),
        });
    }
    history.gone_since(&device.name)?;
    Some(because(&format!("{} is away", device.label())))
}

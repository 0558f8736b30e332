//! What devices did, and who took them.

use std::collections::BTreeSet;

use super::history::History;
use super::{DeviceReport, Reserved, counted};
use crate::record::{Kept, Run, RunState, Spent, What};

/// Every device that had work, or that something happened to.
pub(super) fn reports(kept: &Kept, history: &History) -> Vec<DeviceReport> {
    let worked = kept.runs.values().filter(|run| worked(history, run));
    let mut names: BTreeSet<&str> = worked.filter_map(|run| run.phone.as_deref()).collect();
    names.extend(history.devices());
    let names = names.into_iter();
    names.map(|name| report(kept, history, name)).collect()
}

/// Whether the run was on its device at some time of the report.
fn worked(history: &History, run: &Run) -> bool {
    let began = run.started.is_some_and(|started| started <= history.until);
    let over = run.state.is_over();
    began && (!over || run.ended.is_some_and(|ended| ended >= history.since))
}

fn report(kept: &Kept, history: &History, name: &str) -> DeviceReport {
    let runs: Vec<&Run> = (kept.runs.values())
        .filter(|run| run.phone.as_deref() == Some(name) && worked(history, run))
        .collect();
    let mut spent = Spent::default();
    for run in &runs {
        spent += run.spent;
    }
    let in_report = || {
        let events = history.of_device(name);
        events.filter(|event| history.covers(event.at))
    };
    let not_ready = in_report().filter_map(|event| match &event.what {
        What::NotReady { reason } => Some(reason.as_str()),
        _ => None,
    });
    let failed = |what: &What| matches!(what, What::AttemptFailed { .. } | What::Failed { .. });
    let device = kept.devices.get(name);
    let description = device.map_or_else(String::new, |device| device.description.clone());
    DeviceReport {
        name: name.to_owned(),
        simulated: device.is_some_and(|device| device.simulated),
        emulated: false,
        description,
        runs: runs.len(),
        published: runs.iter().filter(|run| is_published(history, run)).count(),
        failed_attempts: in_report().filter(|event| failed(&event.what)).count(),
        spent,
        busy_percent: busy_percent(spent),
        longest_idle: history.longest_idle(name),
        not_ready: counted(not_ready),
        gone_since: history.gone_since(name),
    }
}

fn is_published(history: &History, run: &Run) -> bool {
    run.state == RunState::Done && run.ended.is_some_and(|ended| ended <= history.until)
}

/// In tenths, as more is not known.
fn busy_percent(spent: Spent) -> Option<f64> {
    // Cooling down is reported apart.
    let share =
        spent.busy_ms as f64 / spent.wall_ms.saturating_sub(spent.cool_down_ms).max(1) as f64;
    (spent.wall_ms > 0).then(|| (share * 1000.0).round() / 10.0)
}

/// Who took which device at some time of the report, also what was given back since.
pub(super) fn reservations(kept: &Kept, history: &History) -> Vec<Reserved> {
    let kept = kept.reservations.values().map(|taken| Reserved {
        device: taken.device.clone(),
        from: taken.from,
        until: taken.until,
        note: taken.note.clone(),
        lifted: None,
    });
    let mut all: Vec<Reserved> = Vec::new();
    for event in history.all() {
        match (&event.what, &event.device) {
            (What::Reserved { from, until, note }, Some(device)) => all.push(Reserved {
                device: device.clone(),
                from: *from,
                until: *until,
                note: note.clone(),
                lifted: None,
            }),
            (What::ReservationLifted, Some(device)) => {
                let open = all.iter_mut().filter(|taken| taken.device == *device);
                for taken in open.filter(|taken| taken.lifted.is_none() && taken.until > event.at) {
                    taken.lifted = Some(event.at);
                }
            }
            _ => {}
        }
    }
    for taken in kept {
        if !all.contains(&taken) {
            all.push(taken);
        }
    }
    all.retain(|taken| {
        taken.until > history.since
            && taken.from <= history.until
            && taken.lifted.is_none_or(|lifted| lifted >= history.since)
    });
    all.sort_by(|a, b| (a.from, &a.device).cmp(&(b.from, &b.device)));
    all
}

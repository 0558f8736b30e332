//! The devices of other hosts, as far as the lab's store tells what they are doing.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::record::{Host, LeaseState, Run, RunState};
use crate::state::LabState;
use crate::talk::{DeviceState, DeviceStatus};

/// The devices of other hosts.
pub(super) struct Elsewhere<'a> {
    state: &'a LabState,
    /// The runs that are on devices of other hosts, by the names of those.
    runs: HashMap<&'a str, &'a Run>,
}

impl<'a> Elsewhere<'a> {
    pub(super) fn of(state: &'a LabState) -> Elsewhere<'a> {
        let is_elsewhere = |run: &&Run| {
            run.state == RunState::Running && run.host.is_some() && run.host != state.kept.host
        };
        let runs = state.kept.runs.values().filter(is_elsewhere);
        Elsewhere {
            state,
            runs: runs
                .filter_map(|run| Some((run.phone.as_deref()?, run)))
                .collect(),
        }
    }

    /// How the device `name` is, if another host has it; or had it last, and this one never did.
    pub(super) fn device(&self, name: &str, now: Timestamp) -> Option<DeviceStatus> {
        let state = self.state;
        let place = state.places.get(name);
        if place.is_some_and(|place| place.is_there) {
            return None;
        }
        let had = || state.other_hosts().iter().find(|host| has(host, name));
        let host = state
            .host_of(name)
            .or_else(|| had().filter(|_| place.is_none()))?;
        let run = self.runs.get(name);
        let run = run.filter(|run| run.host.as_ref() == Some(&host.name));
        let since = state.known_elsewhere_since(name).unwrap_or(now);
        let (doing, since, reason) = if host.lease != LeaseState::Alive {
            let gone = now.checked_sub(host.lease_over).unwrap_or(now);
            let absence = state.absence(&host.name, now);
            let reason = absence.map(|absence| format!("host `{}` {absence}", host.name));
            (DeviceState::Gone, gone, reason)
        } else if run.is_some() {
            (DeviceState::Busy, since, None)
        } else if let Some(reserved) = state.reservation(name, now) {
            let note = Some(reserved.note.clone());
            (DeviceState::Reserved, since.max(reserved.from), note)
        } else if let Some(entry) = state.left_alone(name, now) {
            (DeviceState::Quarantined, entry.since, Some(entry.why()))
        } else {
            let since = since.max(state.last_quarantine(name));
            (DeviceState::Free, since, None)
        };
        let free_at = match doing {
            DeviceState::Reserved => state.reservation(name, now).map(|reserved| reserved.until),
            DeviceState::Quarantined => state.left_alone(name, now).map(|entry| entry.until),
            _ => None,
        };
        Some(DeviceStatus {
            device: state.kept.devices.get(name)?.clone(),
            host: Some(host.name.clone()),
            state: doing,
            since: since.min(now),
            reason: reason.filter(|reason| !reason.is_empty()),
            run: run.map(|run| run.number),
            progress: None,
            free_at,
            journal_kept_at: None,
            read: None,
        })
    }
}

fn has(host: &Host, name: &str) -> bool {
    host.devices.iter().any(|device| device == name)
}

//! Phones that are carried from one host to another while a run is in progress on them. The new host claims the run, and goes on
//! with it from what the store has of its journal and from the journal itself, which is on the phone. The old host leaves it.

use jiff::Timestamp;

use super::LabState;
use crate::record::{Device, RunNumber, RunState, What};

impl LabState {
    /// Whether the run is this host's to work on and to change.
    pub(super) fn has_claim(&self, number: RunNumber) -> bool {
        let run = self.kept.runs.get(&number);
        run.is_some_and(|run| run.host == self.kept.host)
    }

    /// Whether the run is over, and was this host's to the end: its device may forget it.
    pub(in super::super) fn is_over_here(&self, number: RunNumber) -> bool {
        let run = self.kept.runs.get(&number);
        run.is_some_and(|run| run.state.is_over()) && self.has_claim(number)
    }

    /// The other host that has claimed a run which is on a device here.
    pub(in super::super) fn claimed_by_another(&self, number: RunNumber) -> Option<&str> {
        let host = self.kept.runs.get(&number)?.host.as_deref()?;
        (self.kept.host.as_deref() != Some(host)).then_some(host)
    }

    /// Whether `device`, which has come, is the phone that the lab knows by its name, and has not been booted since.
    pub(super) fn is_same_phone(&self, device: &Device) -> bool {
        let known = self.kept.devices.get(&device.name);
        device.boot_id.is_some()
            && known.is_some_and(|known| {
                known.boot_id == device.boot_id && known.serial == device.serial
            })
    }

    /// Goes on with the runs that are in progress, by other hosts, on phones that have just come here.
    pub(super) fn take_over_carried(&mut self, phones: &[String], now: Timestamp) {
        if phones.is_empty() {
            return;
        }
        let runs = self.kept.runs.values();
        let running = runs.filter(|run| run.state == RunState::Running);
        let carried = running.filter(|run| {
            let device = run.phone.as_ref();
            let job = self.kept.jobs.get(&run.job);
            self.claimed_by_another(run.number).is_some()
                && device.is_some_and(|device| phones.contains(device))
                && job.is_some_and(|job| self.is_for_this_host(&job.spec))
        });
        let carried: Vec<RunNumber> = carried.map(|run| run.number).collect();
        for number in carried {
            let from = self.claimed_by_another(number).unwrap_or_default();
            let to = self.kept.host.clone();
            let reason = format!(
                "its device was carried from host `{from}` to host `{}`",
                to.as_deref().unwrap_or_default()
            );
            self.set_run(number, |run| {
                run.state = RunState::Parked;
                run.host = to;
                run.reason = Some(reason.clone());
            });
            self.tell_of_run(now, number, What::Parked { reason });
        }
    }
}

#[cfg(test)]
mod tests;

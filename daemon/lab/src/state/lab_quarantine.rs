//! The quarantine of a lab that several hosts share: all of them leave alone whom one does. The lab's store has it, and each host's
//! file says the same, for commands that work without the daemon. What is decided by those, the next daemon tells the lab.

use std::collections::BTreeMap;

use jiff::Timestamp;
use layerlab_farm::quarantine::{Entry, SharedQuarantine};

use super::quarantine::{listed, timestamp};
use super::{Decider, LabState, LeftAlone};
use crate::record::{DeviceQuarantine, RecordChange};

impl LabState {
    /// Whose decision it is that all hosts leave a device alone; nothing if it is this host's matter.
    pub(super) fn in_words(&self, decider: &Decider) -> Option<String> {
        let host = self.kept.host.as_ref()?;
        match decider {
            Decider::Rest => None,
            Decider::Daemon => Some(format!("host `{host}`")),
            Decider::User(None) => Some(format!("a command on host `{host}`")),
            Decider::User(Some(token)) => Some(format!("`{token}` over the web")),
        }
    }

    /// Has all hosts leave the device `name` alone as `entry` says, and says as what it is listed: by its serial, as hosts may call
    /// it differently.
    pub(super) fn put_in_lab(&mut self, name: &str, entry: &LeftAlone, by: String) -> String {
        let device = self.serial_of(name);
        let quarantine = DeviceQuarantine {
            device: device.clone(),
            reason: entry.reason.clone(),
            since: entry.since,
            until: entry.until,
            by,
        };
        (self.changes).push(RecordChange::Quarantine(quarantine.clone()));
        self.lab_quarantine.insert(device.clone(), quarantine);
        device
    }

    fn serial_of(&self, name: &str) -> String {
        let device = self.known_by(name);
        device.map_or_else(|| name.to_owned(), |device| device.serial.clone())
    }

    /// Has all hosts use the device with these names again.
    pub(super) fn lift_in_lab(&mut self, names: &[String]) {
        for name in names {
            if self.lab_quarantine.remove(name).is_some() {
                let gone = RecordChange::QuarantineGone(name.clone());
                self.changes.push(gone);
            }
        }
    }

    /// Takes in whom the lab leaves alone.
    pub(super) fn follow_quarantine(
        &mut self,
        quarantine: BTreeMap<String, DeviceQuarantine>,
        now: Timestamp,
    ) {
        let before = std::mem::replace(&mut self.lab_quarantine, quarantine);
        for (serial, entry) in before {
            if !self.lab_quarantine.contains_key(&serial) {
                self.used_again(&serial, entry.until.min(now));
            }
        }
        self.left_alone.retain(|_, entry| !entry.is_kept);
        for (serial, entry) in &self.lab_quarantine {
            self.left_alone.insert(serial.clone(), left_alone(entry));
        }
    }

    /// Notes that the device here with this serial is left alone no more since `at`.
    fn used_again(&mut self, serial: &str, at: Timestamp) {
        for (name, place) in &mut self.places {
            let device = self.kept.devices.get(name);
            if name == serial || device.is_some_and(|device| device.serial == serial) {
                place.changed = place.changed.max(at);
            }
        }
    }

    /// Forgets what is over of the lab's quarantine.
    pub fn end_lab_quarantines(&mut self, now: Timestamp) {
        let over = self.lab_quarantine.values();
        let over = over.filter(|entry| entry.until <= now);
        let over: Vec<DeviceQuarantine> = over.cloned().collect();
        for entry in over {
            self.used_again(&entry.device, entry.until);
            self.lift_in_lab(&[entry.device]);
        }
    }

    /// Tells the lab what was decided on this host without its daemon. What the lab has decided of the same device since then
    /// stands.
    pub fn tell_lab(&mut self, host: &SharedQuarantine, now: Timestamp) {
        let is_older = |known: &DeviceQuarantine, at: time::OffsetDateTime| {
            known.since.as_second() <= at.unix_timestamp()
        };
        for lifted in &host.lifted {
            let known = self.lab_quarantine.get(&lifted.phone);
            if known.is_some_and(|known| is_older(known, lifted.at)) {
                self.lift_in_lab(std::slice::from_ref(&lifted.phone));
                self.left_alone.remove(&lifted.phone);
                self.used_again(&lifted.phone, now);
            }
        }
        for entry in &host.of_host {
            let known = self.lab_quarantine.get(&self.serial_of(&entry.phone));
            let Some(by) = self.in_words(&Decider::Daemon) else {
                return;
            };
            if known.is_none_or(|known| is_older(known, entry.since)) {
                let entry_here = LeftAlone {
                    since: timestamp(entry.since),
                    until: timestamp(entry.until),
                    reason: entry.reason.clone(),
                    is_kept: true,
                    by: Some(by.clone()),
                };
                let serial = self.put_in_lab(&entry.phone, &entry_here, by);
                self.left_alone.insert(serial, entry_here);
            }
        }
    }

    /// Whom all hosts leave alone at `now`, as the host's file is to have it.
    pub fn quarantined_by_lab(&self, now: Timestamp) -> Vec<Entry> {
        let entries = self.lab_quarantine.values();
        let entries = entries.filter(|entry| entry.until > now);
        entries
            .map(|entry| listed(&entry.device, &left_alone(entry)))
            .collect()
    }
}

fn left_alone(entry: &DeviceQuarantine) -> LeftAlone {
    LeftAlone {
        since: entry.since,
        until: entry.until,
        reason: entry.reason.clone(),
        is_kept: true,
        by: Some(entry.by.clone()),
    }
}

#[cfg(test)]
mod tests;

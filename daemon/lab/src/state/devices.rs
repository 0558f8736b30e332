//! Devices come, go and rest.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{LabState, Place, Work};
use crate::record::{Device, RecordChange, What};

impl Place {
    pub(super) fn new(now: Timestamp) -> Place {
        Place {
            is_there: true,
            since: now,
            work: Work::Free,
            changed: now,
            begun: now,
            waited: SignedDuration::ZERO,
            not_ready: None,
            read: None,
            has_ended_block: false,
            progress: (0, None),
            journal_kept_at: None,
            usual_wall_ms: None,
        }
    }
}

impl LabState {
    /// These devices can be reached now, and no others.
    pub fn devices(&mut self, there: Vec<Device>, now: Timestamp) {
        let there: BTreeMap<String, Device> = self
            .own_devices(there, now)
            .into_iter()
            .map(|device| (device.name.clone(), device))
            .collect();
        let is_there = |name: &String| self.places.get(name).is_some_and(|place| place.is_there);
        let carried = there.values().filter(|device| !is_there(&device.name));
        let carried = carried.filter(|device| self.is_same_phone(device));
        let carried: Vec<String> = carried.map(|device| device.name.clone()).collect();
        let names: Vec<String> = self.places.keys().cloned().collect();
        for name in names {
            if !there.contains_key(&name) {
                self.set_there(&name, false, now);
            }
        }
        for (name, mut device) in there {
            let known = self.kept.devices.get(&name);
            if device.processors.is_none() {
                device.processors = known.and_then(|known| known.processors.clone());
            }
            if self.kept.devices.get(&name) != Some(&device) {
                self.changes.push(RecordChange::Device(device.clone()));
                self.kept.devices.insert(name.clone(), device);
            }
            if !self.places.contains_key(&name) {
                self.places.insert(name.clone(), Place::new(now));
                self.tell(now, None, None, Some(&name), What::DeviceCame);
            }
            self.set_there(&name, true, now);
        }
        self.take_over_carried(&carried, now);
    }

    fn set_there(&mut self, name: &str, is_there: bool, now: Timestamp) {
        let Some(place) = self.places.get_mut(name) else {
            return;
        };
        if place.is_there == is_there {
            return;
        }
        place.is_there = is_there;
        place.since = now;
        let what = match is_there {
            true => What::DeviceCame,
            false => What::DeviceGone,
        };
        self.tell(now, None, None, Some(name), what);
    }

    /// The processors of a device, as its agent told them.
    pub fn processors(&mut self, name: &str, processors: Vec<String>) {
        let Some(device) = self.kept.devices.get_mut(name) else {
            return;
        };
        if device.processors.as_ref() != Some(&processors) {
            device.processors = Some(processors);
            self.changes.push(RecordChange::Device(device.clone()));
        }
    }
}

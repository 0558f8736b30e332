//! Devices come, go and rest.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{LabState, Place, Work};
use crate::record::{Device, RecordChange, What};

impl Place {
    pub(super) fn new(now: Timestamp) -> Place {
        Place {
            is_there: true,
            since: now,
            work: Work::Free,
            not_ready: None,
            has_ended_block: false,
            progress: (0, None),
            rests: None,
            usual_wall_ms: None,
        }
    }

    /// Whether nothing speaks against using it.
    pub fn is_fit(&self, now: Timestamp) -> bool {
        self.rests.as_ref().is_none_or(|(until, _)| *until <= now)
    }
}

impl LabState {
    /// These devices can be reached now, and no others.
    pub fn devices(&mut self, there: Vec<Device>, now: Timestamp) {
        let there: BTreeMap<String, Device> = there
            .into_iter()
            .map(|device| (device.name.clone(), device))
            .collect();
        let names: Vec<String> = self.places.keys().cloned().collect();
        for name in names {
            if !there.contains_key(&name) {
                self.set_there(&name, false, now);
            }
        }
        for (name, device) in there {
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

    /// Leaves a device alone for a while.
    pub(super) fn rest(&mut self, name: &str, reason: &str, period: Duration, now: Timestamp) {
        let until = SignedDuration::try_from(period)
            .ok()
            .and_then(|period| now.checked_add(period).ok())
            .unwrap_or(Timestamp::MAX);
        if let Some(place) = self.places.get_mut(name) {
            place.rests = Some((until, reason.to_owned()));
        }
        let what = What::Quarantined {
            reason: reason.to_owned(),
            until,
        };
        self.tell(now, None, None, Some(name), what);
    }
}

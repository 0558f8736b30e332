//! Devices that are left alone for a while. What outlives the daemon is in the host's quarantine, which commands without a
//! daemon use as well; while the daemon runs, it is asked, and keeps that file true. Where several hosts share the lab, it is in
//! the lab's store instead (lab_quarantine).

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use layerlab_farm::quarantine::Entry;
use time::OffsetDateTime;

use super::LabState;
use super::commands::refused;
use crate::record::{Device, What};
use crate::talk::{Answer, RefusalCode};

/// Why a device is left alone, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    /// Since when.
    pub since: Timestamp,
    /// When it may be used again.
    pub until: Timestamp,
    /// Why, for a person.
    pub reason: String,
    /// Whether it is in quarantine; otherwise it only rests, which ends with the daemon.
    pub is_kept: bool,
    /// Whose decision it is, for a person, where several hosts share the lab.
    pub by: Option<String>,
}

impl LeftAlone {
    /// Why and, where that is known, by whose decision.
    pub fn why(&self) -> String {
        listed("", self).why()
    }
}

/// Who decides that a device is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decider {
    /// The daemon, while the device only rests, which ends with the daemon.
    Rest,
    /// The daemon, of a device that failed.
    Daemon,
    /// A user: over the web the one with this token, else by a command.
    User(Option<String>),
}

/// What is to change in the host's quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuarantineChange {
    /// A phone comes into it.
    Put(Entry),
    /// The phone with these names leaves it.
    Lift(Vec<String>),
}

impl LabState {
    /// Why and how long the device `name` is left alone at `now`, if it is.
    pub fn left_alone(&self, name: &str, now: Timestamp) -> Option<&LeftAlone> {
        let serial = self.kept.devices.get(name).map(|it| it.serial.as_str());
        let names = std::iter::once(name).chain(serial);
        names
            .filter_map(|name| self.left_alone.get(name))
            .filter(|entry| entry.until > now)
            .max_by_key(|entry| entry.until)
    }

    /// When the last time ended that the device `name` was left alone, or will end.
    pub(crate) fn last_quarantine(&self, name: &str) -> Timestamp {
        let serial = self.kept.devices.get(name).map(|it| it.serial.as_str());
        let names = std::iter::once(name).chain(serial);
        let entries = names.filter_map(|name| self.left_alone.get(name));
        let ends = entries.map(|entry| entry.until);
        ends.max().unwrap_or(Timestamp::MIN)
    }

    /// When each device that is left alone may be used again.
    pub(crate) fn ends_of_quarantines(&self) -> impl Iterator<Item = Timestamp> {
        self.left_alone.values().map(|entry| entry.until)
    }

    /// Leaves a device alone for a while, and says as what it is listed.
    pub(super) fn leave_alone(
        &mut self,
        name: &str,
        reason: &str,
        period: Duration,
        decider: Decider,
        now: Timestamp,
    ) -> Entry {
        let until = SignedDuration::try_from(period)
            .ok()
            .and_then(|period| now.checked_add(period).ok())
            .unwrap_or(Timestamp::MAX);
        let entry = LeftAlone {
            since: now,
            until,
            reason: reason.to_owned(),
            is_kept: decider != Decider::Rest,
            by: self.in_words(&decider),
        };
        let (key, entry) = match entry.by.clone() {
            Some(by) => (self.put_in_lab(name, &entry, by), entry),
            None => (name.to_owned(), entry),
        };
        let entry_here = listed(&key, &entry);
        if entry.is_kept && entry.by.is_none() {
            let put = QuarantineChange::Put(entry_here.clone());
            self.quarantine_changes.push(put);
        }
        self.left_alone.insert(key, entry);
        let what = What::Quarantined {
            reason: reason.to_owned(),
            until,
        };
        self.tell(now, None, None, Some(name), what);
        entry_here
    }

    /// What the host's quarantine says now. It may have been changed by commands that know of no daemon.
    pub fn know_quarantine(&mut self, entries: Vec<Entry>) {
        self.left_alone.retain(|_, entry| !entry.is_kept);
        for entry in entries {
            let left_alone = LeftAlone {
                since: timestamp(entry.since),
                until: timestamp(entry.until),
                reason: entry.reason,
                is_kept: true,
                by: entry.by,
            };
            self.left_alone.insert(entry.phone, left_alone);
        }
    }

    /// Whether anything is to be kept in the host's quarantine.
    pub fn has_quarantine_changes(&self) -> bool {
        !self.quarantine_changes.is_empty()
    }

    /// What changed since this was asked last, to be kept in the host's quarantine.
    pub fn take_quarantine_changes(&mut self) -> Vec<QuarantineChange> {
        std::mem::take(&mut self.quarantine_changes)
    }

    /// Leaves a phone alone because a user wants it: over the web `by` the one with that token.
    pub fn quarantine(
        &mut self,
        phone: &str,
        reason: &str,
        period: Duration,
        by: Option<String>,
        now: Timestamp,
    ) -> Answer {
        let name = self.known_by(phone).map(|device| device.name.clone());
        let name = name.unwrap_or_else(|| phone.to_owned());
        let entry = self.leave_alone(&name, reason, period, Decider::User(by), now);
        Answer::Quarantine {
            entries: vec![entry],
        }
    }

    /// Uses a phone again, by whatever name it was left alone.
    pub fn lift(&mut self, phone: &str, now: Timestamp) -> Answer {
        let names = self.names(phone);
        let before = self.left_alone.len();
        (self.left_alone).retain(|name, entry| !names.contains(name) || entry.until <= now);
        if self.left_alone.len() == before {
            return refused(
                RefusalCode::WrongState,
                &format!("{phone} is not in quarantine; `layerlab quarantine list` says who is"),
            );
        }
        let device = self.known_by(phone).map(|device| device.name.clone());
        match self.kept.host {
            Some(_) => self.lift_in_lab(&names),
            None => self.quarantine_changes.push(QuarantineChange::Lift(names)),
        }
        if let Some(place) = (device.as_ref()).and_then(|name| self.places.get_mut(name)) {
            place.changed = now;
        }
        let device = device.unwrap_or_else(|| phone.to_owned());
        self.tell(now, None, None, Some(&device), What::QuarantineLifted);
        Answer::Done
    }

    /// Everyone who is left alone at `now`.
    pub fn quarantined(&self, now: Timestamp) -> Answer {
        let entries = self.left_alone.iter();
        let entries = entries.filter(|(_, entry)| entry.until > now);
        Answer::Quarantine {
            entries: entries.map(|(name, it)| listed(name, it)).collect(),
        }
    }

    pub(super) fn known_by(&self, phone: &str) -> Option<&Device> {
        let mut devices = self.kept.devices.values();
        devices.find(|device| device.is_called(phone))
    }

    /// All names of a phone: what it is called here, its own serial, and what its adb server calls it.
    fn names(&self, phone: &str) -> Vec<String> {
        let mut names = vec![phone.to_owned()];
        if let Some(device) = self.known_by(phone) {
            let of_server = device.name.split('@').next().unwrap_or_default();
            let known = [device.name.as_str(), &device.serial, of_server];
            names.extend(known.map(str::to_owned));
        }
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// As what a device is listed that is left alone.
pub(super) fn listed(name: &str, entry: &LeftAlone) -> Entry {
    Entry {
        phone: name.to_owned(),
        reason: entry.reason.clone(),
        since: date_time(entry.since),
        until: date_time(entry.until),
        by: entry.by.clone(),
    }
}

/// In whole seconds, as the file has it.
fn date_time(at: Timestamp) -> OffsetDateTime {
    let latest = OffsetDateTime::from_unix_timestamp(253_402_300_799);
    OffsetDateTime::from_unix_timestamp(at.as_second())
        .or(latest)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

pub(super) fn timestamp(at: OffsetDateTime) -> Timestamp {
    Timestamp::from_second(at.unix_timestamp()).unwrap_or(Timestamp::MAX)
}

//! The events that a report is made from, by what they are about.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Quarantined, Stretch};
use crate::record::{Event, JobId, RunNumber, What};

/// Events until the end of a report, the oldest first.
pub(super) struct History<'a> {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
    events: Vec<&'a Event>,
    runs: BTreeMap<RunNumber, Vec<&'a Event>>,
    devices: BTreeMap<&'a str, Vec<&'a Event>>,
    jobs: BTreeSet<JobId>,
}

impl<'a> History<'a> {
    pub(super) fn of(events: &'a [Event], since: Timestamp, until: Timestamp) -> History<'a> {
        let mut events: Vec<&Event> = events.iter().filter(|event| event.at <= until).collect();
        events.sort_by_key(|event| event.number);
        let mut history = History {
            since,
            until,
            events: Vec::new(),
            runs: BTreeMap::new(),
            devices: BTreeMap::new(),
            jobs: BTreeSet::new(),
        };
        for event in &events {
            if let Some(run) = event.run {
                history.runs.entry(run).or_default().push(event);
            }
            if let Some(device) = &event.device {
                history.devices.entry(device).or_default().push(event);
            }
            history.jobs.extend(event.job.filter(|_| event.at >= since));
        }
        history.events = events;
        history
    }

    /// Whether the report is about `at`.
    pub(super) fn covers(&self, at: Timestamp) -> bool {
        (self.since..=self.until).contains(&at)
    }

    /// All events, also those from before.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a Event> {
        self.events.iter().copied()
    }

    /// What happened to a run, also before.
    pub(super) fn of_run(&self, run: RunNumber) -> impl DoubleEndedIterator<Item = &'a Event> {
        self.runs.get(&run).into_iter().flatten().copied()
    }

    /// What happened to a device, also before.
    pub(super) fn of_device(&self, device: &str) -> impl DoubleEndedIterator<Item = &'a Event> {
        self.devices.get(device).into_iter().flatten().copied()
    }

    /// Devices that something happened to.
    pub(super) fn devices(&self) -> impl Iterator<Item = &'a str> {
        let touched = |events: &[&Event]| events.iter().any(|event| self.covers(event.at));
        let devices = self.devices.iter();
        devices.filter_map(move |(device, events)| touched(events).then_some(*device))
    }

    /// Whether something happened to a job.
    pub(super) fn touches(&self, job: JobId) -> bool {
        self.jobs.contains(&job)
    }

    /// Devices that were left alone at some time of the report.
    pub(super) fn quarantines(&self) -> impl Iterator<Item = Quarantined> {
        let mut entries: Vec<Quarantined> = Vec::new();
        for event in &self.events {
            let Some(device) = &event.device else {
                continue;
            };
            match &event.what {
                What::Quarantined { reason, until } => entries.push(Quarantined {
                    device: device.clone(),
                    at: event.at,
                    until: *until,
                    reason: reason.clone(),
                }),
                What::QuarantineLifted => {
                    for entry in entries.iter_mut().filter(|entry| entry.device == *device) {
                        entry.until = entry.until.min(event.at);
                    }
                }
                _ => {}
            }
        }
        entries.retain(|entry| entry.until > self.since);
        entries.into_iter()
    }

    /// Since when a device is away, if it is.
    pub(super) fn gone_since(&self, device: &str) -> Option<Timestamp> {
        let mut events = self.of_device(device).rev();
        let last =
            events.find(|event| matches!(event.what, What::DeviceCame | What::DeviceGone))?;
        (last.what == What::DeviceGone).then_some(last.at)
    }

    /// The longest that a device had nothing to do between two runs.
    pub(super) fn longest_idle(&self, device: &str) -> Option<Stretch> {
        let mut free_since = None;
        let mut longest: Option<Stretch> = None;
        for event in self.of_device(device).filter(|event| self.covers(event.at)) {
            match event.what {
                What::Started { .. } | What::Continued => {
                    let Some(from) = free_since.take() else {
                        continue;
                    };
                    let idle = Stretch {
                        from,
                        until: event.at,
                    };
                    if longest.is_none_or(|known| known.length() < idle.length()) {
                        longest = Some(idle);
                    }
                }
                What::Published { .. }
                | What::VideoPublished { .. }
                | What::LinkPublished { .. }
                | What::Parked { .. }
                | What::AttemptFailed { .. }
                | What::Failed { .. } => free_since = Some(event.at),
                _ => {}
            }
        }
        longest
    }
}

impl Stretch {
    /// How long it is.
    pub fn length(&self) -> std::time::Duration {
        let length = self.until.duration_since(self.from);
        length.try_into().unwrap_or_default()
    }
}

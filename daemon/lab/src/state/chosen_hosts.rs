//! Jobs that choose hosts: their runs are for the devices of those hosts alone.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::LabState;
use crate::job::JobSpec;
use crate::record::LeaseState;
use crate::talk::{Answer, RefusalCode};
use crate::when::moment;

use super::commands::refused;

impl LabState {
    /// Whether this host is one of those that the job is for.
    pub(in super::super) fn is_for_this_host(&self, spec: &JobSpec) -> bool {
        let is_chosen = |host: &String| spec.hosts.contains(host);
        spec.hosts.is_empty() || self.kept.host.as_ref().is_some_and(is_chosen)
    }

    /// Whether the device `name` is one of a host's that the job is for; one that is nowhere now, if it was that host's last.
    pub(in super::super) fn is_on_chosen_host(&self, spec: &JobSpec, name: &str) -> bool {
        if spec.hosts.is_empty() {
            return true;
        }
        if let Some(host) = self.host_of(name) {
            return spec.hosts.contains(&host.name);
        }
        if self.places.contains_key(name) {
            return self.is_for_this_host(spec);
        }
        let mut hosts = self.other_hosts().iter();
        hosts.any(|host| {
            spec.hosts.contains(&host.name) && host.devices.iter().any(|device| device == name)
        })
    }

    /// Why a job that chooses hosts cannot be taken, if it cannot.
    pub(super) fn without_hosts(&self, spec: &JobSpec) -> Option<Answer> {
        let is_alone = !spec.hosts.is_empty() && self.kept.host.is_none();
        is_alone.then(|| {
            refused(
                RefusalCode::UnknownHost,
                "this lab has one host, among which nothing can be chosen; leave `hosts` and --host out, or give the lab a store \
                 that several hosts share",
            )
        })
    }

    /// The hosts that the job is for and that the lab has never seen, each in a sentence with what to do.
    pub(super) fn unknown_hosts(&self, spec: &JobSpec) -> Vec<String> {
        let Some(own) = &self.kept.host else {
            return Vec::new();
        };
        let others = self.other_hosts().iter().map(|host| &host.name);
        let mut known: Vec<&String> = others.chain([own]).collect();
        known.sort();
        let unknown = spec.hosts.iter().filter(|host| !known.contains(host));
        let sentence = |host: &String| {
            let known: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
            format!(
                "the lab has no host `{host}` (it has {}); start a daemon with that name, or cancel the job",
                known.join(", ")
            )
        };
        unknown.map(sentence).collect()
    }

    /// Why a host does not work now, for a person: `is lost since 14:02`; nothing if it works.
    pub(in super::super) fn absence(&self, host: &str, now: Timestamp) -> Option<String> {
        if self.kept.host.as_deref() == Some(host) {
            return None;
        }
        let mut others = self.other_hosts().iter();
        let Some(host) = others.find(|other| other.name == host) else {
            return Some("was never there".to_owned());
        };
        let since = now.checked_sub(host.lease_over).unwrap_or(now);
        let since = moment(since, now, &TimeZone::system());
        match host.lease {
            LeaseState::Alive => None,
            LeaseState::Lost => Some(format!("is lost since {since}")),
            LeaseState::Ended => Some(format!("ended {since}")),
        }
    }

    /// What the runs of a job wait for that is for other hosts.
    pub(in super::super) fn turn_elsewhere(&self, spec: &JobSpec, now: Timestamp) -> String {
        let hosts = spec.hosts.iter();
        let reasons = hosts.map(|host| match self.absence(host, now) {
            None => format!("its turn on host `{host}`"),
            Some(why) => format!("host `{host}`, which {why}"),
        });
        reasons.collect::<Vec<_>>().join(", or ")
    }
}

#[cfg(test)]
mod tests;

//! Other hosts of the lab: what they change is followed, what they have claimed is theirs, and what they leave behind when they
//! are gone is taken up.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::{LabState, note_occurrence};
use crate::record::{
    Device, Host, JobWithRuns, LeaseState, RecordChange, Run, RunNumber, RunState, Spent, What,
};
use crate::store::OthersChanges;

/// What is known of the other hosts, and what they know of this one.
#[derive(Debug, Default)]
pub(in super::super) struct OtherHosts {
    all: Vec<Host>,
    /// Which of them has a device, by the devices' names: its place in `all`.
    owners: HashMap<String, usize>,
    /// Since when it is known that devices of theirs are as they are.
    since: BTreeMap<String, Timestamp>,
    /// The devices that can be reached, be they another host's or not.
    reached: Vec<Device>,
    /// The names of those that are this host's, as the others were told.
    told: Option<Vec<String>>,
    /// Devices of which it was said that another host has them.
    refused: BTreeSet<String>,
    /// When this host began.
    began: Option<Timestamp>,
    /// Hosts whose runs are not waited for any more.
    gone: BTreeSet<String>,
    /// When it was looked for runs that are waited for in vain.
    looked: Option<Timestamp>,
}

/// Whoever shares the lab with other hosts looks as often whether they are alive, and for runs that are waited for in vain,
/// though nothing is heard of them.
pub(crate) const LOOK: SignedDuration = SignedDuration::from_secs(30);

impl LabState {
    /// Parks the runs that were on this host's devices when its daemon ended: they go on from what is known of them. What nobody
    /// had claimed is from before there were hosts.
    pub fn take_up(&mut self) {
        let host = self.kept.host.clone();
        let runs = self.kept.runs.values();
        let left = runs.filter(|run| {
            run.state == RunState::Running && (run.host.is_none() || run.host == host)
        });
        let left: Vec<RunNumber> = left.map(|run| run.number).collect();
        for number in left {
            let host = host.clone();
            self.set_run(number, |run| {
                run.state = RunState::Parked;
                run.host = host;
                run.reason = Some("the daemon ended".to_owned());
            });
        }
    }

    /// Takes in what other hosts have changed before this one's turn.
    pub fn follow(&mut self, others: OthersChanges, now: Timestamp) {
        // There are none.
        let Some(reservations) = others.reservations else {
            return;
        };
        self.hosts.began.get_or_insert(now);
        self.kept.reservations = reservations;
        self.follow_quarantine(others.quarantine, now);
        let (event, job, run) = others.last;
        self.kept.last_event = event.max(self.kept.last_event);
        self.kept.last_job = job.max(self.kept.last_job);
        self.kept.last_run = run.max(self.kept.last_run);
        let devices_changed = !others.devices.is_empty();
        for device in others.devices {
            self.kept.devices.insert(device.name.clone(), device);
        }
        for JobWithRuns { job, runs } in others.jobs {
            if let Some(origin) = job.occurrence_of {
                note_occurrence(&mut self.kept.last_occurrences, origin, job.submitted);
            }
            if job.state.is_over() {
                // It is forgotten here, too.
                self.over.insert(job.id);
                if !self.kept.jobs.contains_key(&job.id) {
                    continue;
                }
            }
            self.put_job(job);
            for run in runs {
                self.follow_run(run, now);
            }
        }
        for run in others.runs {
            if self.kept.jobs.contains_key(&run.job) {
                self.follow_run(run, now);
            }
        }
        let owners_changed = self.follow_hosts(others.hosts, now);
        if (devices_changed || owners_changed) && !self.hosts.reached.is_empty() {
            self.devices(self.hosts.reached.clone(), now);
        }
        self.look_after_claims(now);
    }

    /// Sees now and then, and when a host is given up, that runs are not waited for in vain: all runs are looked at.
    fn look_after_claims(&mut self, now: Timestamp) {
        let gone = self.hosts.all.iter().filter(|host| host.is_given_up);
        let gone: BTreeSet<String> = gone.map(|host| host.name.clone()).collect();
        let is_time = (self.hosts.looked).is_none_or(|at| now.duration_since(at) >= LOOK);
        if !is_time && self.hosts.gone == gone {
            return;
        }
        self.hosts.looked = Some(now);
        self.hosts.gone = gone;
        self.take_over_runs(now);
        self.unclaim(now);
    }

    /// Takes in which other hosts there are, and notes which devices have come to them. Whether others have other devices now.
    fn follow_hosts(&mut self, hosts: Vec<Host>, now: Timestamp) -> bool {
        let before = std::mem::replace(&mut self.hosts.all, hosts);
        let after = &self.hosts.all;
        let has_same = |(one, other): (&Host, &Host)| {
            one.name == other.name && one.lease == other.lease && one.devices == other.devices
        };
        if before.len() == after.len() && before.iter().zip(after).all(has_same) {
            return false;
        }
        for host in after {
            let before = before.iter().find(|before| before.name == host.name);
            let had: BTreeSet<&String> = before.iter().flat_map(|it| &it.devices).collect();
            for device in host.devices.iter().filter(|device| !had.contains(device)) {
                self.hosts.since.insert(device.clone(), now);
            }
        }
        self.hosts.owners.clear();
        for (place, host) in after.iter().enumerate() {
            if host.lease == LeaseState::Alive {
                for device in &host.devices {
                    self.hosts.owners.entry(device.clone()).or_insert(place);
                }
            }
        }
        true
    }

    /// Since when it is known that the device `name`, another host's, is as it is.
    pub(in super::super) fn known_elsewhere_since(&self, name: &str) -> Option<Timestamp> {
        self.hosts.since.get(name).copied()
    }

    fn follow_run(&mut self, run: Run, now: Timestamp) {
        let number = run.number;
        if let Some(device) = &run.phone
            && self
                .kept
                .runs
                .get(&number)
                .is_none_or(|known| known.state != run.state)
        {
            self.hosts.since.insert(device.clone(), now);
        }
        self.kept.runs.insert(number, run);
        self.file(number);
    }

    /// Whether another host has claimed the run. One that was parked on a device that is here now is this host's to go on with.
    pub(in super::super) fn is_elsewhere(&self, run: &Run) -> bool {
        if run.host.is_none() || run.host == self.kept.host {
            return false;
        }
        let place = run.phone.as_ref().and_then(|name| self.places.get(name));
        !place.is_some_and(|place| place.is_there)
    }

    /// The other host that has the device `name` now.
    pub(in super::super) fn host_of(&self, name: &str) -> Option<&Host> {
        let place = self.hosts.owners.get(name)?;
        self.hosts.all.get(*place)
    }

    /// All other hosts that the lab has seen, by their names.
    pub(in super::super) fn other_hosts(&self) -> &[Host] {
        &self.hosts.all
    }

    /// Those of the devices that can be reached that no other host has, which others are told.
    pub(super) fn own_devices(&mut self, reached: Vec<Device>, now: Timestamp) -> Vec<Device> {
        if self.kept.host.is_none() {
            return reached;
        }
        self.hosts.reached.clone_from(&reached);
        let mut own = Vec::with_capacity(reached.len());
        for device in reached {
            let other = self.host_of(&device.name).map(|host| host.name.clone());
            let Some(other) = other else {
                self.hosts.refused.remove(&device.name);
                own.push(device);
                continue;
            };
            if self.hosts.refused.insert(device.name.clone()) {
                let reason = format!(
                    "host `{other}` has a device `{}`, too, so that this one is not used; give it another name, or take it \
                     from one of them",
                    device.name
                );
                self.tell(
                    now,
                    None,
                    None,
                    Some(&device.name),
                    What::Trouble { reason },
                );
            }
        }
        let names: Vec<String> = own.iter().map(|device| device.name.clone()).collect();
        if self.hosts.told.as_ref() != Some(&names) {
            self.hosts.told = Some(names.clone());
            self.changes.push(RecordChange::DevicesHere(names));
        }
        own
    }

    /// Has the runs of hosts that are gone begun anew elsewhere.
    fn take_over_runs(&mut self, now: Timestamp) {
        let gone = &self.hosts.gone;
        let runs = self.kept.runs.values().filter(|run| !run.state.is_over());
        let left = runs.filter_map(|run| {
            let host = run.host.as_deref()?;
            gone.contains(host)
                .then(|| (run.number, run.job, host.to_owned()))
        });
        let left: Vec<_> = left.collect();
        for (number, job, host) in left {
            let reason = format!("host `{host}` is gone");
            self.fail_attempt(number, None, reason, Spent::default(), now);
            self.settle_job(job, number, now);
        }
    }

    /// Lets other hosts have runs that were parked on a device of this one's that is not waited for any more.
    fn unclaim(&mut self, now: Timestamp) {
        let given_up = self.queue.runs().filter(|number| {
            let run = &self.kept.runs[number];
            run.state == RunState::Parked
                && run.host == self.kept.host
                && !self.unpublished.contains_key(number)
                && self.has_given_up(run, now)
        });
        let given_up: Vec<RunNumber> = given_up.collect();
        for number in given_up {
            self.set_run(number, |run| run.host = None);
        }
    }

    fn has_given_up(&self, run: &Run, now: Timestamp) -> bool {
        let Some(name) = run.phone.as_deref() else {
            return true;
        };
        let gone_since = match self.places.get(name) {
            Some(place) if place.is_there => return self.left_alone(name, now).is_some(),
            Some(place) => Some(place.since),
            None => self.hosts.began,
        };
        let patience = SignedDuration::try_from(self.rules.patience);
        let patience = patience.unwrap_or(SignedDuration::MAX);
        gone_since.is_some_and(|since| now.duration_since(since) > patience)
    }
}

#[cfg(test)]
pub(super) mod tests;

//! Labs to which anything happens: what is decided in them is what is found by looking at all runs of all jobs.

use std::collections::BTreeMap;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::plain::decide_plainly;
use super::*;
use crate::record::{Host, JobWithRuns, LeaseState, RecordChange};
use crate::state::{PublicationOutcome, Work};
use crate::store::OthersChanges;

const LABS: u64 = 1000;

const STEPS: usize = 50;

/// Of each host.
const DEVICES: usize = 4;

#[test]
fn what_is_decided_is_what_looking_at_all_runs_finds() {
    let mut seen = Seen::default();
    for seed in 0..LABS {
        let hosts = if seed % 3 == 0 { 2 } else { 1 };
        let mut lab = RandomLab::new(seed, hosts);
        for step in 0..STEPS {
            lab.step();
            for (host, state) in lab.hosts.iter().enumerate() {
                let decisions = decide(state, lab.now);
                let expected = decide_plainly(state, lab.now);
                assert_eq!(decisions, expected, "lab {seed}, step {step}, host {host}");
                seen.add(&decisions);
            }
        }
    }
    // It would be no wonder if nothing were ever to be done.
    assert!(seen.starts > 20_000 && seen.leaves > 2_000, "{seen:?}");
}

#[derive(Debug, Default)]
struct Seen {
    starts: usize,
    leaves: usize,
}

impl Seen {
    fn add(&mut self, decisions: &Decisions) {
        self.starts += decisions.start.len();
        self.leaves += decisions.leave.len();
    }
}

/// One host, or several that share a lab.
struct RandomLab {
    chance: ChaCha8Rng,
    now: Timestamp,
    hosts: Vec<LabState>,
}

impl RandomLab {
    fn new(seed: u64, hosts: usize) -> RandomLab {
        let name = |number: usize| (hosts > 1).then(|| host_name(number));
        let state = |number| {
            let kept = Kept {
                host: name(number),
                ..Kept::default()
            };
            LabState::new(kept, Rules::of(&Config::default()))
        };
        RandomLab {
            chance: ChaCha8Rng::seed_from_u64(seed),
            now: now(),
            hosts: (0..hosts).map(state).collect(),
        }
    }

    /// Something happens on a host, which the others learn of.
    fn step(&mut self) {
        let host = self.chance.random_range(0..self.hosts.len());
        match self.chance.random_range(0..20) {
            0..4 => self.submit(host),
            4 => self.plug(host),
            5..10 => self.act(host),
            10..13 => self.leave(host),
            13 => self.command(host),
            14 => self.take_devices(host),
            15 => self.lack(host),
            16 => self.publish(host),
            17 => self.forget(host),
            _ => self.pass_time(),
        }
        self.tell_others(host);
    }

    fn is_so(&mut self, of_ten: u32) -> bool {
        self.chance.random_ratio(of_ten, 10)
    }

    fn device_name(&mut self, host: usize) -> String {
        format!("{host}{}", self.chance.random_range(0..DEVICES))
    }

    fn later(&mut self) -> Timestamp {
        self.now + SignedDuration::from_mins(self.chance.random_range(1..600))
    }

    fn spec(&mut self) -> JobSpec {
        let devices = (0..self.chance.random_range(1..3)).map(|_| self.selector());
        let mut spec = JobSpec {
            devices: devices.collect(),
            repeats: self.chance.random_range(1..3),
            ..spec(
                self.chance.random_range(1..3),
                self.chance.random_range(0..3),
            )
        };
        if self.is_so(2) {
            spec.deadline = Some(self.later());
        }
        if self.is_so(2) {
            spec.not_before = Some(self.later());
        }
        let windows = ["always", "19:00-21:00 UTC", "22:00-05:00 UTC"];
        if self.is_so(4) {
            let window = windows.choose(&mut self.chance).expect("some");
            spec.window = Some(window.parse().expect("a window"));
        }
        if self.is_so(1) {
            spec.every = Some("*/30 * * * * UTC".parse().expect("a recurrence"));
        }
        if self.hosts.len() > 1 && self.is_so(2) {
            let host = self.chance.random_range(0..self.hosts.len());
            spec.hosts = vec![host_name(host)];
        }
        spec
    }

    fn selector(&mut self) -> Selector {
        let serial = self.is_so(2).then(|| self.device_name(0));
        let soc = self
            .is_so(4)
            .then(|| format!("soc{}", self.chance.random_range(0..2)));
        Selector {
            serial,
            soc,
            each: self.is_so(2),
            ..Selector::default()
        }
    }

    fn submit(&mut self, host: usize) {
        let spec = self.spec();
        self.hosts[host].submit(spec, true, self.now);
    }

    /// Devices come and go.
    fn plug(&mut self, host: usize) {
        let mut there = Vec::new();
        for number in 0..DEVICES {
            if self.is_so(8) {
                there.push(Device {
                    soc: Some(format!("soc{}", number % 2)),
                    simulated: number == 3,
                    ..device(&format!("{host}{number}"))
                });
            }
        }
        self.hosts[host].devices(there, self.now);
    }

    /// What is decided is done.
    fn act(&mut self, host: usize) {
        let (now, state) = (self.now, &mut self.hosts[host]);
        state.lapse(now);
        state.recur(now);
        let decisions = decide(state, now);
        for (run, device, reason) in decisions.leave {
            state.leaving(run, &device, &reason, now);
        }
        for (run, device) in decisions.start {
            state.begin(run, &device, now);
            if self.chance.random_ratio(2, 3) {
                state.block_ended(&device, None, now);
            }
        }
    }

    fn leave(&mut self, host: usize) {
        let places = self.hosts[host].places.iter();
        let busy = places.filter(|(_, place)| place.work != Work::Free);
        let busy: Vec<String> = busy.map(|(name, _)| name.clone()).collect();
        let Some(device) = busy.choose(&mut self.chance) else {
            return;
        };
        let reason = "it fell".to_owned();
        let outcome = match self.chance.random_range(0..9) {
            0..3 => StayOutcome::Published {
                folder: PathBuf::from("profile"),
                findings: Vec::new(),
                verdict: None,
            },
            3 => StayOutcome::Parked,
            4 => StayOutcome::NotReady { reason },
            5 => StayOutcome::DeviceFailed { reason },
            6 => StayOutcome::Unpublished { reason },
            7 => StayOutcome::DeviceGone { reason },
            _ => StayOutcome::Failed { reason },
        };
        self.hosts[host].left(device, outcome, Spent::default(), self.now);
    }

    fn command(&mut self, host: usize) {
        let now = self.now;
        let jobs: Vec<i64> = self.hosts[host].kept.jobs.keys().copied().collect();
        let Some(&job) = jobs.choose(&mut self.chance) else {
            return;
        };
        let state = &mut self.hosts[host];
        match self.chance.random_range(0..6) {
            0 => state.cancel(job, now),
            1 | 2 => state.pause(job, now),
            3 | 4 => state.resume(job, now),
            _ => state.retry(job, now),
        };
    }

    /// Devices are reserved, left alone, or given back.
    fn take_devices(&mut self, host: usize) {
        let (now, name, until) = (self.now, self.device_name(host), self.later());
        let state = &mut self.hosts[host];
        match self.chance.random_range(0..5) {
            0 | 1 => state.reserve(&name, now, until, String::new(), now),
            2 => state.release(&name, now),
            3 => {
                let hour = std::time::Duration::from_secs(3600);
                state.quarantine(&name, "it is warm", hour, None, now)
            }
            _ => state.lift(&name, now),
        };
    }

    fn lack(&mut self, host: usize) {
        let jobs: Vec<i64> = self.hosts[host].kept.jobs.keys().copied().collect();
        let Some(&job) = jobs.choose(&mut self.chance) else {
            return;
        };
        let state = &mut self.hosts[host];
        match self.chance.random_range(0..4) {
            0 => state.lack(job, "no such file".to_owned(), self.now),
            1 => state.fetching(job),
            2 => state.fetched(job, Ok(()), self.now),
            _ => state.fetched(job, Err("no such file".to_owned()), self.now),
        }
    }

    fn publish(&mut self, host: usize) {
        let state = &mut self.hosts[host];
        for run in state.due_publications(self.now) {
            let reason = "no room".to_owned();
            let outcome = match self.chance.random_range(0..3) {
                0 => PublicationOutcome::NotAtHand,
                1 => PublicationOutcome::Failed { reason },
                _ => PublicationOutcome::Unpublished { reason },
            };
            state.publication_tried(run, outcome, self.now);
        }
    }

    fn forget(&mut self, host: usize) {
        let over = self.hosts[host].take_over();
        self.hosts[host].archive(&over);
    }

    fn pass_time(&mut self) {
        self.now += SignedDuration::from_mins(self.chance.random_range(1..90));
    }

    /// The other hosts learn what `host` has changed.
    fn tell_others(&mut self, host: usize) {
        let changes = self.hosts[host].take_changes();
        let from = &self.hosts[host];
        let (mut jobs, mut runs) = (BTreeMap::new(), BTreeMap::new());
        let mut devices = Vec::new();
        for change in changes {
            match change {
                RecordChange::Job(job) => drop(jobs.insert(job.id, job)),
                RecordChange::Run(run) => drop(runs.insert(run.number, run)),
                RecordChange::Device(device) => devices.push(device),
                _ => {}
            }
        }
        let with_runs = jobs.into_values().map(|job| {
            let of_job = from.kept.runs.values().filter(|run| run.job == job.id);
            let runs = of_job.cloned().collect();
            JobWithRuns { job, runs }
        });
        let changes = OthersChanges {
            jobs: with_runs.collect(),
            runs: runs.into_values().collect(),
            devices,
            reservations: Some(from.kept.reservations.clone()),
            last: (from.kept.last_event, from.kept.last_job, from.kept.last_run),
            ..OthersChanges::default()
        };
        let there = from.places.iter().filter(|(_, place)| place.is_there);
        let there: Vec<String> = there.map(|(name, _)| name.clone()).collect();
        for (other, state) in self.hosts.iter_mut().enumerate() {
            if other != host {
                let hosts = vec![alive(host, there.clone())];
                let changes = OthersChanges {
                    hosts,
                    ..changes.clone()
                };
                state.follow(changes, self.now);
            }
        }
    }
}

fn host_name(number: usize) -> String {
    ["one", "two"][number].to_owned()
}

fn alive(number: usize, devices: Vec<String>) -> Host {
    Host {
        name: host_name(number),
        machine: String::new(),
        process: Some(7),
        version: String::new(),
        zone: None,
        devices,
        lease: LeaseState::Alive,
        seen: now(),
        lease_over: std::time::Duration::ZERO,
        is_given_up: false,
    }
}

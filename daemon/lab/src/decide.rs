//! Which run goes to which device now, and which leaves: a pure function of what the lab knows.
//!
//! Jobs of a higher priority go first; among equals the one whose deadline is nearer, then the one that has fewer runs
//! on devices, then the older one. (To prefer the one that has had less time would starve a long job as long as new ones
//! come.) A run that finds all its devices
//! taken by jobs of a lower priority has one of them left between two blocks. A run that was begun completes a block before
//! it leaves, unless nobody wants it any more. A run that was parked goes on where its journal is; once that device is
//! given up, it begins anew on another.

mod assign;

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::record::{Job, JobState, RunNumber};
use super::state::{LabState, Work};
use super::window::{Window, WindowState};

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// These runs go to these devices.
    pub start: Vec<(RunNumber, String)>,
    /// These runs leave these devices between two blocks, and why.
    pub leave: Vec<(RunNumber, String, String)>,
    /// Nothing changes by itself before.
    pub wake: Option<Timestamp>,
}

/// A set of devices, by their places in the list of all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn none(devices: usize) -> Set {
        Set(vec![0; devices.div_ceil(64)])
    }

    fn insert(&mut self, device: usize) {
        self.0[device / 64] |= 1 << (device % 64);
    }

    fn remove(&mut self, device: usize) {
        self.0[device / 64] &= !(1 << (device % 64));
    }

    fn contains(&self, device: usize) -> bool {
        self.0[device / 64] & (1 << (device % 64)) != 0
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    fn and(&self, other: &Set) -> Set {
        Set(self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect())
    }

    fn meets(&self, other: &Set) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len() * 64).filter(|&device| self.contains(device))
    }
}

/// The runs that leave their devices now because the daemon is to stop.
pub(super) fn runs_to_stop(state: &LabState) -> Vec<(RunNumber, String)> {
    let busy = state.places.iter().filter_map(|(name, place)| {
        let Work::Busy(run) = place.work else {
            return None;
        };
        let is_wanted = (state.run(run)).is_some_and(|(job, _)| is_wanted(state, job, run));
        (place.may_be_left() || !is_wanted).then(|| (run, name.clone()))
    });
    busy.collect()
}

/// Whether anybody still wants this host to go on with a run of `job`.
fn is_wanted(state: &LabState, job: &Job, number: RunNumber) -> bool {
    matches!(job.state, JobState::Open | JobState::Paused)
        && state.claimed_by_another(number).is_none()
}

/// Decides what is to be done at `now`.
pub fn decide(state: &LabState, now: Timestamp) -> Decisions {
    Choice::new(state, now).decide()
}

struct Choice<'a> {
    state: &'a LabState,
    now: Timestamp,
    names: Vec<&'a str>,
    free: Set,
    /// Devices that a run is leaving for another, each good for one run that waits for it.
    leaving: Set,
    /// The priorities of the runs on devices that could be asked to leave.
    busy: HashMap<usize, (i32, RunNumber)>,
    /// The lowest of those priorities.
    lowest: Option<i32>,
    windows: HashMap<&'a Window, WindowState>,
    wake: Option<Timestamp>,
    decisions: Decisions,
}

impl<'a> Choice<'a> {
    fn new(state: &'a LabState, now: Timestamp) -> Choice<'a> {
        let names: Vec<&str> = state.places.keys().map(String::as_str).collect();
        let none = Set::none(names.len());
        Choice {
            state,
            now,
            free: none.clone(),
            leaving: none,
            names,
            busy: HashMap::new(),
            lowest: None,
            windows: HashMap::new(),
            wake: None,
            decisions: Decisions::default(),
        }
    }

    fn decide(mut self) -> Decisions {
        self.look_at_devices();
        self.look_at_times();
        self.find_lowest();
        self.assign();
        self.decisions.wake = self.wake.filter(|&wake| wake > self.now);
        self.decisions
    }

    /// Notes that something changes by itself `at` that moment.
    fn wake(&mut self, at: Timestamp) {
        if at > self.now && self.wake.is_none_or(|wake| at < wake) {
            self.wake = Some(at);
        }
    }

    fn window(&mut self, window: &'a Window) -> WindowState {
        let state = *(self.windows.entry(window)).or_insert_with(|| window.state(self.now));
        match state {
            WindowState::Open { until: Some(at) } | WindowState::Closed { opens: at } => {
                self.wake(at);
            }
            WindowState::Open { until: None } => {}
        }
        state
    }

    /// Which other host goes on with a run that is on a device here, for a person.
    fn goes_on_elsewhere(&self, number: RunNumber) -> Option<String> {
        let host = self.state.claimed_by_another(number)?;
        Some(format!("host `{host}` goes on with it"))
    }

    /// Why the run of `job` on `device` must leave it, if it must.
    fn must_leave(&mut self, job: &'a Job, number: RunNumber, device: &str) -> Option<String> {
        if let Some(elsewhere) = self.goes_on_elsewhere(number) {
            return Some(elsewhere);
        }
        if job.state != JobState::Open {
            return Some(format!("its job is {}", job.state));
        }
        if let Some(reserved) = self.state.reservation(device, self.now) {
            return Some(match reserved.note.is_empty() {
                true => "the device is reserved".to_owned(),
                false => format!("the device is reserved: {}", reserved.note),
            });
        }
        match self.window(self.state.window(job)) {
            WindowState::Open { .. } => None,
            WindowState::Closed { .. } => Some(format!(
                "outside its window, {}",
                self.state.window_in_words(job)
            )),
        }
    }

    fn look_at_devices(&mut self) {
        for (index, (name, place)) in self.state.places.iter().enumerate() {
            match place.work {
                Work::Free => {
                    if place.is_there && self.is_fit(name) && !self.is_reserved(name) {
                        self.free.insert(index);
                    }
                }
                Work::Leaving(number) => {
                    // It leaves at once, which it may not know.
                    if let Some(reason) = self.goes_on_elsewhere(number) {
                        self.decisions.leave.push((number, name.clone(), reason));
                    }
                    if place.is_there && !self.is_reserved(name) {
                        self.leaving.insert(index);
                    }
                }
                Work::Busy(number) => {
                    let Some((job, _)) = self.state.run(number) else {
                        continue;
                    };
                    let is_wanted = is_wanted(self.state, job, number);
                    match self.must_leave(job, number, name) {
                        Some(reason) if place.may_be_left() || !is_wanted => {
                            self.decisions.leave.push((number, name.clone(), reason));
                        }
                        // It leaves once a block of it has ended.
                        Some(_) => {
                            if !self.is_reserved(name) {
                                self.leaving.insert(index);
                            }
                        }
                        None => {
                            self.busy.insert(index, (job.spec.priority, number));
                        }
                    }
                }
            }
            if !place.is_there {
                let gone = SignedDuration::try_from(self.state.rules.patience);
                let given_up = gone
                    .ok()
                    .and_then(|gone| place.since.checked_add(gone).ok());
                if let Some(at) = given_up {
                    self.wake(at);
                }
            }
        }
    }

    /// Whether nothing speaks against using it.
    fn is_fit(&self, device: &str) -> bool {
        self.state.left_alone(device, self.now).is_none()
    }

    fn is_reserved(&self, device: &str) -> bool {
        self.state.reservation(device, self.now).is_some()
    }

    /// Notes when reservations, quarantines, publications, deadlines and recurring jobs change something by themselves.
    fn look_at_times(&mut self) {
        let state = self.state;
        for reservation in state.kept.reservations.values() {
            self.wake(reservation.from);
            self.wake(reservation.until);
        }
        for until in state.ends_of_quarantines() {
            self.wake(until);
        }
        let deadline = state.agenda.next_deadline(self.now);
        for at in state.next_publication().into_iter().chain(deadline) {
            self.wake(at);
        }
        for id in state.agenda.recurring() {
            let every = state.kept.jobs[&id].spec.every.as_ref();
            if let Some(next) = every.and_then(|every| every.next_after(self.now)) {
                self.wake(next);
            }
        }
    }

    fn find_lowest(&mut self) {
        self.lowest = self.busy.values().map(|&(priority, _)| priority).min();
    }
}

#[cfg(test)]
mod tests;

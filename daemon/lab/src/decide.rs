//! Which run goes to which device now, and which leaves: a pure function of what the lab knows.
//!
//! Jobs of a higher priority go first; among equals the one whose deadline is nearer, then the one that has fewer runs
//! on devices, then the older one. (To prefer the one that has had less time would starve a long job as long as new ones
//! come.) A run that finds all its devices
//! taken by jobs of a lower priority has one of them left between two blocks. A run that was begun completes a block before
//! it leaves, unless nobody wants it any more. A run that was parked goes on where its journal is; once that device is
//! given up, it begins anew on another.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, btree_set};

use jiff::{SignedDuration, Timestamp};

use super::job::Selector;
use super::record::{Job, JobId, JobState, Run, RunNumber, RunState};
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

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len() * 64).filter(|&device| self.contains(device))
    }
}

/// What decides which job is next: the greatest.
type Rank = (
    i32,
    Reverse<Option<Timestamp>>,
    Reverse<u32>,
    Reverse<JobId>,
);

/// What says which devices a run may have: the name of one, or a selector, and whether one that is simulated will do.
type Meant<'a> = (Option<&'a str>, &'a Selector, bool);

/// A job with runs that wait, how many it has on devices, and those that wait.
type Open<'a> = (&'a Job, u32, btree_set::Iter<'a, RunNumber>);

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
    /// Which devices are meant.
    meant: HashMap<Meant<'a>, Set>,
    /// For these no device is free, nor will any be left. Jobs are looked at from the highest priority to the lowest, so
    /// that this holds for all that come after.
    in_vain: HashSet<Meant<'a>>,
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
            meant: HashMap::new(),
            in_vain: HashSet::new(),
            wake: None,
            decisions: Decisions::default(),
        }
    }

    fn decide(mut self) -> Decisions {
        self.look_at_devices();
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

    fn window(&mut self, job: &'a Job) -> WindowState {
        let window = self.state.window(job);
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
        match self.window(job) {
            WindowState::Open { .. } => None,
            WindowState::Closed { .. } => Some(format!(
                "outside its window, {}",
                self.state.window_in_words(job)
            )),
        }
    }

    fn look_at_devices(&mut self) {
        for reservation in self.state.kept.reservations.values() {
            self.wake(reservation.from);
            self.wake(reservation.until);
        }
        for until in self.state.ends_of_quarantines() {
            self.wake(until);
        }
        if let Some(at) = self.state.next_publication() {
            self.wake(at);
        }
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

    /// The jobs that could go on now, with their ranks. Notes when deadlines, beginnings, windows and recurring jobs
    /// change something by themselves.
    fn look_at_jobs(&mut self) -> (Vec<(Rank, usize)>, Vec<Open<'a>>) {
        let (mut ranks, mut open) = (Vec::new(), Vec::new());
        let mut waiting = self.state.waiting.iter().peekable();
        for (id, job) in &self.state.kept.jobs {
            let runs = waiting.next_if(|(of, _)| *of == id).map(|(_, runs)| runs);
            if let Some(deadline) = job.spec.deadline
                && matches!(job.state, JobState::Open | JobState::Paused)
            {
                self.wake(deadline);
            }
            if job.state == JobState::Recurring
                && let Some(every) = &job.spec.every
                && let Some(next) = every.next_after(self.now)
            {
                self.wake(next);
            }
            let Some(runs) = runs.filter(|_| job.state == JobState::Open) else {
                continue;
            };
            if let Some(from) = job.spec.not_before.filter(|&from| self.now < from) {
                self.wake(from);
                continue;
            }
            if matches!(self.window(job), WindowState::Closed { .. }) {
                continue;
            }
            // It is for others.
            if !self.state.is_for_this_host(&job.spec) {
                continue;
            }
            // Other hosts may have what this one lacks.
            if self.state.lacks(*id, self.now).is_some() {
                if let Some(again) = self.state.looked_for_again(*id) {
                    self.wake(again);
                }
                continue;
            }
            let running = self.state.running.get(id).copied().unwrap_or_default();
            ranks.push((rank(job, running), open.len()));
            open.push((job, running, runs.iter()));
        }
        (ranks, open)
    }

    /// Gives free devices to runs, and has runs of a lower priority leave where there are none.
    fn assign(&mut self) {
        let (ranks, mut jobs) = self.look_at_jobs();
        let mut heap = BinaryHeap::from(ranks);
        while let Some((_, index)) = heap.pop() {
            let priority = jobs[index].0.spec.priority;
            let someone_may_leave = self.lowest.is_some_and(|lowest| lowest < priority);
            if self.free.is_empty() && !someone_may_leave {
                return;
            }
            let (job, running, runs) = &mut jobs[index];
            // A run that finds no device says nothing about the job's next one, which may want another.
            for &number in runs.by_ref() {
                if self.place(job, number) {
                    *running += 1;
                    heap.push((rank(job, *running), index));
                    break;
                }
            }
        }
    }

    fn find_lowest(&mut self) {
        self.lowest = self.busy.values().map(|&(priority, _)| priority).min();
    }

    /// Finds a device for a run. Whether it got one now.
    fn place(&mut self, job: &'a Job, number: RunNumber) -> bool {
        let Some(run) = self.state.kept.runs.get(&number) else {
            return false;
        };
        if self.state.is_elsewhere(run) {
            return false;
        }
        // What is measured needs no device any more.
        if self.state.unpublished.contains_key(&number) {
            return false;
        }
        let meant: Meant<'a> = (
            run.only.as_deref(),
            &job.spec.devices[run.selector],
            job.spec.takes_simulated(),
        );
        let is_particular = run.state == RunState::Parked || !run.failed_on.is_empty();
        if !is_particular && self.in_vain.contains(&meant) {
            return false;
        }
        let candidates = self.candidates(job, run, meant);
        if let Some(device) = candidates.and(&self.free).iter().next() {
            self.free.remove(device);
            let name = self.names[device].to_owned();
            self.decisions.start.push((number, name));
            return true;
        }
        // One that is being left will do; otherwise somebody of a lower priority leaves.
        if let Some(device) = candidates.and(&self.leaving).iter().next() {
            self.leaving.remove(device);
            return false;
        }
        let victim = candidates
            .iter()
            .filter_map(|device| Some((self.busy.get(&device)?.0, device)))
            .filter(|&(priority, _)| priority < job.spec.priority)
            .min();
        if let Some((_, device)) = victim
            && let Some((_, leaves)) = self.busy.remove(&device)
        {
            self.find_lowest();
            let name = self.names[device];
            // Otherwise it is found again once a block of it has ended.
            if self.state.places[name].may_be_left() {
                let reason = format!("job {} has a higher priority", job.id);
                self.decisions.leave.push((leaves, name.to_owned(), reason));
            }
        } else if !is_particular {
            self.in_vain.insert(meant);
        }
        false
    }

    /// The devices that a run may have, whatever they are doing.
    fn candidates(&mut self, job: &'a Job, run: &'a Run, meant: Meant<'a>) -> Set {
        if run.state == RunState::Parked
            && let Some(device) = self.home(run)
        {
            let mut only = Set::none(self.names.len());
            only.insert(device);
            return only;
        }
        let (state, names) = (self.state, &self.names);
        let meant = self.meant.entry(meant).or_insert_with(|| {
            let mut meant = Set::none(names.len());
            for (index, (name, place)) in state.places.iter().enumerate() {
                let device = state.kept.devices.get(name);
                let suits = device.is_some_and(|device| state.suits(job, run, device));
                // Nobody knows when one that is away comes back.
                if suits && place.is_there {
                    meant.insert(index);
                }
            }
            meant
        });
        let mut fresh = meant.clone();
        for failed in &run.failed_on {
            if let Ok(index) = self.names.binary_search(&failed.as_str()) {
                fresh.remove(index);
            }
        }
        // Where every device has failed, they are tried again.
        match fresh.is_empty() {
            true => meant.clone(),
            false => fresh,
        }
    }

    /// The device that has a parked run's journal, unless it was given up.
    fn home(&self, run: &Run) -> Option<usize> {
        let name = run.phone.as_deref()?;
        let place = self.state.places.get(name)?;
        let patience = SignedDuration::try_from(self.state.rules.patience).ok()?;
        let is_lost = !place.is_there && self.now.duration_since(place.since) > patience;
        if is_lost || !self.is_fit(name) {
            return None;
        }
        self.names.binary_search(&name).ok()
    }
}

fn rank(job: &Job, running: u32) -> Rank {
    // No deadline is the farthest.
    let deadline = Some(job.spec.deadline.unwrap_or(Timestamp::MAX));
    (
        job.spec.priority,
        Reverse(deadline),
        Reverse(running),
        Reverse(job.id),
    )
}

#[cfg(test)]
mod tests;

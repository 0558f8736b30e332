//! Which of the runs that wait get the devices that are free, or will be.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use jiff::SignedDuration;

use super::{Choice, Set};
use crate::record::{Job, JobId, JobState, Run, RunNumber, RunState};
use crate::state::{Lane, LaneKey, LaneTarget, MeantDevices, QueuedJob};
use crate::window::WindowState;

/// A lane of the queue, of which the runs may begin now.
struct OpenLane<'a> {
    lane: &'a Lane,
    /// The devices that its runs may have, whatever those are doing.
    candidates: Set,
    /// None of them is free, nor will any be left. Jobs are looked at from the highest priority to the lowest, so that this
    /// holds for all runs that come after.
    is_in_vain: bool,
}

/// When it is a job's turn: the least is next. Among equals it is the one that has fewer runs on devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct JobTurn {
    priority: Reverse<i32>,
    deadline: jiff::Timestamp,
    running: u32,
    id: JobId,
}

impl JobTurn {
    fn of(job: QueuedJob, running: u32) -> JobTurn {
        JobTurn {
            priority: job.priority,
            deadline: job.deadline,
            running,
            id: job.id,
        }
    }

    fn job(self) -> QueuedJob {
        QueuedJob {
            priority: self.priority,
            deadline: self.deadline,
            id: self.id,
        }
    }
}

impl<'a> Choice<'a> {
    /// Gives free devices to runs, and has runs of a lower priority leave where there are none.
    pub(super) fn assign(&mut self) {
        self.look_at_what_is_lacking();
        let mut lanes = self.open_lanes();
        // Each lane's first job; the next follows when it is that one's turn. Jobs with runs on devices have other turns than in
        // their lanes, and come by themselves.
        let mut turns = BinaryHeap::new();
        for (index, open) in lanes.iter().enumerate() {
            let first = open.lane.first();
            turns.extend(first.map(|job| Reverse((JobTurn::of(job, 0), Some(index)))));
        }
        for (id, running) in self.state.running.iter().filter(|(_, count)| **count > 0) {
            let job = self.state.kept.jobs.get(id).map(QueuedJob::of);
            turns.extend(job.map(|job| Reverse((JobTurn::of(job, *running), None))));
        }
        let mut looked_at: HashMap<JobId, RunNumber> = HashMap::new();
        while let Some(Reverse((turn, from))) = turns.pop() {
            let someone_may_leave = self.may_leave_for(turn.priority.0);
            if self.free.is_empty() && !someone_may_leave {
                return;
            }
            let job = turn.job();
            if let Some(index) = from {
                let OpenLane {
                    lane, is_in_vain, ..
                } = lanes[index];
                if is_in_vain {
                    continue;
                }
                let next = lane.after(job);
                turns.extend(next.map(|next| Reverse((JobTurn::of(next, 0), from))));
                let has_running = |id| self.state.running.get(id).is_some_and(|count| *count > 0);
                if looked_at.contains_key(&job.id) || has_running(&job.id) {
                    continue;
                }
            }
            let last = looked_at.entry(job.id).or_insert(RunNumber::MIN);
            // Other hosts may have what this one lacks.
            if self.state.lacks(job.id, self.now).is_some() {
                continue;
            }
            // A run that finds no device says nothing about the job's next one, which may want another.
            while let Some((run, index)) = next_run(&lanes, job, *last) {
                *last = run;
                if self.place(run, &mut lanes[index]) {
                    let again = JobTurn::of(job, turn.running + 1);
                    turns.push(Reverse((again, None)));
                    break;
                }
            }
        }
    }

    /// Whether any run would leave its device for one of this priority.
    fn may_leave_for(&self, priority: i32) -> bool {
        self.lowest.is_some_and(|lowest| lowest < priority)
    }

    /// Notes when it is looked again for what jobs lack that could go on otherwise.
    fn look_at_what_is_lacking(&mut self) {
        for id in self.state.lacking_jobs() {
            let Some(job) = self.state.kept.jobs.get(&id) else {
                continue;
            };
            let waits = job.state == JobState::Open && self.state.queue.has_runs_of(id);
            let has_begun = job.spec.not_before.is_none_or(|from| from <= self.now);
            if waits
                && has_begun
                && self.state.is_for_this_host(&job.spec)
                && matches!(
                    self.window(self.state.window(job)),
                    WindowState::Open { .. }
                )
                && self.state.lacks(id, self.now).is_some()
                && let Some(again) = self.state.looked_for_again(id)
            {
                self.wake(again);
            }
        }
    }

    /// The lanes for which something can be done now. Notes when beginnings and windows change something by themselves.
    fn open_lanes(&mut self) -> Vec<OpenLane<'a>> {
        let state = self.state;
        let mut open = Vec::new();
        for (key, lane) in state.queue.lanes() {
            if let Some(from) = key.not_before.filter(|&from| self.now < from) {
                self.wake(from);
                continue;
            }
            let window = key.window.as_ref().unwrap_or(&state.rules.window);
            if matches!(self.window(window), WindowState::Closed { .. }) || !key.is_for_this_host {
                continue;
            }
            let Some(first) = lane.first() else {
                continue;
            };
            let priority = first.priority.0;
            if self.free.is_empty() && !self.may_leave_for(priority) {
                continue;
            }
            let candidates = self.candidates(key);
            let may_leave = |device| {
                let busy = self.busy.get(&device);
                busy.is_some_and(|(lower, _)| *lower < priority)
            };
            if candidates.meets(&self.free)
                || candidates.meets(&self.leaving)
                || candidates.iter().any(may_leave)
            {
                open.push(OpenLane {
                    lane,
                    candidates,
                    is_in_vain: false,
                });
            }
        }
        open
    }

    /// Finds a device for a run. Whether it got one now.
    fn place(&mut self, number: RunNumber, open: &mut OpenLane<'a>) -> bool {
        let Some((job, run)) = self.state.run(number) else {
            return false;
        };
        if self.state.is_elsewhere(run) {
            return false;
        }
        // What is measured needs no device any more.
        if self.state.unpublished.contains_key(&number) {
            return false;
        }
        let candidates = &open.candidates;
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
        } else {
            open.is_in_vain = true;
        }
        false
    }

    /// The devices that the runs of a lane may have, whatever those are doing.
    fn candidates(&self, key: &LaneKey) -> Set {
        match &key.target {
            LaneTarget::Meant(meant) => self.meant(meant),
            LaneTarget::OfRun(number) => match self.state.run(*number) {
                Some((job, run)) => self.candidates_of(job, run),
                None => Set::none(self.names.len()),
            },
        }
    }

    fn candidates_of(&self, job: &Job, run: &Run) -> Set {
        if run.state == RunState::Parked
            && let Some(device) = self.home(run)
        {
            let mut only = Set::none(self.names.len());
            only.insert(device);
            return only;
        }
        let meant = self.meant(&MeantDevices::of(job, run));
        let mut fresh = meant.clone();
        for failed in &run.failed_on {
            if let Some(index) = self.index(failed) {
                fresh.remove(index);
            }
        }
        // Where every device has failed, they are tried again.
        match fresh.is_empty() {
            true => meant,
            false => fresh,
        }
    }

    /// Those that can be reached: nobody knows when one that is away comes back.
    fn meant(&self, meant: &MeantDevices) -> Set {
        let mut set = Set::none(self.names.len());
        let is_meant = |name: &str| {
            let device = self.state.kept.devices.get(name);
            device.is_some_and(|device| meant.has(device)) && self.state.places[name].is_there
        };
        match meant {
            MeantDevices::Only { name, .. } => {
                if let Some(index) = self.index(name).filter(|_| is_meant(name)) {
                    set.insert(index);
                }
            }
            MeantDevices::Any { .. } => {
                for (index, name) in self.names.iter().enumerate() {
                    if is_meant(name) {
                        set.insert(index);
                    }
                }
            }
        }
        set
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
        self.index(name)
    }

    /// The place of a device in the list of all.
    fn index(&self, name: &str) -> Option<usize> {
        self.names.binary_search(&name).ok()
    }
}

/// The first run of `job` in any lane that is not in vain with a higher number than `after`, and the place of its lane.
fn next_run(
    lanes: &[OpenLane<'_>],
    job: QueuedJob,
    after: RunNumber,
) -> Option<(RunNumber, usize)> {
    let open = lanes
        .iter()
        .enumerate()
        .filter(|(_, open)| !open.is_in_vain);
    open.filter_map(|(index, open)| Some((open.lane.run_of(job, after)?, index)))
        .min()
}

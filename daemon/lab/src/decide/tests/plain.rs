//! What is to be done, found the long way: all runs of all jobs are looked at, one after the other. Decisions are the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;
use crate::decide::{Choice, Set};
use crate::record::{Job, JobId};
use crate::window::WindowState;

type Rank = (i32, Reverse<Timestamp>, Reverse<u32>, Reverse<JobId>);

/// A job with runs that wait, how many it has on devices, and those that wait.
type Open<'a> = (&'a Job, u32, std::vec::IntoIter<&'a Run>);

pub(super) fn decide_plainly(state: &LabState, now: Timestamp) -> Decisions {
    let mut choice = Choice::new(state, now);
    choice.look_at_devices();
    choice.find_lowest();
    let jobs = look_at_jobs(&mut choice);
    assign(&mut choice, jobs);
    choice.decisions.wake = choice.wake;
    choice.decisions
}

fn look_at_jobs<'a>(choice: &mut Choice<'a>) -> Vec<Open<'a>> {
    let (state, now) = (choice.state, choice.now);
    for reservation in state.kept.reservations.values() {
        choice.wake(reservation.from);
        choice.wake(reservation.until);
    }
    for at in state.ends_of_quarantines().chain(state.next_publication()) {
        choice.wake(at);
    }
    let mut open = Vec::new();
    for job in state.kept.jobs.values() {
        let spec = &job.spec;
        if matches!(job.state, JobState::Open | JobState::Paused) {
            spec.deadline.into_iter().for_each(|at| choice.wake(at));
        }
        if job.state == JobState::Recurring {
            let next = spec.every.as_ref().and_then(|every| every.next_after(now));
            next.into_iter().for_each(|at| choice.wake(at));
        }
        let of_job = state.kept.runs.values().filter(|run| run.job == job.id);
        let waiting =
            of_job.filter(|run| run.state == RunState::Queued || run.state == RunState::Parked);
        let waiting: Vec<&Run> = waiting.collect();
        if waiting.is_empty() || job.state != JobState::Open {
            continue;
        }
        if let Some(from) = spec.not_before.filter(|&from| now < from) {
            choice.wake(from);
            continue;
        }
        let is_closed = matches!(choice.window(state.window(job)), WindowState::Closed { .. });
        if is_closed || !state.is_for_this_host(spec) {
            continue;
        }
        if state.lacks(job.id, now).is_some() {
            let again = state.looked_for_again(job.id);
            again.into_iter().for_each(|at| choice.wake(at));
            continue;
        }
        let places = state.places.values().filter_map(|place| place.work.run());
        let running = places.filter(|run| state.kept.runs[run].job == job.id);
        open.push((job, running.count() as u32, waiting.into_iter()));
    }
    open
}

fn rank(job: &Job, running: u32) -> Rank {
    let deadline = job.spec.deadline.unwrap_or(Timestamp::MAX);
    (
        job.spec.priority,
        Reverse(deadline),
        Reverse(running),
        Reverse(job.id),
    )
}

fn assign<'a>(choice: &mut Choice<'a>, mut jobs: Vec<Open<'a>>) {
    let ranks = jobs.iter().enumerate();
    let ranks = ranks.map(|(index, (job, running, _))| (rank(job, *running), index));
    let mut heap: BinaryHeap<(Rank, usize)> = ranks.collect();
    while let Some((_, index)) = heap.pop() {
        let (job, running, runs) = &mut jobs[index];
        if runs.any(|run| place(choice, job, run)) {
            *running += 1;
            heap.push((rank(job, *running), index));
        }
    }
}

/// Whether the run got a device now.
fn place(choice: &mut Choice<'_>, job: &Job, run: &Run) -> bool {
    let state = choice.state;
    if state.is_elsewhere(run) || state.unpublished.contains_key(&run.number) {
        return false;
    }
    let candidates = candidates(choice, job, run);
    if let Some(device) = candidates.and(&choice.free).iter().next() {
        choice.free.remove(device);
        let name = choice.names[device].to_owned();
        choice.decisions.start.push((run.number, name));
        return true;
    }
    if let Some(device) = candidates.and(&choice.leaving).iter().next() {
        choice.leaving.remove(device);
        return false;
    }
    let busy = candidates.iter();
    let busy = busy.filter_map(|device| Some((choice.busy.get(&device)?.0, device)));
    let lower = busy.filter(|&(priority, _)| priority < job.spec.priority);
    if let Some((_, device)) = lower.min()
        && let Some((_, leaves)) = choice.busy.remove(&device)
    {
        let name = choice.names[device];
        if state.places[name].may_be_left() {
            let reason = format!("job {} has a higher priority", job.id);
            let left = (leaves, name.to_owned(), reason);
            choice.decisions.leave.push(left);
        }
    }
    false
}

fn candidates(choice: &Choice<'_>, job: &Job, run: &Run) -> Set {
    let state = choice.state;
    let these = |is_one: &dyn Fn(&str) -> bool| {
        let mut set = Set::none(choice.names.len());
        for (index, name) in choice.names.iter().enumerate() {
            if is_one(name) {
                set.insert(index);
            }
        }
        set
    };
    if run.state == RunState::Parked
        && let Some(home) = run.phone.as_deref()
        && let Some(place) = state.places.get(home)
    {
        let patience = SignedDuration::try_from(state.rules.patience).expect("minutes");
        let is_lost = !place.is_there && choice.now.duration_since(place.since) > patience;
        if !is_lost && state.left_alone(home, choice.now).is_none() {
            return these(&|name| name == home);
        }
    }
    let is_meant = |name: &str| {
        let device = &state.kept.devices[name];
        state.suits(job, run, device) && state.places[name].is_there
    };
    let has_failed = |name: &str| run.failed_on.iter().any(|failed| failed == name);
    let fresh = these(&|name| is_meant(name) && !has_failed(name));
    match fresh.is_empty() {
        true => these(&is_meant),
        false => fresh,
    }
}

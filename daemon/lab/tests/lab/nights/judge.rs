//! What must hold of nights that are over.
#![expect(
    clippy::print_stdout,
    reason = "how much was played, for who wants to see it"
)]

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use layerlab_lab::record::{Event, Kept, Run, RunState, What};
use layerlab_lab::window::WindowState;

use super::world::Stay;
use super::{JOBS, LONGEST_BLOCK};

pub(super) struct PlayedNights {
    pub(super) kept: Kept,
    pub(super) events: Vec<Event>,
    pub(super) stays: Vec<Stay>,
    /// Who took which device, from when until when.
    pub(super) reservations: Vec<(String, Timestamp, Timestamp)>,
    pub(super) ended: Timestamp,
}

/// A block, and the wait for a phone that vanished in it.
fn overrun() -> SignedDuration {
    SignedDuration::try_from(LONGEST_BLOCK).expect("short") + SignedDuration::from_mins(11)
}

impl PlayedNights {
    /// What did not give a profile is explained by its reason, or by what the lab says of runs that are not over.
    pub(super) fn every_job_ends_or_is_explained(&self, is_explained: impl Fn(&Run) -> bool) {
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for job in self.kept.jobs.values() {
            *ends.entry(job.state.to_string()).or_default() += 1;
        }
        for run in self.kept.runs.values() {
            let is_all_right = match run.state {
                RunState::Done => run.profile.is_some(),
                RunState::Queued | RunState::Parked | RunState::Running => is_explained(run),
                _ => run.reason.is_some(),
            };
            assert!(
                is_all_right,
                "run {} is {} for no reason",
                run.number, run.state
            );
        }
        println!(
            "{} stays, {} events, jobs: {ends:?}",
            self.stays.len(),
            self.events.len()
        );
        assert!(ends["done"] > JOBS * 3 / 4, "{ends:?}");
    }

    /// Journals are kept for thirty days, of which those of the first nights are over.
    pub(super) fn old_journals_are_removed_and_no_others(&self) {
        let old = self.ended - SignedDuration::from_hours(24 * 30);
        let mut removed = 0;
        for run in self.kept.runs.values().filter(|run| run.attempt > 0) {
            let is_old =
                |margin: SignedDuration| (run.ended).is_some_and(|ended| ended + margin <= old);
            let (least, most) = (
                is_old(SignedDuration::from_hours(25)),
                is_old(SignedDuration::ZERO),
            );
            let is_removed = run.journals_removed.is_some();
            assert!(
                least <= is_removed && is_removed <= most,
                "{run:?} at {old}"
            );
            removed += usize::from(is_removed);
        }
        assert!(removed > 100, "{removed} runs have no journals any more");
    }

    pub(super) fn no_two_runs_ever_hold_one_device(&self) {
        let mut by_device: BTreeMap<&str, Vec<&Stay>> = BTreeMap::new();
        for stay in &self.stays {
            by_device.entry(&stay.device).or_default().push(stay);
        }
        for stays in by_device.values_mut() {
            stays.sort_by_key(|stay| stay.from);
            for pair in stays.windows(2) {
                assert!(pair[0].until <= pair[1].from, "{pair:?}");
            }
        }
    }

    pub(super) fn windows_and_reservations_are_overrun_by_no_more_than_a_block(&self) {
        let block = overrun();
        let (mut closed_on, mut taken_from) = (0, 0);
        for stay in &self.stays {
            let window = self.kept.jobs[&stay.job]
                .spec
                .window
                .as_ref()
                .expect("every job has one");
            match window.state(stay.from) {
                WindowState::Open { until: Some(until) } => {
                    assert!(stay.until <= until + block, "{stay:?} ends after {until}");
                    closed_on += usize::from(until <= stay.until);
                }
                WindowState::Open { until: None } => {}
                WindowState::Closed { opens } => panic!("{stay:?} begins before {opens}"),
            }
            for (device, from, until) in self.reservations.iter().filter(|one| one.0 == stay.device)
            {
                let begins_in_it = *from < stay.from && stay.from < *until;
                assert!(
                    !begins_in_it,
                    "{stay:?} begins on {device}, reserved from {from} to {until}"
                );
                if stay.from <= *from {
                    assert!(
                        stay.until <= *from + block,
                        "{stay:?} stays on {device}, reserved from {from}"
                    );
                    taken_from += usize::from(*from <= stay.until);
                }
            }
        }
        println!("a window closed on {closed_on} runs, a device was taken from {taken_from}");
        assert!(closed_on > 10 && taken_from > 5);
    }

    /// No run begins on a device that a waiting run of a higher priority could have, and none stays on one for long.
    pub(super) fn no_run_keeps_one_of_a_higher_priority_waiting(&self) {
        // A run that was asked to leave ends its block; meanwhile another may come that is of a higher priority still.
        let patience = overrun() * 3;
        // Those that wait for their first device, and since when. Others wait for the device that has their journal.
        let mut waiting: BTreeMap<i64, Timestamp> = BTreeMap::new();
        let mut begun: BTreeSet<i64> = BTreeSet::new();
        let runs_of = |job: i64| self.kept.runs.values().filter(move |run| run.job == job);
        let job_of = |run: i64| &self.kept.jobs[&self.kept.runs[&run].job];
        let suits = |run: i64, device: &str| match &self.kept.runs[&run].only {
            Some(only) => only == device,
            None => job_of(run).spec.devices[self.kept.runs[&run].selector]
                .matches(&self.kept.devices[device]),
        };
        let may_run = |run: i64, at: Timestamp| {
            let spec = &job_of(run).spec;
            let window = spec.window.as_ref().map(|window| window.state(at));
            spec.not_before.is_none_or(|from| from <= at)
                && matches!(window, Some(WindowState::Open { .. }))
        };
        let wants = |run: i64, of_lower: i64, device: &str, at: Timestamp| {
            job_of(run).spec.priority > job_of(of_lower).spec.priority
                && suits(run, device)
                && may_run(run, at)
        };
        let (mut beginnings, mut waits) = (0, 0);
        // What is decided at one moment is judged as a whole.
        for now in self.events.chunk_by(|one, other| one.at == other.at) {
            let at = now[0].at;
            let mut began = Vec::new();
            for event in now {
                match (&event.what, event.run, event.job) {
                    (What::Submitted | What::Resumed, _, Some(job)) => {
                        let fresh = runs_of(job).filter(|run| !begun.contains(&run.number));
                        waiting.extend(fresh.map(|run| (run.number, at)));
                    }
                    (What::Started { .. } | What::Continued, Some(run), _) => {
                        waiting.remove(&run);
                        begun.insert(run);
                        began.push((run, event.device.as_deref().expect("a device")));
                    }
                    (What::JobEnded { .. } | What::Paused, _, Some(job)) => {
                        waiting.retain(|&run, _| self.kept.runs[&run].job != job);
                    }
                    _ => {}
                }
            }
            let long_ago = at - patience;
            let stayed: Vec<&Stay> = self
                .stays
                .iter()
                .filter(|stay| stay.from <= long_ago && at < stay.until)
                .collect();
            for (&run, &since) in &waiting {
                for &(other, device) in &began {
                    beginnings += 1;
                    assert!(
                        !wants(run, other, device, at),
                        "at {at} run {other} began on {device}, for which run {run} of a higher priority waited"
                    );
                }
                for stay in stayed.iter().filter(|_| since <= long_ago) {
                    waits += 1;
                    assert!(
                        !(wants(run, stay.run, &stay.device, at) && may_run(run, long_ago)),
                        "at {at} {stay:?} is still not over, and run {run} of a higher priority has waited since {since}"
                    );
                }
            }
        }
        println!("{beginnings} beginnings and {waits} waits were compared");
        assert!(beginnings > 1000 && waits > 1000);
    }
}

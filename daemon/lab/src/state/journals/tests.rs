//! Whose journals go, and when.

use super::*;
use crate::config::Config;
use crate::job::{JobSpec, ModelSpec, Selector};
use crate::record::{Device, Job, JobState, Kept, Run, RunState, Spent};
use crate::state::{Rules, StayOutcome};
use crate::talk::Answer;
use layerlab_campaign::CampaignPart;

fn now() -> Timestamp {
    "2026-11-20T20:00:00Z".parse().expect("an instant")
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

/// A run that was begun once and ended so many days ago.
fn ended(number: RunNumber, state: RunState, age: i64) -> Run {
    Run {
        number,
        job: 1,
        state,
        attempt: 1,
        started: Some(now() - days(100)),
        ended: Some(now() - days(age)),
        ..Run::default()
    }
}

fn lab(runs: Vec<Run>) -> LabState {
    let spec = JobSpec {
        models: vec![ModelSpec::default()],
        devices: vec![Selector::default()],
        ..JobSpec::default()
    };
    let job = Job {
        id: 1,
        content_sha256: spec.content_sha256(),
        spec,
        submitted: now() - days(100),
        occurrence_of: None,
        state: JobState::Open,
    };
    let kept = Kept {
        lab: "home".to_owned(),
        jobs: [(1, job)].into(),
        runs: runs.into_iter().map(|run| (run.number, run)).collect(),
        ..Kept::default()
    };
    // Which keeps journals for 30 days.
    let mut state = LabState::new(kept, Rules::of(&Config::default()));
    state.take_changes();
    state
}

/// Removes what is found, as if the store held what is here.
fn remove(state: &mut LabState, at: Timestamp) {
    let Some(searched) = state.old_journals(at) else {
        return;
    };
    let runs = state.kept.runs.values();
    let runs = runs
        .filter(|run| run.has_journals_from_before(searched.before))
        .filter(|run| !searched.except.contains(&run.number));
    let found = runs.take(searched.most).cloned().collect();
    state.remove_journals(found, &searched, at);
}

/// The journals that are removed, of which the runs say so in the same breath.
fn removed(state: &mut LabState, at: Timestamp) -> Vec<String> {
    remove(state, at);
    let (mut journals, mut runs) = (Vec::new(), BTreeSet::new());
    for change in state.take_changes() {
        match change {
            RecordChange::JournalGone(name) => journals.push(name.as_str().to_owned()),
            RecordChange::Run(run) => {
                assert_eq!(run.journals_removed, Some(at));
                runs.insert(run.number.to_string());
            }
            other => panic!("{other:?} has nothing to do with journals"),
        }
    }
    let of = journals.iter().filter_map(|name| name.split('-').nth(2));
    assert_eq!(of.map(str::to_owned).collect::<BTreeSet<_>>(), runs);
    journals
}

#[test]
fn runs_that_have_been_over_for_long_lose_the_journals_of_all_attempts() {
    let of_two_attempts = Run {
        attempt: 2,
        ..ended(2, RunState::Failed, 31)
    };
    let never_begun = Run {
        attempt: 0,
        ..ended(3, RunState::Expired, 31)
    };
    let mut state = lab(vec![
        ended(1, RunState::Done, 30),
        of_two_attempts,
        never_begun,
        ended(4, RunState::Cancelled, 29),
    ]);
    let expected = [
        "lab-home-1-1-energy",
        "lab-home-1-1-times",
        "lab-home-1-1-steady",
        "lab-home-1-1-accuracy",
        "lab-home-1-1-video",
        "lab-home-1-1-tensors",
        "lab-home-2-1-energy",
        "lab-home-2-1-times",
        "lab-home-2-1-steady",
        "lab-home-2-1-accuracy",
        "lab-home-2-1-video",
        "lab-home-2-1-tensors",
        "lab-home-2-2-energy",
        "lab-home-2-2-times",
        "lab-home-2-2-steady",
        "lab-home-2-2-accuracy",
        "lab-home-2-2-video",
        "lab-home-2-2-tensors",
    ];
    assert_eq!(removed(&mut state, now()), expected);
    let of_the_last = [
        "lab-home-4-1-energy",
        "lab-home-4-1-times",
        "lab-home-4-1-steady",
        "lab-home-4-1-accuracy",
        "lab-home-4-1-video",
        "lab-home-4-1-tensors",
    ];
    assert_eq!(removed(&mut state, now() + days(1)), of_the_last);
    assert!(removed(&mut state, now() + days(50)).is_empty());
}

#[test]
fn what_is_not_over_keeps_its_journals() {
    let states = [RunState::Queued, RunState::Parked, RunState::Running];
    let runs = (1..).zip(states);
    // As if they had ended once.
    let runs = runs.map(|(number, state)| ended(number, state, 90));
    let mut state = lab(runs.collect());
    assert!(removed(&mut state, now()).is_empty());
}

#[test]
fn a_cancelled_run_keeps_its_journal_until_it_has_left_its_device() {
    let mut state = lab(vec![Run {
        state: RunState::Queued,
        ended: None,
        ..ended(1, RunState::Queued, 0)
    }]);
    let phone = Device {
        name: "phone".to_owned(),
        ..Device::default()
    };
    state.devices(vec![phone], now());
    state.begin(1, "phone", now());
    assert_eq!(state.cancel(1, now()), Answer::Done);
    state.leaving(1, "phone", "cancelled", now());
    state.take_changes();
    assert!(removed(&mut state, now() + days(40)).is_empty());
    let later = now() + days(41);
    state.left("phone", StayOutcome::Parked, Spent::default(), later);
    state.take_changes();
    assert_eq!(
        removed(&mut state, later).len(),
        2 * CampaignPart::ALL.len()
    );
}

#[test]
fn a_run_that_is_tried_again_has_journals_again() {
    let mut state = lab(vec![ended(1, RunState::Failed, 40)]);
    assert_eq!(removed(&mut state, now()).len(), CampaignPart::ALL.len());
    assert_eq!(state.retry(1, now()), Answer::Done);
    let run = &state.kept.runs[&1];
    assert_eq!((run.state, run.journals_removed), (RunState::Queued, None));
}

#[test]
fn it_is_looked_once_a_day_and_at_once_for_more_than_are_removed_together() {
    let runs = 1..=RUNS_AT_ONCE as RunNumber + 1;
    let mut state = lab(runs.map(|run| ended(run, RunState::Done, 40)).collect());
    let soon = now() + PAUSE;
    let mut remove = |at| {
        remove(&mut state, at);
        (state.next_removal(), state.take_changes().len())
    };
    // Its journals, and the run itself.
    let changes_of_a_run = CampaignPart::ALL.len() + 1;
    assert_eq!(remove(now()), (soon, RUNS_AT_ONCE * changes_of_a_run));
    // Whatever else it is woken for.
    // Its journals, and the run itself.
    let changes_of_a_run = CampaignPart::ALL.len() + 1;
    assert_eq!(remove(now()), (soon, 0));
    assert_eq!(remove(soon), (soon + days(1), changes_of_a_run));
}

#[test]
fn runs_that_are_in_the_store_alone_lose_their_journals_too() {
    let mut state = lab(Vec::new());
    let searched = state.old_journals(now()).expect("it is time");
    let found = vec![
        ended(7, RunState::Done, 31),
        // It was tried again since it was found.
        ended(8, RunState::Queued, 31),
    ];
    state.remove_journals(found, &searched, now());
    let changes = state.take_changes();
    let expected = Run {
        journals_removed: Some(now()),
        ..ended(7, RunState::Done, 31)
    };
    assert_eq!(changes.len(), CampaignPart::ALL.len() + 1);
    assert_eq!(changes.last(), Some(&RecordChange::Run(expected)));
}

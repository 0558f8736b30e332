//! Journals are removed from the store some time after their runs are over. Profiles stay.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::LabState;
use crate::journal;
use crate::record::{RecordChange, Run, RunNumber};
use crate::talk::Answer;

/// How often it is looked for journals that are kept no longer.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Nothing else is written while journals are removed: so many runs lose theirs at once, others after a pause.
const RUNS_AT_ONCE: usize = 16;

const PAUSE: SignedDuration = SignedDuration::from_mins(1);

/// A shorter one where somebody waits for the room.
const PAUSE_IF_ASKED: SignedDuration = SignedDuration::from_secs(2);

/// Which runs the store is to be searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldJournals {
    /// They were over before.
    pub before: Timestamp,
    /// These may still write.
    pub except: BTreeSet<RunNumber>,
    /// So many at most.
    pub most: usize,
}

impl LabState {
    /// Which runs have journals that are kept no longer, once a day.
    pub fn old_journals(&mut self, now: Timestamp) -> Option<OldJournals> {
        if now < self.next_removal {
            return None;
        }
        self.next_removal = later(now, DAY);
        let keep = SignedDuration::try_from(self.rules.keep_journals);
        let kept = keep.ok().and_then(|keep| now.checked_sub(keep).ok());
        // One that was cancelled may still be leaving its device, and write.
        let on_devices = self.places.values().filter_map(|place| place.work.run());
        Some(OldJournals {
            before: kept.into_iter().chain(self.prune_before).max()?,
            except: on_devices.collect(),
            most: RUNS_AT_ONCE,
        })
    }

    /// Has the journals removed of runs that were over before `before`.
    pub fn prune(&mut self, before: Timestamp, now: Timestamp) -> Answer {
        self.prune_before = Some(before);
        self.next_removal = now;
        Answer::Done
    }

    /// When to look for old journals again.
    pub fn next_removal(&self) -> Timestamp {
        self.next_removal
    }

    /// Removes the journals of `runs`, which were found in the store for [`OldJournals`].
    pub fn remove_journals(&mut self, runs: Vec<Run>, searched: &OldJournals, now: Timestamp) {
        match (runs.len() >= searched.most, self.prune_before) {
            (true, None) => self.next_removal = later(now, PAUSE),
            (true, Some(_)) => self.next_removal = later(now, PAUSE_IF_ASKED),
            (false, _) => self.prune_before = None,
        }
        for found in runs {
            let number = found.number;
            // What is here is newer than what was found.
            let run = self.kept.runs.get(&number).unwrap_or(&found);
            let is_on_device = (self.places.values()).any(|p| p.work.run() == Some(number));
            if is_on_device || !run.has_journals_from_before(searched.before) {
                continue;
            }
            let names = journal::names(&self.kept.lab, run);
            self.changes
                .extend(names.into_iter().map(RecordChange::JournalGone));
            if self.kept.runs.contains_key(&number) {
                self.set_run(number, |run| run.journals_removed = Some(now));
            } else {
                self.changes.push(RecordChange::Run(Run {
                    journals_removed: Some(now),
                    ..found
                }));
            }
        }
    }
}

fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;

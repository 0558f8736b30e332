//! Journals are removed from the store some time after their runs are over. Profiles stay.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::LabState;
use crate::journal;
use crate::record::{RecordChange, Run, RunNumber};

/// How often it is looked for journals that are kept no longer.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Nothing else is written while journals are removed: so many runs lose theirs at once, others after a pause.
const RUNS_AT_ONCE: usize = 16;

const PAUSE: SignedDuration = SignedDuration::from_mins(1);

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
        // One that was cancelled may still be leaving its device, and write.
        let on_devices = self.places.values().filter_map(|place| place.work.run());
        Some(OldJournals {
            before: keep.ok().and_then(|keep| now.checked_sub(keep).ok())?,
            except: on_devices.collect(),
            most: RUNS_AT_ONCE,
        })
    }

    /// When to look for old journals again.
    pub fn next_removal(&self) -> Timestamp {
        self.next_removal
    }

    /// Removes the journals of `runs`, which were found in the store for [`OldJournals`].
    pub fn remove_journals(&mut self, runs: Vec<Run>, searched: &OldJournals, now: Timestamp) {
        if runs.len() >= searched.most {
            self.next_removal = later(now, PAUSE);
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

//! Journals are removed from the store some time after their runs are over. Profiles stay.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::State;
use crate::journal;
use crate::record::RunNumber;
use crate::store::Change;

/// How often it is looked for journals that are kept no longer.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Nothing else is written while journals are removed: so many runs lose theirs at once, others after a pause.
const RUNS_AT_ONCE: usize = 16;

const PAUSE: SignedDuration = SignedDuration::from_mins(1);

impl State {
    /// Removes the journals of runs that have been over for as long as they are kept. When to look again.
    pub fn remove_journals(&mut self, now: Timestamp) -> Timestamp {
        if now < self.next_removal {
            return self.next_removal;
        }
        let old = self.runs_with_old_journals(now);
        for &number in &old {
            let names = journal::names(&self.kept.lab, &self.kept.runs[&number]);
            self.changes
                .extend(names.into_iter().map(Change::JournalGone));
            self.set_run(number, |run| run.journals_removed = Some(now));
        }
        let pause = match old.len() < RUNS_AT_ONCE {
            true => DAY,
            false => PAUSE,
        };
        self.next_removal = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        self.next_removal
    }

    fn runs_with_old_journals(&self, now: Timestamp) -> Vec<RunNumber> {
        let keep = SignedDuration::try_from(self.rules.keep_journals);
        let Some(before) = keep.ok().and_then(|keep| now.checked_sub(keep).ok()) else {
            return Vec::new();
        };
        // One that was cancelled may still be leaving its device, and write.
        let on_devices: BTreeSet<RunNumber> = (self.places.values())
            .filter_map(|place| place.work.run())
            .collect();
        let runs = self.kept.runs.values();
        runs.filter(|run| run.state.is_over() && run.ended.is_some_and(|ended| ended <= before))
            .filter(|run| run.attempt > 0 && run.journals_removed.is_none())
            .map(|run| run.number)
            .filter(|number| !on_devices.contains(number))
            .take(RUNS_AT_ONCE)
            .collect()
    }
}

#[cfg(test)]
mod tests;

//! Runs that are measured and lack nothing but publication. They hold no device; publishing is tried again and again.

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use super::LabState;
use crate::record::{RunNumber, RunState, Spent, Verdict};

/// How often publishing is tried again.
const PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// What came of trying once more to publish what is measured.
#[derive(Clone, Debug, PartialEq)]
pub enum PublicationOutcome {
    /// It is there.
    Published {
        /// Its folder.
        folder: PathBuf,
        /// What is doubtful about it.
        findings: Vec<String>,
        /// Whether it is worse than the last good one, if there is one.
        verdict: Option<Verdict>,
    },
    /// It cannot be written yet.
    Unpublished {
        /// What keeps it from being published, for a person.
        reason: String,
    },
    /// It never will be.
    Failed {
        /// Why, for a person.
        reason: String,
    },
    /// What was measured is not at hand: the run goes on where its journal is, and publishes from there.
    NotAtHand,
}

/// Why a run is parked that only lacks publication.
pub(super) fn unpublished(reason: &str) -> String {
    format!("measured, and waits for publication: {reason}")
}

impl LabState {
    pub(super) fn hold_unpublished(&mut self, number: RunNumber, now: Timestamp) {
        let next = now.checked_add(PAUSE).unwrap_or(Timestamp::MAX);
        self.unpublished.insert(number, next);
    }

    /// The runs whose publication is to be tried again now; each once until what came of it is told.
    pub fn due_publications(&mut self, now: Timestamp) -> Vec<RunNumber> {
        let due = self
            .unpublished
            .iter_mut()
            .filter(|(_, next)| **next <= now);
        due.map(|(number, next)| {
            *next = Timestamp::MAX;
            *number
        })
        .collect()
    }

    /// Runs whose publication nobody wants any more since this was asked last.
    pub fn take_unwanted_publications(&mut self) -> Vec<RunNumber> {
        std::mem::take(&mut self.unwanted_publications)
    }

    /// When publication is tried again next.
    pub fn next_publication(&self) -> Option<Timestamp> {
        self.unpublished.values().min().copied()
    }

    /// Publication of a run was tried again.
    pub fn publication_tried(
        &mut self,
        number: RunNumber,
        outcome: PublicationOutcome,
        now: Timestamp,
    ) {
        // It may have been cancelled meanwhile, and published all the same.
        let was_wanted = self.unpublished.remove(&number).is_some();
        if self.claimed_by_another(number).is_some() {
            return;
        }
        if !was_wanted && !matches!(outcome, PublicationOutcome::Published { .. }) {
            return;
        }
        let Some(job) = self.kept.runs.get(&number).map(|run| run.job) else {
            return;
        };
        let nothing = Spent::default();
        match outcome {
            PublicationOutcome::Published {
                folder,
                findings,
                verdict,
            } => self.publish(number, (folder, findings, verdict), nothing, now),
            PublicationOutcome::Failed { reason } => self.give_up(number, reason, now),
            PublicationOutcome::NotAtHand => {}
            PublicationOutcome::Unpublished { reason } => {
                self.hold_unpublished(number, now);
                let reason = unpublished(&reason);
                let is_new = |known: Option<&String>| known != Some(&reason);
                if is_new(self.kept.runs[&number].reason.as_ref()) {
                    self.park_because(number, reason, nothing, now);
                }
                return;
            }
        }
        let is_over = |state: RunState| state.is_over();
        if self
            .kept
            .runs
            .get(&number)
            .is_some_and(|run| is_over(run.state))
        {
            self.settle_job(job, number, now);
            self.over.insert(job);
        }
    }
}

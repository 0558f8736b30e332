//! What the dispatcher looks for in the store while it goes on.

use std::future::pending;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::Question;
use crate::record::{Job, JobId, JobWithRuns, Run, RunNumber};
use crate::state::{ArchiveLookup, OldJournals, PublicationOutcome};
use crate::store::{Store, StoreError};

/// The searches that have not ended.
#[derive(Default)]
pub(super) struct Lookups(FuturesUnordered<BoxFuture<'static, Found>>);

/// What a search gave.
#[expect(
    clippy::large_enum_variant,
    reason = "there are few at once, and they do not live long"
)]
pub(super) enum Found {
    /// The job that a request is about, if it is in the store.
    ForRequest(Question, Result<Option<JobWithRuns>, StoreError>),
    /// Runs with old journals.
    OldJournals(OldJournals, Result<Vec<Run>, StoreError>),
    /// Publication of a run was tried again.
    Publication(RunNumber, PublicationOutcome),
    /// The files of a job were fetched, or why they were not.
    Files(JobId, Result<(), String>),
    /// How long runs like the one on a device took there.
    Took(String, RunNumber, Result<Vec<u64>, StoreError>),
}

impl Lookups {
    /// What the next search to end gave; waits for ever while there is none.
    pub(super) async fn next(&mut self) -> Found {
        match self.0.next().await {
            Some(found) => found,
            None => pending().await,
        }
    }

    pub(super) fn request(&self, store: &Store, lookup: ArchiveLookup, question: Question) {
        let store = store.clone();
        self.0.push(Box::pin(async move {
            let found = match lookup {
                ArchiveLookup::Job(id) => store.job(id).await,
                ArchiveLookup::Content(sha256) => store.done_with_content(&sha256).await,
            };
            Found::ForRequest(question, found)
        }));
    }

    pub(super) fn old_journals(&self, store: &Store, searched: OldJournals) {
        let store = store.clone();
        self.0.push(Box::pin(async move {
            let OldJournals {
                before,
                except,
                most,
            } = searched.clone();
            let found = store.old_journals(before, except, most).await;
            Found::OldJournals(searched, found)
        }));
    }

    pub(super) fn publication(
        &self,
        run: RunNumber,
        trying: impl Future<Output = PublicationOutcome> + Send + 'static,
    ) {
        self.0.push(Box::pin(
            async move { Found::Publication(run, trying.await) },
        ));
    }

    pub(super) fn files(
        &self,
        job: JobId,
        fetching: impl Future<Output = Result<(), String>> + Send + 'static,
    ) {
        self.0
            .push(Box::pin(async move { Found::Files(job, fetching.await) }));
    }

    pub(super) fn took(&self, store: &Store, job: &Job, run: &Run, device: &str) {
        let (store, spec, device) = (store.clone(), job.spec.clone(), device.to_owned());
        let (number, model) = (run.number, run.model);
        self.0.push(Box::pin(async move {
            let took = store.took(&device, &spec, model).await;
            Found::Took(device, number, took)
        }));
    }
}

//! Jobs and runs that are over, which the daemon finds in the store when it needs them.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::TryStreamExt;
use jiff::Timestamp;
use sqlx::AnyConnection;

use super::error::StoreError;
use super::obstacle::Unanswered;
use super::reader::Reader;
use crate::job::{JobSpec, VideoSpec};
use crate::record::{Job, JobId, JobState, JobWithRuns, Run, RunNumber};

impl Reader {
    /// The job of this number, if there is one.
    pub(super) async fn job(&self, id: JobId) -> Result<Option<JobWithRuns>, StoreError> {
        let reader = self.clone();
        self.ask(async move |connection: &mut AnyConnection| {
            let body: Option<String> = sqlx::query_scalar("SELECT body FROM jobs WHERE id = $1")
                .bind(id)
                .fetch_optional(&mut *connection)
                .await?;
            match body {
                Some(body) => {
                    let job = reader.record(&body)?;
                    reader.with_runs(job, connection).await.map(Some)
                }
                None => Ok(None),
            }
        })
        .await
    }

    /// The last job that was submitted with this content, by itself and not by one that recurs, and is done.
    pub(super) async fn done_with_content(
        &self,
        content_sha256: &str,
    ) -> Result<Option<JobWithRuns>, StoreError> {
        let reader = self.clone();
        let content_sha256 = content_sha256.to_owned();
        self.ask(async move |connection: &mut AnyConnection| {
            let mut found = None;
            {
                let mut bodies = sqlx::query_scalar::<_, String>(
                    "SELECT body FROM jobs WHERE content_sha256 = $1 AND state = $2 ORDER BY id DESC",
                )
                .bind(&content_sha256)
                .bind(JobState::Done.to_string())
                .fetch(&mut *connection);
                while let Some(body) = bodies.try_next().await? {
                    let job: Job = reader.record(&body)?;
                    if job.occurrence_of.is_none() {
                        found = Some(job);
                        break;
                    }
                }
            }
            match found {
                Some(job) => reader.with_runs(job, connection).await.map(Some),
                None => Ok(None),
            }
        })
        .await
    }

    /// Runs with old journals: at most `most` that were over before `before`, those in `except` apart.
    pub(super) async fn old_journals(
        &self,
        before: Timestamp,
        except: BTreeSet<RunNumber>,
        most: usize,
    ) -> Result<Vec<Run>, StoreError> {
        let reader = self.clone();
        self.ask(async move |connection: &mut AnyConnection| {
            let mut bodies = sqlx::query_scalar::<_, String>(
                "SELECT body FROM runs WHERE state IN ('done', 'failed', 'cancelled', 'expired') \
                 AND attempt > 0 ORDER BY number",
            )
            .fetch(&mut *connection);
            let mut old = Vec::new();
            while old.len() < most
                && let Some(body) = bodies.try_next().await?
            {
                let run: Run = reader.record(&body)?;
                if run.has_journals_from_before(before) && !except.contains(&run.number) {
                    old.push(run);
                }
            }
            Ok(old)
        })
        .await
    }

    /// How long runs took, in milliseconds, that published what `spec` asks for on `device` of the model of place `model` in
    /// `spec`, or of its link, measured in the same way.
    pub(super) async fn took(
        &self,
        device: &str,
        spec: &JobSpec,
        model: usize,
    ) -> Result<Vec<u64>, StoreError> {
        let of = |spec: &JobSpec, model: usize| {
            let model = spec.models.get(model);
            (model.map(|model| model.sha256.clone()), spec.link.clone())
        };
        let wanted = of(spec, model);
        if wanted == (None, None) {
            return Ok(Vec::new());
        }
        let (reader, device, measure) = (self.clone(), device.to_owned(), spec.measure.clone());
        let frames = spec.video.as_ref().map(VideoSpec::settings);
        self.ask(async move |connection: &mut AnyConnection| {
            let mut jobs: BTreeMap<JobId, Job> = BTreeMap::new();
            let mut took = Vec::new();
            let mut rows = sqlx::query_as::<_, (String, String)>(
                "SELECT runs.body, jobs.body FROM runs JOIN jobs ON jobs.id = runs.job \
                 WHERE runs.device = $1 AND runs.state = 'done'",
            )
            .bind(&device)
            .fetch(&mut *connection);
            while let Some((run, job)) = rows.try_next().await? {
                let run: Run = reader.record(&run)?;
                let job: &Job = match jobs.entry(run.job) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(place) => place.insert(reader.record(&job)?),
                };
                let spec = &job.spec;
                let is_same_way = spec.measure == measure
                    && spec.video.as_ref().map(VideoSpec::settings) == frames;
                if of(spec, run.model) == wanted && is_same_way {
                    took.push(run.spent.wall_ms);
                }
            }
            Ok(took)
        })
        .await
    }

    /// The runs that published a profile on `device` of the model whose copy has this hash, `except` apart, the newest
    /// first.
    pub(super) async fn published(
        &self,
        device: &str,
        model_sha256: &str,
        except: RunNumber,
    ) -> Result<Vec<Run>, StoreError> {
        let reader = self.clone();
        let (device, wanted) = (device.to_owned(), model_sha256.to_owned());
        self.ask(async move |connection: &mut AnyConnection| {
            let mut jobs: BTreeMap<JobId, Job> = BTreeMap::new();
            let mut found: Vec<Run> = Vec::new();
            let mut rows = sqlx::query_as::<_, (String, String)>(
                "SELECT runs.body, jobs.body FROM runs JOIN jobs ON jobs.id = runs.job \
                 WHERE runs.device = $1 AND runs.state = 'done' AND runs.number <> $2",
            )
            .bind(&device)
            .bind(except)
            .fetch(&mut *connection);
            while let Some((run, job)) = rows.try_next().await? {
                let run: Run = reader.record(&run)?;
                let job: &Job = match jobs.entry(run.job) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(place) => place.insert(reader.record(&job)?),
                };
                let model = job.spec.models.get(run.model);
                let is_of_model = model.is_some_and(|model| model.sha256 == wanted);
                if is_of_model && run.profile.is_some() {
                    found.push(run);
                }
            }
            found.sort_by_key(|run| Reverse((run.ended, run.number)));
            Ok(found)
        })
        .await
    }

    async fn with_runs(
        &self,
        job: Job,
        connection: &mut AnyConnection,
    ) -> Result<JobWithRuns, Unanswered> {
        let bodies: Vec<String> =
            sqlx::query_scalar("SELECT body FROM runs WHERE job = $1 ORDER BY number")
                .bind(job.id)
                .fetch_all(connection)
                .await?;
        let runs: Result<Vec<Run>, StoreError> =
            bodies.iter().map(|body| self.record(body)).collect();
        Ok(JobWithRuns { job, runs: runs? })
    }

    /// When the last occurrence of each of `recurring` was due.
    pub(super) async fn last_occurrences(
        &self,
        recurring: Vec<Job>,
    ) -> Result<BTreeMap<JobId, Timestamp>, StoreError> {
        let reader = self.clone();
        self.ask(async move |connection: &mut AnyConnection| {
            let mut last = BTreeMap::new();
            for origin in &recurring {
                // An occurrence has the content of the job that recurs.
                let mut bodies = sqlx::query_scalar::<_, String>(
                    "SELECT body FROM jobs WHERE content_sha256 = $1 ORDER BY submitted DESC",
                )
                .bind(&origin.content_sha256)
                .fetch(&mut *connection);
                while let Some(body) = bodies.try_next().await? {
                    let job: Job = reader.record(&body)?;
                    if job.occurrence_of == Some(origin.id) {
                        last.insert(origin.id, job.submitted);
                        break;
                    }
                }
            }
            Ok(last)
        })
        .await
    }
}

//! Jobs that come over the web, by a form or by the API: a job file is read, its models are looked at, and the lab is asked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::StatusCode;
use jiff::Timestamp;
use layerlab_lab::job_file::{ResolvedJob, SentJob};
use layerlab_lab::record::{JobId, JobState};
use layerlab_lab::talk::{Answer, Request};
use tempfile::TempDir;

use crate::lab::{WebLab, WebState};
use crate::problem::Problem;

/// What became of a job.
pub(crate) enum Submitted {
    /// It was taken.
    Taken {
        /// Its number.
        job: JobId,
        /// How many runs it has; 0 if it comes again.
        runs: usize,
        /// What it asks for that nothing known to the lab can give.
        warnings: Vec<String>,
    },
    /// One from before asks for the same, and is in this state; the new one was not taken.
    Known(JobId, JobState),
}

/// Gives the lab the job that a job file asks for; even if one from before asks for the same, if `again`.
pub(crate) async fn submit(
    state: &WebState,
    text: &str,
    again: bool,
    by: &str,
) -> Result<Submitted, Problem> {
    let sent = SentJob::parse(text).map_err(Problem::unusable)?;
    let lab = Arc::clone(&state.lab);
    let read = tokio::task::spawn_blocking(move || {
        let files = Files::of(&lab, &sent)?;
        let job = sent.within(files.folder());
        let job = job.and_then(|job| job.resolve(Timestamp::now()));
        Ok::<_, Problem>((job.map_err(Problem::unusable)?, files))
    });
    // What the job brings is there until the lab has its own copies.
    let (resolved, _files) = read.await.map_err(Problem::internal)??;
    let ResolvedJob { spec, sizes, notes } = resolved;
    let request = Request::Submit {
        spec: Box::new(spec),
        again,
        sizes,
    };
    match state.ask(request, Some(by)).await?.with_notes(notes) {
        Answer::Submitted {
            job,
            runs,
            warnings,
        } => Ok(Submitted::Taken {
            job,
            runs,
            warnings,
        }),
        Answer::Known { job, state } => Ok(Submitted::Known(job, state)),
        other => Err(Problem::unexpected(other)),
    }
}

/// Where the files of a job from the web are.
enum Files {
    /// In the lab's folder of models.
    Here(PathBuf),
    /// They came with it.
    Brought(TempDir),
}

impl Files {
    fn of(lab: &WebLab, sent: &SentJob) -> Result<Files, Problem> {
        if !sent.files.is_empty() {
            return lab.uploads.named(&sent.files).map(Files::Brought);
        }
        lab.models.clone().map(Files::Here).ok_or_else(|| {
            let detail = "this lab has no models of its own for jobs from the web; send those of the job to /api/v1/files \
                          and name them under `files`, or name a folder by `web.models` in the lab's configuration";
            Problem::usage(StatusCode::FORBIDDEN, detail)
        })
    }

    fn folder(&self) -> &Path {
        match self {
            Files::Here(folder) => folder,
            Files::Brought(folder) => folder.path(),
        }
    }
}

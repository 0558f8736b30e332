//! Jobs that come over the web: a job file is read, its models are looked at, and the lab is asked.

use axum::http::StatusCode;
use jiff::Timestamp;
use layerlab_lab::job_file::{JobFile, ResolvedJob};
use layerlab_lab::record::{JobId, JobState};
use layerlab_lab::talk::{Answer, Request};

use crate::lab::WebState;
use crate::problem::Problem;

/// What became of a job.
pub(crate) enum Submitted {
    /// It was taken, with this number.
    Taken(JobId),
    /// One from before asks for the same, and is in this state; the new one was not taken.
    Known(JobId, JobState),
}

/// Gives the lab the job that a job file asks for; even if one from before asks for the same, if `again`.
pub(crate) async fn submit(
    state: &WebState,
    text: String,
    again: bool,
    by: &str,
) -> Result<Submitted, Problem> {
    let Some(folder) = state.lab.models.clone() else {
        let detail = "this lab takes no jobs over the web; name a folder of models by `web.models` in its configuration";
        return Err(Problem::usage(StatusCode::FORBIDDEN, detail));
    };
    let read = tokio::task::spawn_blocking(move || {
        JobFile::from_elsewhere(&folder, &text).and_then(|job| job.resolve(Timestamp::now()))
    });
    let read = read.await.map_err(Problem::internal)?;
    let ResolvedJob { spec, sizes } = read.map_err(Problem::unusable)?;
    let request = Request::Submit {
        spec: Box::new(spec),
        again,
        sizes,
    };
    match state.ask(request, Some(by)).await? {
        Answer::Submitted { job, .. } => Ok(Submitted::Taken(job)),
        Answer::Known { job, state } => Ok(Submitted::Known(job, state)),
        other => Err(Problem::unexpected(other)),
    }
}

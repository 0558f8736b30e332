//! Runs: one profile each that a job asks for, or one measurement of frames or of a link.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use layerlab_lab::record::{Kept, Run};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::InPath;
use crate::lab::WebState;
use crate::problem::Problem;

/// A run.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownRun {
    /// Its number, unique in the whole lab.
    number: i64,
    /// The number of the job that asks for it.
    job: i64,
    /// The model's name; none of a run that measures a link.
    model: Option<String>,
    /// The name of the link, of a run that measures one.
    link: Option<String>,
    /// What it gives: a `profile`, what answering the frames of a `video` costs, or what a `link` carries.
    #[schema(example = "profile")]
    kind: String,
    /// What became of it.
    #[schema(example = "queued")]
    state: String,
    /// The device that has its journal, or had.
    device: Option<String>,
    /// Whether that device is simulated: times are then modelled, not measured.
    simulated: bool,
    /// How often it was begun.
    attempt: u32,
    /// When the attempt began.
    started: Option<Timestamp>,
    /// When it ended.
    ended: Option<Timestamp>,
    /// Why it is in this state, for a person.
    reason: Option<String>,
    /// Whether it has published a profile, which is found by the number of the run. A measurement of frames or of a link is published
    /// when the run is done, on the lab's host.
    published: bool,
    /// What of its profile is worse than in the last good one, each in a few words.
    worse: Vec<String>,
}

impl ShownRun {
    pub(super) fn of(run: &Run, kept: &Kept) -> ShownRun {
        let job = kept.jobs.get(&run.job);
        let model = job.and_then(|job| job.spec.models.get(run.model));
        let device = run.phone.as_ref().and_then(|name| kept.devices.get(name));
        ShownRun {
            number: run.number,
            job: run.job,
            model: model.map(|model| model.name.clone()),
            link: (job.and_then(|job| job.spec.link.as_ref())).map(|link| link.name.clone()),
            kind: job
                .map(|job| job.spec.kind())
                .unwrap_or_default()
                .to_string(),
            state: run.state.to_string(),
            device: run.phone.clone(),
            simulated: device.is_some_and(|device| device.simulated),
            attempt: run.attempt,
            started: run.started,
            ended: run.ended,
            reason: run.reason.clone(),
            published: run.profile.is_some(),
            worse: run
                .verdict
                .as_ref()
                .map_or_else(Vec::new, |it| it.worse.clone()),
        }
    }
}

/// One run.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{number}",
    operation_id = "show_run",
    params(("number" = i64, Path, description = "The number of the run")),
    responses(
        (status = OK, body = ShownRun),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(state): State<WebState>,
    InPath(number): InPath<i64>,
) -> Result<Json<ShownRun>, Problem> {
    let kept = state.lab.reader.all().await?;
    match kept.runs.get(&number) {
        Some(run) => Ok(Json(ShownRun::of(run, &kept))),
        None => Err(Problem::not_found(format!("there is no run {number}"))),
    }
}

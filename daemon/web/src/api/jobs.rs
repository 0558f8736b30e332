//! Jobs: what the lab was asked for, and asking it for more.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_lab::job_file::JobFile;
use layerlab_lab::query::{Page, ShownJob as JobWithEvents, listed_jobs};
use layerlab_lab::record::{Job, JobId};
use layerlab_lab::talk::{Answer, Request};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::events::ShownEvent;
use super::list::{Chosen, List};
use super::runs::ShownRun;
use crate::access::Operator;
use crate::extract::{InPath, InQuery, WholeBody};
use crate::lab::WebState;
use crate::problem::Problem;
use crate::submission::{self, Submitted};

/// A job.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownJob {
    /// Its number.
    id: i64,
    /// What users call it.
    name: String,
    /// What each of its runs gives: a `profile`, what answering the frames of a `video` costs, or what a `link` carries.
    #[schema(example = "profile")]
    kind: String,
    /// What became of it.
    #[schema(example = "open")]
    state: String,
    /// The names of its models; none of a job that measures a link.
    models: Vec<String>,
    /// The name of the link that it measures, if it does.
    link: Option<String>,
    /// The devices that it is for, in words.
    devices: Vec<String>,
    /// The hosts whose devices will do; those of all hosts of the lab if it names none.
    hosts: Vec<String>,
    /// Jobs with more go first.
    priority: i32,
    /// When it was submitted.
    submitted: Timestamp,
    /// What is not done then is given up.
    deadline: Option<Timestamp>,
}

impl From<&Job> for ShownJob {
    fn from(job: &Job) -> ShownJob {
        let (models, devices) = (job.spec.models.iter(), job.spec.devices.iter());
        ShownJob {
            id: job.id,
            name: job.spec.name.clone(),
            kind: job.spec.kind().to_string(),
            state: job.state.to_string(),
            models: models.map(|model| model.name.clone()).collect(),
            link: job.spec.link.as_ref().map(|link| link.name.clone()),
            devices: devices.map(ToString::to_string).collect(),
            hosts: job.spec.hosts.clone(),
            priority: job.spec.priority,
            submitted: job.submitted,
            deadline: job.spec.deadline,
        }
    }
}

/// A job in the list of jobs.
#[derive(Serialize, ToSchema)]
pub(super) struct ListedJob {
    /// The job itself.
    #[serde(flatten)]
    job: ShownJob,
    /// How many profiles it asks for, or measurements of frames or of a link.
    runs: usize,
    /// How many of them are published.
    done: usize,
    /// How many of its profiles are worse than the last good ones before them.
    worse: usize,
    /// What keeps it from being worked on; nothing if it is, or is over.
    waiting_for: Vec<String>,
}

/// Which jobs.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ChosenJobs {
    /// Those that are over, too.
    #[serde(default)]
    all: bool,
    /// The number of the page, from 1; pages have 50 jobs each.
    #[param(minimum = 1)]
    page: Option<usize>,
}

/// The jobs of the lab, and what each waits for.
#[utoipa::path(
    get,
    path = "/api/v1/jobs",
    operation_id = "list_jobs",
    params(ChosenJobs),
    responses(
        (status = OK, body = List<ListedJob>),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<WebState>,
    InQuery(ChosenJobs { all, page }): InQuery<ChosenJobs>,
) -> Result<Json<List<ListedJob>>, Problem> {
    let reader = &state.lab.reader;
    let kept = match all {
        true => reader.all().await?,
        false => reader.unfinished().await?,
    };
    let status = state.status().await?;
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let jobs = listed_jobs(&kept, Some(&status), all, now, &zone);
    let shown = |listed: layerlab_lab::query::ListedJob<'_>| ListedJob {
        job: listed.job.into(),
        runs: listed.runs.all(),
        done: listed.runs.in_state(layerlab_lab::record::RunState::Done),
        worse: listed.worse,
        waiting_for: listed.waiting_for,
    };
    Ok(Json(List::of(jobs, &Chosen { page }, shown)))
}

/// A job with a page of its runs, and what happened.
#[derive(Serialize, ToSchema)]
pub(super) struct JobInFull {
    /// The job itself.
    #[serde(flatten)]
    job: ShownJob,
    /// The runs of the page, in the order of their numbers.
    runs: Vec<ShownRun>,
    /// How many runs are on all pages together.
    all_runs: usize,
    /// What happened to the job and to the runs of the page, in order.
    events: Vec<ShownEvent>,
}

/// One job, with its runs and what happened.
#[utoipa::path(
    get,
    path = "/api/v1/jobs/{id}",
    operation_id = "show_job",
    params(("id" = i64, Path, description = "The number of the job"), Chosen),
    responses(
        (status = OK, body = JobInFull),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show(
    State(state): State<WebState>,
    InPath(id): InPath<JobId>,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Json<JobInFull>, Problem> {
    let reader = &state.lab.reader;
    let kept = reader.all().await?;
    let Some(job) = kept.jobs.get(&id) else {
        return Err(unknown(id));
    };
    let events = reader.events(job.submitted, Timestamp::MAX).await?;
    let shown = JobWithEvents::of(job, &kept, &events);
    let all_runs = shown.runs.len();
    let shown = shown.page(Page::new(chosen.page.unwrap_or(1)));
    let runs = shown.runs.into_iter();
    Ok(Json(JobInFull {
        job: job.into(),
        runs: runs.map(|run| ShownRun::of(run, &kept)).collect(),
        all_runs,
        events: shown.events.into_iter().map(ShownEvent::from).collect(),
    }))
}

fn unknown(id: JobId) -> Problem {
    Problem::not_found(format!("there is no job {id}"))
}

/// What became of a job that was sent.
#[derive(Serialize, ToSchema)]
pub(super) struct SubmittedJob {
    /// The number of the job.
    job: i64,
    /// How many runs it has; 0 if it comes again, or was known.
    runs: usize,
    /// The state of a job from before that asks for the same, if there is one; then the new one was not taken.
    known: Option<String>,
    /// What it asks for that nothing known to the lab can give.
    warnings: Vec<String>,
}

/// How a job is submitted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Submission {
    /// Even if a job that asks for the same is open or done.
    #[serde(default)]
    again: bool,
}

/// Give the lab a job: a job file, as TOML or as the same in JSON. Its models are files of the lab's folder for
/// them, or those that it brings (see PUT /api/v1/files).
#[utoipa::path(
    post,
    path = "/api/v1/jobs",
    operation_id = "submit_job",
    params(Submission),
    request_body(content(
        (serde_json::Value = "application/json"),
        (String = "application/toml"),
    )),
    responses(
        (status = OK, description = "A job from before asks for the same", body = SubmittedJob),
        (status = CREATED, body = SubmittedJob),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn submit(
    State(state): State<WebState>,
    Operator(by): Operator,
    InQuery(Submission { again }): InQuery<Submission>,
    body: WholeBody,
) -> Result<(StatusCode, Json<SubmittedJob>), Problem> {
    let text = job_text(&body)?;
    match submission::submit(&state, &text, again, &by).await? {
        Submitted::Taken {
            job,
            runs,
            warnings,
        } => {
            let known = None;
            let submitted = SubmittedJob {
                job,
                runs,
                known,
                warnings,
            };
            Ok((StatusCode::CREATED, Json(submitted)))
        }
        Submitted::Known(job, state) => {
            let submitted = SubmittedJob {
                job,
                runs: 0,
                known: Some(state.to_string()),
                warnings: Vec::new(),
            };
            Ok((StatusCode::OK, Json(submitted)))
        }
    }
}

/// The job file that a body is.
fn job_text(body: &WholeBody) -> Result<String, Problem> {
    if body.is("application/toml") {
        let text = std::str::from_utf8(&body.content);
        return text
            .map(str::to_owned)
            .map_err(|_| Problem::unusable("the job is no UTF-8; send it so"));
    }
    if !body.is("application/json") {
        return Err(Problem::usage(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "a job is TOML or JSON; send it with `Content-Type: application/toml` or `application/json`",
        ));
    }
    let job: serde_json::Value = body.json()?;
    JobFile::text_of_json(&job)
        .map_err(|error| Problem::unusable(format!("the job cannot be read: {error}")))
}

/// Have `request` done.
async fn done(state: &WebState, request: Request, by: &str) -> Result<StatusCode, Problem> {
    match state.ask(request, Some(by)).await? {
        Answer::Done => Ok(StatusCode::NO_CONTENT),
        other => Err(Problem::unexpected(other)),
    }
}

/// Leave a job alone until it is resumed.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/pause",
    operation_id = "pause_job",
    params(("id" = i64, Path, description = "The number of the job")),
    responses(
        (status = NO_CONTENT, description = "It is done"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pause(
    State(state): State<WebState>,
    Operator(by): Operator,
    InPath(job): InPath<JobId>,
) -> Result<StatusCode, Problem> {
    done(&state, Request::Pause { job }, &by).await
}

/// Go on with a paused job.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/resume",
    operation_id = "resume_job",
    params(("id" = i64, Path, description = "The number of the job")),
    responses(
        (status = NO_CONTENT, description = "It is done"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn resume(
    State(state): State<WebState>,
    Operator(by): Operator,
    InPath(job): InPath<JobId>,
) -> Result<StatusCode, Problem> {
    done(&state, Request::Resume { job }, &by).await
}

/// End a job; what is published stays.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/cancel",
    operation_id = "cancel_job",
    params(("id" = i64, Path, description = "The number of the job")),
    responses(
        (status = NO_CONTENT, description = "It is done"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cancel(
    State(state): State<WebState>,
    Operator(by): Operator,
    InPath(job): InPath<JobId>,
) -> Result<StatusCode, Problem> {
    done(&state, Request::Cancel { job }, &by).await
}

/// Try again what failed, expired or was cancelled of a job.
#[utoipa::path(
    post,
    path = "/api/v1/jobs/{id}/retry",
    operation_id = "retry_job",
    params(("id" = i64, Path, description = "The number of the job")),
    responses(
        (status = NO_CONTENT, description = "It is done"),
        (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn retry(
    State(state): State<WebState>,
    Operator(by): Operator,
    InPath(job): InPath<JobId>,
) -> Result<StatusCode, Problem> {
    done(&state, Request::Retry { job }, &by).await
}

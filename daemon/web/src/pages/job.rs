//! One job with its runs and what happened, and the buttons that change what becomes of it.

use std::path::Path;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{Page as ListPage, ShownJob, listed_jobs};
use layerlab_lab::record::{Job, JobId, JobState, Kept, Run, RunState};
use layerlab_lab::talk::Request;
use maud::{Markup, html};
use serde::Deserialize;

use super::jobs::{device_of, happened, model_of, more};
use super::layout::{Page, ProblemPage, badge};
use super::posted::Posted;
use super::told::when;
use crate::access::Caller;
use crate::extract::{InPath, InQuery};
use crate::lab::WebState;
use crate::problem::Problem;

/// Which page of the runs.
#[derive(Deserialize)]
pub(super) struct Chosen {
    page: Option<usize>,
}

/// One job.
pub(super) async fn show(
    State(state): State<WebState>,
    caller: Caller,
    InPath(id): InPath<JobId>,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Page, ProblemPage> {
    page(&state, id, chosen.page, caller.may_change()).await
}

/// Who looks at where a form was sent to, after a login in between say, sees the job's page.
pub(super) async fn back(InPath((job, _)): InPath<(JobId, String)>) -> Redirect {
    Redirect::to(&format!("/jobs/{job}"))
}

/// Pauses, resumes, cancels or retries a job, and shows it.
pub(super) async fn change(
    State(state): State<WebState>,
    InPath((job, change)): InPath<(JobId, String)>,
    posted: Posted,
) -> Result<Response, ProblemPage> {
    let request = match change.as_str() {
        "pause" => Request::Pause { job },
        "resume" => Request::Resume { job },
        "cancel" => Request::Cancel { job },
        "retry" => Request::Retry { job },
        _ => return Err(Problem::not_found("nothing of this name is done to jobs").into()),
    };
    let address = format!("/jobs/{job}");
    match state.ask(request, Some(&posted.by)).await {
        Ok(_) => Ok(Redirect::to(&address).into_response()),
        Err(problem) => {
            let page = page(&state, job, None, true).await?;
            Ok(page.refusing(problem, address).into_response())
        }
    }
}

async fn page(
    state: &WebState,
    id: JobId,
    number: Option<usize>,
    may_change: bool,
) -> Result<Page, ProblemPage> {
    let reader = &state.lab.reader;
    let kept = reader.all().await?;
    let Some(job) = kept.jobs.get(&id) else {
        return Err(Problem::not_found(format!("there is no job {id}")).into());
    };
    let events = reader.events(job.submitted, Timestamp::MAX).await?;
    let shown = ShownJob::of(job, &kept, &events);
    let can_be_retried = shown.runs.iter().any(|run| is_given_up(run));
    let (number, all) = (number.unwrap_or(1).max(1), shown.runs.len());
    let shown = shown.page(ListPage::new(number));
    let devices: Vec<String> = job.spec.devices.iter().map(ToString::to_string).collect();
    let waiting_for = waiting_for(state, &kept, job).await?;
    let content = html! {
        h1 { "Job " (id) ": " (Printable(&job.spec.name)) " " (badge(&job.state.to_string())) }
        @if may_change { (buttons(job, can_be_retried)) }
        dl {
            dt { "Submitted" } dd { (when(job.submitted)) }
            @if let Some(video) = &job.spec.video {
                dt { "Measures" } dd { "how the frames of " (Printable(&file_name(&video.path))) " are answered" }
            }
            @if let Some(link) = &job.spec.link {
                dt { "Measures" } dd { "the link " (Printable(&link.name)) " to " (Printable(&link.server)) }
            }
            @if let Some(deadline) = job.spec.deadline { dt { "Deadline" } dd { (when(deadline)) } }
            dt { "For" } dd { (Printable(&devices.join("; "))) }
            @if !job.spec.hosts.is_empty() { dt { "On hosts" } dd { (job.spec.hosts.join(", ")) } }
            @if !waiting_for.is_empty() { dt { "Waits for" } dd { (Printable(&waiting_for)) } }
        }
        h2 { "Runs" }
        @if shown.runs.is_empty() { p { "It has none." } } @else { (runs(job, &shown.runs, &kept)) }
        (more(number, shown.runs.len(), all, &format!("/jobs/{id}?page=")))
        h2 { "What happened" }
        (happened(&shown.events))
    };
    Ok(Page::new(format!("Job {id}"), "/jobs", content).live())
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn is_given_up(run: &Run) -> bool {
    matches!(
        run.state,
        RunState::Failed | RunState::Cancelled | RunState::Expired
    )
}

/// What keeps the job from being worked on; of one that is paused its button says so.
async fn waiting_for(state: &WebState, kept: &Kept, job: &Job) -> Result<String, Problem> {
    if job.state != JobState::Open && job.state != JobState::Recurring {
        return Ok(String::new());
    }
    let status = state.status().await?;
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let mut listed = listed_jobs(kept, Some(&status), false, now, &zone).into_iter();
    let listed = listed.find(|listed| listed.job.id == job.id);
    Ok(listed.map_or_else(String::new, |listed| listed.waiting_for.join("; ")))
}

fn buttons(job: &Job, can_be_retried: bool) -> Markup {
    let state = job.state;
    let all = [
        ("pause", "Pause", state == JobState::Open),
        ("resume", "Resume", state == JobState::Paused),
        ("retry", "Retry what was given up", can_be_retried),
        ("cancel", "Cancel", !state.is_over()),
    ];
    html! {
        div.buttons {
            @for (change, words, _) in all.into_iter().filter(|(.., is_offered)| *is_offered) {
                form action={ "/jobs/" (job.id) "/" (change) } method="post" { button { (words) } }
            }
        }
    }
}

fn runs(job: &Job, runs: &[&Run], kept: &Kept) -> Markup {
    let subject = match &job.spec.link {
        None => "Model",
        Some(_) => "Link",
    };
    html! {
        div.table { table {
            thead { tr { th scope="col" { "Run" } th scope="col" { (subject) } th scope="col" { "Device" } th scope="col" { "State" } th scope="col" { "Why" } } }
            tbody {
                @for run in runs {
                    tr {
                        td data-head="Run" { a href={ "/runs/" (run.number) } { (run.number) } }
                        td data-head=(subject) { (Printable(&model_of(run, kept))) }
                        td data-head="Device" { (device_of(run, kept)) }
                        td data-head="State" {
                            (badge(&run.state.to_string()))
                            @if run.profile.is_some() { " " a href={ "/profiles/" (run.number) } { "profile" } }
                        }
                        td data-head="Why" { @if let Some(reason) = &run.reason { (Printable(reason)) } }
                    }
                }
            }
        } }
    }
}

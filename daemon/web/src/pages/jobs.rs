//! The jobs of the lab, and one of them with its runs and what happened.

use axum::extract::{Path, Query, State};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{ListedJob, Page as ListPage, ShownJob, listed_jobs};
use layerlab_lab::record::{Event, JobId, Kept, Run, RunState};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, ProblemPage, badge, simulated_mark};
use super::told::when;
use crate::lab::WebState;
use crate::problem::Problem;

/// Which page of a list.
#[derive(Deserialize)]
pub(super) struct Chosen {
    #[serde(default)]
    all: bool,
    page: Option<usize>,
}

/// The jobs, the newest first.
pub(super) async fn list(
    State(state): State<WebState>,
    Query(chosen): Query<Chosen>,
) -> Result<Page, ProblemPage> {
    let reader = &state.lab.reader;
    let kept = match chosen.all {
        true => reader.all().await?,
        false => reader.unfinished().await?,
    };
    let status = state.status().await?;
    let mut jobs = listed_jobs(
        &kept,
        Some(&status),
        chosen.all,
        Timestamp::now(),
        &TimeZone::system(),
    );
    jobs.reverse();
    let number = chosen.page.unwrap_or(1).max(1);
    let all = jobs.len();
    let jobs = ListPage::new(number).of(jobs);
    let content = html! {
        h1 { "Jobs" }
        p {
            @if chosen.all { a href="/jobs" { "Only those that are open" } }
            @else { a href="/jobs?all=true" { "Those that are over, too" } }
        }
        @if jobs.is_empty() {
            p { "There is none here. " code { "layerlab submit FILE" } " gives the lab a job." }
        } @else {
            div.table { table {
                thead { tr { th scope="col" { "Job" } th scope="col" { "State" } th scope="col" { "Published" } th scope="col" { "Waits for" } } }
                tbody { @for job in &jobs { (row(job)) } }
            } }
        }
        (more(number, jobs.len(), all, if chosen.all { "/jobs?all=true&page=" } else { "/jobs?page=" }))
    };
    Ok(Page::new("Jobs", "/jobs", content).live())
}

fn row(listed: &ListedJob<'_>) -> Markup {
    let job = listed.job;
    html! {
        tr {
            td data-head="Job" { a href={ "/jobs/" (job.id) } { (job.id) " " (Printable(&job.spec.name)) } }
            td data-head="State" { (badge(&job.state.to_string())) }
            td data-head="Published" {
                (listed.runs.in_state(RunState::Done)) " of " (listed.runs.all())
                @if listed.worse > 0 { span.bad { ", " (listed.worse) " worse than before" } }
            }
            td data-head="Waits for" { (Printable(&listed.waiting_for.join("; "))) }
        }
    }
}

/// The way through a long list.
pub(super) fn more(number: usize, here: usize, all: usize, path: &str) -> Markup {
    if here == all {
        return Markup::default();
    }
    html! {
        nav.pages aria-label="Pages of the list" {
            @if number > 1 { a href={ (path) (number - 1) } rel="prev" { "Before" } }
            span { "page " (number) ", " (all) " in all" }
            @if !ListPage::new(number + 1).of((0..all).collect()).is_empty() { a href={ (path) (number + 1) } rel="next" { "Next" } }
        }
    }
}

/// One job.
pub(super) async fn show(
    State(state): State<WebState>,
    Path(id): Path<JobId>,
    Query(chosen): Query<Chosen>,
) -> Result<Page, ProblemPage> {
    let kept = state.lab.reader.all().await?;
    let Some(job) = kept.jobs.get(&id) else {
        return Err(Problem::not_found(format!("there is no job {id}")).into());
    };
    let events = state
        .lab
        .reader
        .events(job.submitted, Timestamp::MAX)
        .await?;
    let shown = ShownJob::of(job, &kept, &events);
    let (number, all) = (chosen.page.unwrap_or(1).max(1), shown.runs.len());
    let shown = shown.page(ListPage::new(number));
    let devices: Vec<String> = job.spec.devices.iter().map(ToString::to_string).collect();
    let content = html! {
        h1 { "Job " (id) ": " (Printable(&job.spec.name)) " " (badge(&job.state.to_string())) }
        dl {
            dt { "Submitted" } dd { (when(job.submitted)) }
            @if let Some(deadline) = job.spec.deadline { dt { "Deadline" } dd { (when(deadline)) } }
            dt { "For" } dd { (Printable(&devices.join(", "))) }
        }
        h2 { "Runs" }
        @if shown.runs.is_empty() { p { "It has none." } } @else { (runs(&shown.runs, &kept)) }
        (more(number, shown.runs.len(), all, &format!("/jobs/{id}?page=")))
        h2 { "What happened" }
        (happened(&shown.events))
    };
    Ok(Page::new(format!("Job {id}"), "/jobs", content).live())
}

fn runs(runs: &[&Run], kept: &Kept) -> Markup {
    html! {
        div.table { table {
            thead { tr { th scope="col" { "Run" } th scope="col" { "Model" } th scope="col" { "Device" } th scope="col" { "State" } th scope="col" { "Why" } } }
            tbody {
                @for run in runs {
                    tr {
                        td data-head="Run" { a href={ "/runs/" (run.number) } { (run.number) } }
                        td data-head="Model" { (Printable(&model_of(run, kept))) }
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

/// The name of a run's model.
pub(super) fn model_of(run: &Run, kept: &Kept) -> String {
    let model = kept
        .jobs
        .get(&run.job)
        .and_then(|job| job.spec.models.get(run.model));
    model.map_or_else(
        || format!("model {}", run.model + 1),
        |model| model.name.clone(),
    )
}

/// The device that has a run, or had.
pub(super) fn device_of(run: &Run, kept: &Kept) -> Markup {
    let Some(name) = &run.phone else {
        return Markup::default();
    };
    let simulated = kept
        .devices
        .get(name)
        .is_some_and(|device| device.simulated);
    html! { (Printable(name)) (simulated_mark(simulated, false)) }
}

/// Events, the newest first.
pub(super) fn happened(events: &[&Event]) -> Markup {
    html! {
        @if events.is_empty() { p { "Nothing yet." } } @else {
            ol.events reversed {
                @for event in events.iter().rev() {
                    li {
                        (when(event.at)) " "
                        @if let Some(run) = event.run { a href={ "/runs/" (run) } { "run " (run) } " " }
                        @if let Some(device) = &event.device { span.note { (Printable(device)) } " " }
                        (Printable(&event.what.to_string()))
                    }
                }
            }
        }
    }
}

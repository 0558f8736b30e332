//! The jobs of the lab, and what lists of jobs, runs and events have in common.

use axum::extract::State;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{ListedJob, Page as ListPage, listed_jobs};
use layerlab_lab::record::{Event, Kept, Run, RunState, What};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, ProblemPage, badge, simulated_mark};
use super::told::when;
use crate::access::Caller;
use crate::extract::InQuery;
use crate::lab::WebState;

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
    caller: Caller,
    InQuery(chosen): InQuery<Chosen>,
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
        @if caller.may_change() { p { a.button href="/jobs/new" { "New job" } } }
        p {
            @if chosen.all { a href="/jobs" { "Only those that are open" } }
            @else { a href="/jobs?all=true" { "Those that are over, too" } }
        }
        @if jobs.is_empty() {
            p {
                @if chosen.all { "The lab has had no job yet. " } @else { "No job is open. " }
                code { "layerlab submit FILE" } " on the lab's host gives it one."
            }
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

/// The name of a run's model, or of its link.
pub(super) fn model_of(run: &Run, kept: &Kept) -> String {
    let job = kept.jobs.get(&run.job);
    let subject = job.and_then(|job| job.spec.subject(run.model));
    subject.map_or_else(|| format!("model {}", run.model + 1), str::to_owned)
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
                        (what(event))
                    }
                }
            }
        }
    }
}

/// What happened, in a sentence. A profile is where its page is, whose folder says nothing to people elsewhere.
fn what(event: &Event) -> Markup {
    match &event.what {
        What::Published { findings, .. } => html! {
            "published"
            @if let Some(run) = event.run { " as " a href={ "/profiles/" (run) } { "its profile" } }
            @match findings.len() {
                0 => {}
                1 => ", with a doubt that the profile's page tells",
                doubts => { ", with " (doubts) " doubts that the profile's page tells" }
            }
        },
        What::Worse { numbers, .. } => {
            let numbers = numbers.join("; ");
            html! { "worse than before: " (Printable(&numbers)) }
        }
        other => html! { (Printable(&other.to_string())) },
    }
}

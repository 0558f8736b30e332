//! One run: where it is, how far it is, and what happened to it.

use std::time::Duration;

use axum::extract::State;
use jiff::Timestamp;
use layerlab_farm::adb::Printable;
use layerlab_lab::record::{Event, RunNumber};
use layerlab_lab::when::length;
use maud::html;

use super::jobs::{device_of, happened, model_of};
use super::layout::{Page, ProblemPage, badge};
use super::told::{progress, when};
use crate::extract::InPath;
use crate::lab::WebState;
use crate::problem::Problem;

/// One run.
pub(super) async fn show(
    State(state): State<WebState>,
    InPath(number): InPath<RunNumber>,
) -> Result<Page, ProblemPage> {
    let kept = state.lab.reader.all().await?;
    let Some(run) = kept.runs.get(&number) else {
        return Err(Problem::not_found(format!("there is no run {number}")).into());
    };
    let job = kept.jobs.get(&run.job);
    let since = job.map_or(Timestamp::MIN, |job| job.submitted);
    let events = state.lab.reader.events(since, Timestamp::MAX).await?;
    let events: Vec<&Event> = events
        .iter()
        .filter(|event| event.run == Some(number))
        .collect();
    let status = state.status().await?;
    let on_device = status
        .devices
        .iter()
        .find(|device| device.run == Some(number));
    let name = job.map_or("", |job| job.spec.name.as_str());
    let content = html! {
        h1 { "Run " (number) ": " (Printable(&model_of(run, &kept))) " " (badge(&run.state.to_string())) }
        @if let Some(done) = on_device.and_then(|device| device.progress) { (progress(done)) }
        @if let Some(reason) = on_device.and_then(|device| device.reason.as_ref()) { p.reason { (Printable(reason)) } }
        dl {
            dt { "Job" } dd { a href={ "/jobs/" (run.job) } { (run.job) " " (Printable(name)) } }
            @if run.phone.is_some() { dt { "Device" } dd { (device_of(run, &kept)) } }
            dt { "Attempt" } dd { (run.attempt) }
            @if let Some(at) = run.started { dt { "Begun" } dd { (when(at)) } }
            @if let Some(at) = run.ended { dt { "Ended" } dd { (when(at)) } }
            @if run.spent.wall_ms > 0 {
                dt { "On its device" } dd { (length(Duration::from_millis(run.spent.wall_ms))) ", of which measuring " (length(Duration::from_millis(run.spent.busy_ms))) }
            }
            @if let Some(reason) = &run.reason { dt { "Why" } dd { (Printable(reason)) } }
            @if let Some(verdict) = run.verdict.as_ref().filter(|verdict| !verdict.worse.is_empty()) {
                dt { "Worse than before" } dd.bad { (Printable(&verdict.worse.join("; "))) }
            }
        }
        @if run.profile.is_some() { p { a.button href={ "/profiles/" (number) } { "The profile" } } }
        h2 { "What happened" }
        (happened(&events))
    };
    Ok(Page::new(format!("Run {number}"), "/jobs", content).live())
}

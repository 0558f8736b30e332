//! One run: where it is, how far it is, and what happened to it.

use std::time::Duration;

use axum::extract::State;
use jiff::Timestamp;
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{LatestBlock, latest_block};
use layerlab_lab::record::{Event, RunNumber, RunState};
use layerlab_lab::when::length;
use layerlab_profiles::Segment;
use maud::{Markup, html};

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
    let latest = match job.filter(|_| run.state == RunState::Running) {
        Some(job) => latest_block(&state.lab.reader, &kept.lab, job, run).await?,
        None => None,
    };
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
            @if let Some(folder) = &run.video {
                dt { "Video measurement" } dd { "in " (Printable(&folder.display().to_string())) " on the lab's host" }
            }
            @if let Some(folder) = &run.link {
                dt { "Link measurement" } dd { "in " (Printable(&folder.display().to_string())) " on the lab's host" }
            }
            @if let Some(reason) = &run.reason { dt { "Why" } dd { (Printable(reason)) } }
            @if let Some(verdict) = run.verdict.as_ref().filter(|verdict| !verdict.worse.is_empty()) {
                dt { "Worse than before" } dd.bad { (Printable(&verdict.worse.join("; "))) }
            }
        }
        @if let Some(latest) = &latest { (samples(latest)) }
        @if run.profile.is_some() { p { a.button href={ "/profiles/" (number) } { "The profile" } } }
        h2 { "What happened" }
        (happened(&events))
    };
    Ok(Page::new(format!("Run {number}"), "/jobs", content).live())
}

/// The samples of the block in progress.
fn samples(latest: &LatestBlock) -> Markup {
    html! {
        h2 { "Samples as they come" }
        p.note {
            "Block " (latest.block) " of order " (latest.order)
            @if latest.is_probe { ", of a probe: a network that is measured to tell moving in from moving out" }
            ". Whether a block counts is known at its end."
        }
        div.table { table {
            thead { tr {
                th scope="col" { "Segment" } th scope="col" { "Processor" }
                th.number scope="col" { "Samples" } th.number scope="col" { "Last" } th.number scope="col" { "Median" }
            } }
            tbody {
                @for one in &latest.segments {
                    tr {
                        td data-head="Segment" { (layers(one.segment)) }
                        td data-head="Processor" { (Printable(&one.processor)) }
                        td.number data-head="Samples" { (one.samples) }
                        td.number data-head="Last" { (one.last) }
                        td.number data-head="Median" { (one.median) }
                    }
                }
            }
        } }
    }
}

fn layers(segment: Segment) -> String {
    match (segment.first(), segment.last()) {
        (first, last) if first == last => format!("layer {first}"),
        (first, last) => format!("layers {first} to {last}"),
    }
}

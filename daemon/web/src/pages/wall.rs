//! The devices, to be read across a room, and what is to be done on them.

use axum::extract::State;
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{WatchedDevice, WatchedDevices, WatchedJob, WatchedLab, WatchedRuns};
use layerlab_lab::record::RunNumber;
use maud::{Markup, html};

use super::layout::{Page, ProblemPage, badge, simulated_mark};
use super::path::segment;
use super::told::{progress, when};
use crate::lab::WebState;

/// The first page.
pub(super) async fn show(State(state): State<WebState>) -> Result<Page, ProblemPage> {
    let status = state.status().await?;
    let kept = state.lab.reader.unfinished().await?;
    let lab = WatchedLab::of(&Ok(status.clone()), &kept);
    let WatchedDevices::Now(watched) = &lab.devices else {
        return Err(crate::problem::Problem::internal(
            "the daemon answers, and does not say how devices are",
        )
        .into());
    };
    let devices = status.devices.iter().zip(watched);
    let content = html! {
        h1.sr { "Devices" }
        @if let Some(trouble) = &lab.trouble { p.trouble role="alert" { (trouble) } }
        @if watched.is_empty() {
            p { "The lab has no devices yet. A phone that is plugged in appears here; " code { "layerlab devices" } " says what keeps one away." }
        }
        ul.wall {
            @for (status, device) in devices {
                (tile(&status.device.name, status.device.simulated, status.run, device))
            }
        }
        (jobs(&lab.jobs))
        @if !lab.waiting.is_empty() {
            section {
                h2 { "What runs wait for" }
                ul.plain {
                    @for group in &lab.waiting {
                        li {
                            (Printable(&group.reason))
                            @if group.runs > 0 { span.note { " (" (group.runs) " of " (group.jobs) @if group.jobs == 1 { " job" } @else { " jobs" } ", first " (Printable(&group.first)) ")" } }
                        }
                    }
                }
            }
        }
    };
    Ok(Page::new("Devices", "/", content).live())
}

fn tile(name: &str, simulated: bool, run: Option<RunNumber>, device: &WatchedDevice) -> Markup {
    let state = device.state.to_string();
    html! {
        li class={ "tile " (state) } {
            h2 { a href={ "/devices/" (segment(name)) } { (Printable(name)) } (simulated_mark(simulated, false)) }
            p.state { (state) span.note { " since " (when(device.since)) } }
            @if let (Some(number), Some(run)) = (run, &device.run) {
                p.run { a href={ "/runs/" (number) } { (Printable(run)) } }
            }
            @if let Some(done) = device.progress { (progress(done)) }
            @if let Some(reason) = &device.reason { p.reason { (Printable(reason)) } }
            @if let Some(at) = device.free_at { p.note { "free about " (when(at)) } }
        }
    }
}

fn jobs(jobs: &[WatchedJob]) -> Markup {
    html! {
        section {
            h2 { "Jobs" }
            @if jobs.is_empty() { p { "No job is open." } } @else {
                div.table { table {
                    thead { tr { th scope="col" { "Job" } th scope="col" { "State" } th scope="col" { "Runs" } } }
                    tbody {
                        @for job in jobs {
                            tr {
                                td data-head="Job" { a href={ "/jobs/" (job.id) } { (job.id) " " (Printable(&job.name)) } }
                                td data-head="State" { (badge(&job.state.to_string())) }
                                td data-head="Runs" { @if let Some(runs) = &job.runs { (in_words(runs)) } }
                            }
                        }
                    }
                } }
            }
        }
    }
}

fn in_words(runs: &WatchedRuns) -> String {
    let counts = [
        (runs.published, "published"),
        (runs.running, "running"),
        (runs.parked, "parked"),
        (runs.waiting, "waiting"),
        (runs.failed, "failed"),
        (runs.worse, "worse than before"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = counts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    words.join(", ")
}

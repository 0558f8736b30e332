//! The devices, to be read across a room, host by host where several share the lab, and what is to be done on them.

use axum::extract::State;
use jiff::Timestamp;
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{
    ListedHost, WatchedDevice, WatchedDevices, WatchedJob, WatchedLab, WatchedRuns, listed_hosts,
};
use layerlab_lab::record::{LeaseState, RunNumber};
use layerlab_lab::talk::DeviceStatus;
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
    let devices: Vec<Shown<'_>> = status.devices.iter().zip(watched).collect();
    let hosts = state.lab.reader.hosts().await?;
    let hosts = listed_hosts(hosts, &kept, Timestamp::now());
    let content = html! {
        h1.sr { "Devices" }
        @if let Some(trouble) = &lab.trouble { p.trouble role="alert" { (trouble) } }
        @if watched.is_empty() {
            p { "The lab has no devices yet. A phone that is plugged in appears here; " code { "layerlab devices" } " says what keeps one away." }
        }
        @if hosts.len() > 1 { (racks(&hosts, &devices)) } @else { (tiles(&devices, |name| html! { h2 { (name) } })) }
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

/// A device as the lab knows it, and at a glance.
type Shown<'a> = (&'a DeviceStatus, &'a WatchedDevice);

/// The devices of each host, and whether it is alive.
fn racks(hosts: &[ListedHost], devices: &[Shown<'_>]) -> Markup {
    let of = |host: Option<&str>| -> Vec<Shown<'_>> {
        let devices = devices.iter().copied();
        devices
            .filter(|(status, _)| status.host.as_deref() == host)
            .collect()
    };
    let nowhere = of(None);
    let heading = |name: Markup| html! { h3 { (name) } };
    html! {
        @for host in hosts {
            section.rack {
                h2 { (Printable(&host.name)) " " (liveness(host)) }
                p.note { (facts(host)) }
                (tiles(&of(Some(&host.name)), heading))
            }
        }
        @if !nowhere.is_empty() {
            section.rack { h2 { "On no host" } (tiles(&nowhere, heading)) }
        }
    }
}

fn liveness(host: &ListedHost) -> Markup {
    let state = match host.lease {
        LeaseState::Alive => "alive",
        LeaseState::Lost => "lost",
        LeaseState::Ended => "ended",
    };
    html! {
        span class={ "badge " (state) } {
            (state)
            @if let Some(since) = host.since { @if host.lease == LeaseState::Lost { " since " } @else { " " } (when(since)) }
        }
    }
}

fn facts(host: &ListedHost) -> String {
    let counted = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    };
    let mut facts = vec![
        counted(host.devices.len(), "device", "devices"),
        counted(host.running, "run on them", "runs on them"),
    ];
    if host.parked > 0 {
        facts.push(format!("{} parked", host.parked));
    }
    facts.extend(host.zone.clone());
    facts.push(format!("layerlab {}", host.version));
    facts.join(", ")
}

/// The tiles of some devices, each under its name as a heading.
fn tiles(devices: &[Shown<'_>], heading: impl Fn(Markup) -> Markup) -> Markup {
    html! {
        ul.wall {
            @for (status, device) in devices {
                (tile(&status.device.name, status.device.simulated, status.run, device, &heading))
            }
        }
    }
}

fn tile(
    name: &str,
    simulated: bool,
    run: Option<RunNumber>,
    device: &WatchedDevice,
    heading: impl Fn(Markup) -> Markup,
) -> Markup {
    let state = device.state.to_string();
    let name = html! {
        a href={ "/devices/" (segment(name)) } { (Printable(name)) } (simulated_mark(simulated, false))
    };
    html! {
        li class={ "tile " (state) } {
            (heading(name))
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

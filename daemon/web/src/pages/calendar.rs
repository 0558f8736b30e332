//! The days to come: when jobs may be worked on, which jobs come again, and who has taken devices. Bars show what words say.

use axum::extract::State;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use layerlab_farm::adb::Printable;
use layerlab_farm::quarantine::Entry;
use layerlab_lab::query::{Calendar, CalendarDay};
use layerlab_lab::record::{Device, Job, Kept, Reservation};
use layerlab_lab::window::Window;
use maud::{Markup, html};

use super::layout::{Page, ProblemPage, badge, simulated_mark};
use super::path::segment;
use super::told::when;
use crate::lab::WebState;

/// The width of a bar, in units of its own.
const BAR: i64 = 1440;

/// The calendar.
pub(super) async fn show(State(state): State<WebState>) -> Result<Page, ProblemPage> {
    let kept = state.lab.reader.unfinished().await?;
    let left_alone = state.quarantined().await?;
    let status = state.status().await?;
    let (window, zone) = (&state.lab.window, TimeZone::system());
    let calendar = Calendar::of(&kept, window, Timestamp::now(), &zone);
    let content = html! {
        h1 { "Calendar" }
        p.note {
            "By the clock of "
            @if let Some(host) = &status.host { "host " (host) } @else { "the lab's host" }
            @if let Some(name) = zone.iana_name() { " (" (name) ")" }
            ". A bar is a day, from midnight to midnight; its marks are at 6, 12 and 18 hours."
        }
        div.days {
            @for (number, day) in calendar.days.iter().enumerate() { (one_day(number, day, &kept, &zone)) }
        }
        h2 { "Windows" }
        (windows(&calendar, window, status.host.is_some()))
        h2 { "Jobs that come again" }
        (recurring(&calendar.recurring))
        h2 { "Devices that are left alone" }
        (quarantine(&left_alone, &kept))
    };
    Ok(Page::new("Calendar", "/calendar", content).live())
}

fn one_day(number: usize, day: &CalendarDay<'_>, kept: &Kept, zone: &TimeZone) -> Markup {
    let id = format!("day-{number}");
    let date = day.begins.to_zoned(zone.clone());
    html! {
        section.day aria-labelledby=(id) {
            h3 id=(id) { (date.strftime("%a %-d %b")) @if number == 0 { span.note { " today" } } }
            h4 { "Jobs are worked on" }
            ul.plain {
                li { "In the lab's window: " (hours(&day.lab, day, zone)) }
                @for (job, open) in &day.jobs { li { (link(job)) ": " (hours(open, day, zone)) } }
            }
            h4 { "Jobs that come again" }
            @if day.coming.is_empty() { p { "None." } } @else {
                ul.plain {
                    @for (job, at) in &day.coming { li { (link(job)) " at " (clock(*at, zone)) } }
                }
            }
            h4 { "Reservations" }
            @if day.reservations.is_empty() { p { "No reservation." } } @else {
                ul.plain { @for one in &day.reservations { li { (reserved(one, day, kept, zone)) } } }
            }
        }
    }
}

fn reserved(one: &Reservation, day: &CalendarDay<'_>, kept: &Kept, zone: &TimeZone) -> Markup {
    let period = [(one.from.max(day.begins), one.until.min(day.ends))];
    html! {
        (device(&one.device, kept))
        @if !one.note.is_empty() { " for " (Printable(&one.note)) }
        ": " (hours(&period, day, zone))
    }
}

/// From when until when something is so on a day, in words and as a bar.
fn hours(open: &[(Timestamp, Timestamp)], day: &CalendarDay<'_>, zone: &TimeZone) -> Markup {
    let words: Vec<String> = open
        .iter()
        .map(|hours| in_words(*hours, day, zone))
        .collect();
    let length = day.ends.duration_since(day.begins).as_secs().max(1);
    let place = |at: Timestamp| at.duration_since(day.begins).as_secs() * BAR / length;
    html! {
        @if words.is_empty() { "not on this day" } @else { (words.join(", ")) }
        svg.hours viewBox={ "0 0 " (BAR) " 10" } preserveAspectRatio="none" aria-hidden="true" {
            @for (from, until) in open {
                rect x=(place(*from)) y="0" width=(place(*until) - place(*from)) height="10" {}
            }
            @for hour in [6, 12, 18] { path d={ "M" (BAR * hour / 24) " 0V10" } {} }
        }
    }
}

fn in_words(
    (from, until): (Timestamp, Timestamp),
    day: &CalendarDay<'_>,
    zone: &TimeZone,
) -> String {
    match (from <= day.begins, until >= day.ends) {
        (true, true) => "all day".to_owned(),
        (true, false) => format!("until {}", clock(until, zone)),
        (false, true) => format!("from {}", clock(from, zone)),
        (false, false) => format!("{} to {}", clock(from, zone), clock(until, zone)),
    }
}

fn clock(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%H:%M").to_string()
}

fn link(job: &Job) -> Markup {
    html! { a href={ "/jobs/" (job.id) } { (job.id) " " (Printable(&job.spec.name)) } }
}

fn device(name: &str, kept: &Kept) -> Markup {
    let mut devices = kept.devices.values();
    let known: Option<&Device> = devices.find(|device| device.is_called(name));
    html! {
        a href={ "/devices/" (segment(name)) } { (Printable(name)) }
        (simulated_mark(known.is_some_and(|device| device.simulated), false))
    }
}

fn windows(calendar: &Calendar<'_>, lab: &Window, has_hosts: bool) -> Markup {
    let by_host = |window: &Window| match has_hosts && window.is_by_host() {
        true => ", on each host by its own clock",
        false => "",
    };
    html! {
        dl {
            dt { "The lab's" } dd { (lab) (by_host(lab)) }
            dt { "Jobs that follow it" }
            dd {
                @if calendar.without_window.is_empty() { "none" }
                @for (place, job) in calendar.without_window.iter().enumerate() {
                    @if place > 0 { ", " }
                    (link(job))
                }
            }
            @for (job, window) in &calendar.with_window {
                dt { (link(job)) " " (badge(&job.state.to_string())) }
                dd {
                    (window) (by_host(window))
                    @if let Some(at) = job.spec.not_before { "; not before " (when(at)) }
                    @if let Some(at) = job.spec.deadline { "; not after " (when(at)) }
                }
            }
        }
    }
}

fn recurring(jobs: &[(&Job, Timestamp)]) -> Markup {
    html! {
        @if jobs.is_empty() { p { "No job comes again." } } @else {
            div.table { table {
                thead { tr { th scope="col" { "Job" } th scope="col" { "Comes" } th scope="col" { "Next" } } }
                tbody {
                    @for (job, next) in jobs {
                        tr {
                            td data-head="Job" { (link(job)) }
                            td data-head="Comes" { @if let Some(every) = &job.spec.every { code { (every) } } }
                            td data-head="Next" { (when(*next)) }
                        }
                    }
                }
            } }
        }
    }
}

fn quarantine(left_alone: &[Entry], kept: &Kept) -> Markup {
    html! {
        @if left_alone.is_empty() { p { "No device is left alone." } } @else {
            ul.plain {
                @for entry in left_alone {
                    li { (device(&entry.phone, kept)) " until " (entry.until_here()) ": " (Printable(&entry.why())) }
                }
            }
        }
    }
}

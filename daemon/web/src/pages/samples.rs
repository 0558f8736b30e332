//! The samples of a segment: how they are distributed, and one after another by visit, those that do not count among them.

use std::fmt;
use std::str::FromStr;

use axum::extract::State;
use layerlab_farm::adb::Printable;
use layerlab_lab::record::RunNumber;
use layerlab_profiles::document::{Profile, SegmentRow};
use layerlab_profiles::summary::Summary;
use layerlab_profiles::{Nanos, Segment};
use maud::{Markup, html};
use serde::Deserialize;

use super::chart;
use super::layout::{Page, ProblemPage, simulated_mark};
use super::path::segment as in_path;
use super::samples_charts::{histogram, one_after_another};
use super::told::{counts, subject};
use super::visits::{Visit, visits_to};
use crate::extract::{InPath, InQuery};
use crate::lab::WebState;
use crate::problem::Problem;
use crate::published::PublishedProfile;

/// Which segment's.
#[derive(Deserialize)]
pub(super) struct Chosen {
    #[serde(default)]
    processor: String,
    #[serde(default)]
    segment: String,
}

/// The samples of a segment, by default of the first.
pub(super) async fn show(
    State(state): State<WebState>,
    InPath(run): InPath<RunNumber>,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Page, ProblemPage> {
    let published = PublishedProfile::of_run(&state.lab.reader, run).await?;
    let content = tokio::task::spawn_blocking(move || content(&published, &chosen));
    let content = content.await.map_err(Problem::internal)??;
    let page = Page::new(format!("Samples of profile {run}"), "/profiles", content);
    Ok(page.with_style(chart::STYLE).with_scripts(&chart::SCRIPTS))
}

/// A segment as addresses and lists name it: `3`, or `3-5`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Named(Segment);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.first(), self.0.last()) {
            (first, last) if first == last => write!(f, "{first}"),
            (first, last) => write!(f, "{first}-{last}"),
        }
    }
}

impl FromStr for Named {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Named, Problem> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let numbers = first.parse().ok().zip(last.parse().ok());
        let segment = numbers.and_then(|(first, last)| Segment::new(first, last).ok());
        let unreadable = || {
            let detail = format!("`{text}` is no segment; write its layers, such as 3 or 3-5");
            Problem::unusable(detail)
        };
        segment.map(Named).ok_or_else(unreadable)
    }
}

fn content(published: &PublishedProfile, chosen: &Chosen) -> Result<Markup, Problem> {
    let run = published.run;
    let profile = published.read()?;
    let header = &profile.header;
    let row = row(&profile, chosen)?;
    let visits = visits_to(&profile, row);
    let names: Vec<&str> = header
        .processors
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let mark = simulated_mark(header.simulated, header.is_emulated(&row.processor));
    Ok(html! {
        h1 { "Samples: " (subject(header)) }
        p { a href={ "/profiles/" (run) } { "The profile" } }
        nav.choice aria-label="Processors" {
            @for name in names {
                a href={ "/profiles/" (run) "/samples?processor=" (in_path(name)) } aria-current=[(name == row.processor).then_some("true")] { (Printable(name)) }
            }
        }
        (choice(&profile, row, run))
        h2 { (layers(&profile, row.segment)) " on " (Printable(&row.processor)) (mark) }
        (summary(&row.summary, &visits))
        div.charts {
            (histogram(row, &visits))
            (one_after_another(row, &visits))
        }
        h3 { "Visits" }
        (table(&visits))
    })
}

/// The segment that was chosen.
fn row<'a>(profile: &'a Profile, chosen: &Chosen) -> Result<&'a SegmentRow, Problem> {
    let of_processor =
        |row: &&SegmentRow| chosen.processor.is_empty() || row.processor == chosen.processor;
    let mut rows = profile.segments.iter().filter(of_processor).peekable();
    let Some(first) = rows.peek() else {
        let mut known: Vec<&str> = profile
            .segments
            .iter()
            .map(|row| row.processor.as_str())
            .collect();
        known.dedup();
        let detail = match known.is_empty() {
            true => "the profile has no samples of segments".to_owned(),
            false => format!(
                "the profile has no samples of `{}`; choose one of {}",
                chosen.processor,
                known.join(", ")
            ),
        };
        return Err(Problem::not_found(detail));
    };
    if chosen.segment.is_empty() {
        return Ok(first);
    }
    let Named(segment) = chosen.segment.parse()?;
    let unknown = || {
        let detail = format!(
            "layers {} were not timed as one segment; choose another from the list",
            chosen.segment
        );
        Problem::not_found(detail)
    };
    rows.find(|row| row.segment == segment).ok_or_else(unknown)
}

fn choice(profile: &Profile, row: &SegmentRow, run: RunNumber) -> Markup {
    let of_processor = profile
        .segments
        .iter()
        .filter(|one| one.processor == row.processor);
    html! {
        form.filter action={ "/profiles/" (run) "/samples" } method="get" {
            input type="hidden" name="processor" value=(row.processor);
            label { "Segment "
                select name="segment" {
                    @for one in of_processor {
                        option value=(Named(one.segment)) selected[one.segment == row.segment] { (layers(profile, one.segment)) }
                    }
                }
            }
            button { "Show" }
        }
    }
}

/// A segment in words, such as `Layers 1 to 3, C1 to C2`.
fn layers(profile: &Profile, segment: Segment) -> String {
    let name = |number: u32| {
        let mut layers = profile.layers.iter();
        let layer = layers.find(|layer| layer.number == number);
        Printable(layer.map_or("", |layer| layer.name.as_str())).to_string()
    };
    let (first, last) = (segment.first(), segment.last());
    match first == last {
        true => format!("Layer {first}, {}", name(first)),
        false => format!(
            "Layers {first} to {last}, {} to {}",
            name(first),
            name(last)
        ),
    }
}

fn summary(summary: &Summary, visits: &[Visit<'_>]) -> Markup {
    let rejected: Vec<&Visit<'_>> = visits
        .iter()
        .filter(|visit| visit.rejection.is_some())
        .collect();
    let lost: usize = rejected.iter().map(|visit| visit.samples.len()).sum();
    html! {
        p {
            "Median " strong { (summary.median) }
            @match summary.median_ci95 {
                Some((low, high)) => { ", 95 % interval " (low) " to " (high) }
                None => " (too few samples or visits for an interval)",
            }
            ", of " (summary.count) " samples in " (visits.len() - rejected.len()) " visits. "
            "Nine in ten took " (summary.p5) " to " (summary.p95) ", all of them " (summary.min) " to " (summary.max) ". "
            @match rejected.len() {
                0 => "No block with it was rejected.",
                1 => { "1 block with " (lost) " more samples was rejected." }
                blocks => { (blocks) " blocks with " (lost) " more samples were rejected." }
            }
        }
    }
}

fn table(visits: &[Visit<'_>]) -> Markup {
    let median = |visit: &Visit<'_>| {
        let durations: Vec<Nanos> = visit.samples.iter().map(|sample| sample.duration).collect();
        Summary::of(&durations).map(|summary| summary.median.to_string())
    };
    html! {
        div.table { table.visits {
            thead { tr {
                th.number scope="col" { "Visit" } th.number scope="col" { "Order" } th.number scope="col" { "Block" }
                th.number scope="col" { "Samples" } th.number scope="col" { "Median" } th scope="col" { "Counts" }
            } }
            tbody {
                @for (place, visit) in visits.iter().enumerate() {
                    tr {
                        td.number data-head="Visit" { (place + 1) }
                        td.number data-head="Order" { (visit.order) }
                        td.number data-head="Block" { (visit.block) }
                        td.number data-head="Samples" { (visit.samples.len()) }
                        td.number data-head="Median" { (median(visit).unwrap_or_default()) }
                        td data-head="Counts" { (counts(visit.rejection)) }
                    }
                }
            }
        } }
    }
}

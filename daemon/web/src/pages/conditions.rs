//! How the run of a profile went: its blocks over time, with what the sentinel took, how hot the device was, how fast it was
//! clocked, what else ran, and which blocks do not count.

use std::collections::BTreeMap;

use axum::extract::State;
use layerlab_farm::adb::Printable;
use layerlab_lab::query::Page as ListPage;
use layerlab_lab::record::RunNumber;
use layerlab_profiles::Nanos;
use layerlab_profiles::document::{BlockEnd, Profile};
use maud::{Markup, html};
use serde::Deserialize;

use super::chart;
use super::conditions_charts::charts;
use super::jobs::more;
use super::layout::{Page, ProblemPage};
use super::run_clock::{RunClock, TimedBlock};
use super::told::{counts, rejected_words, subject};
use crate::extract::{InPath, InQuery};
use crate::lab::WebState;
use crate::problem::Problem;
use crate::published::PublishedProfile;

/// Which blocks the table has.
#[derive(Deserialize)]
pub(super) struct Chosen {
    #[serde(default)]
    rejected: bool,
    page: Option<usize>,
}

/// The blocks of a profile.
pub(super) async fn show(
    State(state): State<WebState>,
    InPath(run): InPath<RunNumber>,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Page, ProblemPage> {
    let published = PublishedProfile::of_run(&state.lab.reader, run).await?;
    let content = tokio::task::spawn_blocking(move || content(&published, &chosen));
    let content = content.await.map_err(Problem::internal)??;
    let page = Page::new(format!("How run {run} went"), "/profiles", content);
    Ok(page.with_style(chart::STYLE).with_scripts(&chart::SCRIPTS))
}

fn content(published: &PublishedProfile, chosen: &Chosen) -> Result<Markup, Problem> {
    let run = published.run;
    let profile = published.read()?;
    let clock = RunClock::of(&profile);
    let this = format!("/profiles/{run}/conditions");
    Ok(html! {
        h1 { "How the run went: " (subject(&profile.header)) }
        p { a href={ "/profiles/" (run) } { "The profile" } ", by " a href={ "/runs/" (run) } { "run " (run) } }
        (summary(&profile, &clock))
        (charts(&profile.header, &clock))
        h2 { "Blocks" }
        (blocks(&profile, &clock, chosen, &this))
    })
}

fn summary(profile: &Profile, clock: &RunClock<'_>) -> Markup {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for rejection in profile.blocks.iter().filter_map(|block| block.rejection) {
        *reasons.entry(rejected_words(rejection)).or_default() += 1;
    }
    let rejected: usize = reasons.values().sum();
    let reasons: Vec<String> = reasons
        .iter()
        .map(|(why, count)| format!("{count} as {why}"))
        .collect();
    html! {
        p {
            strong { (rejected) " of " (profile.blocks.len()) } " blocks do not count"
            @if !reasons.is_empty() { ": " (reasons.join(", ")) }
            ". Before and after each the sentinel was timed, and the device was asked how it is."
        }
        @match clock.restarts {
            0 => {}
            1 => { p.note { "The agent was started anew in between. How long it was away is not known: the charts leave it out." } }
            restarts => p.note { "The agent was started anew " (restarts) " times. How long it was away is not known: the charts leave it out." },
        }
    }
}

fn blocks(profile: &Profile, clock: &RunClock<'_>, chosen: &Chosen, this: &str) -> Markup {
    let is_shown = |timed: &&TimedBlock<'_>| !chosen.rejected || timed.block.rejection.is_some();
    let shown: Vec<&TimedBlock<'_>> = clock.blocks.iter().filter(is_shown).collect();
    let (number, all) = (chosen.page.unwrap_or(1).max(1), shown.len());
    let shown = ListPage::new(number).of(shown);
    let has_rejected = profile.blocks.iter().any(|block| block.rejection.is_some());
    let pages = match chosen.rejected {
        true => format!("{this}?rejected=true&page="),
        false => format!("{this}?page="),
    };
    html! {
        @if chosen.rejected { p { a href=(this) { "All blocks" } } }
        @else if has_rejected { p { a href={ (this) "?rejected=true" } { "Only those that do not count" } } }
        @if shown.is_empty() { p { "There is none." } } @else { (table(&shown)) }
        (more(number, shown.len(), all, &pages))
    }
}

fn table(blocks: &[&TimedBlock<'_>]) -> Markup {
    let temperature = |end: &BlockEnd| {
        let told = end.conditions.temperature_millicelsius;
        told.map(|temperature| temperature.to_string())
    };
    let status = |end: &BlockEnd| end.conditions.thermal_status;
    html! {
        div.table { table.blocks {
            thead { tr {
                th scope="col" { "Block" } th scope="col" { "Processor" } th.number scope="col" { "Begun" } th.number scope="col" { "Rested" }
                th.number scope="col" { "Samples" } th.number scope="col" { "Sentinel before" } th.number scope="col" { "after" }
                th.number scope="col" { "Temperature before" } th.number scope="col" { "after" } th.number scope="col" { "Thermal status" }
                th.number scope="col" { "Stolen" } th scope="col" { "Counts" }
            } }
            tbody {
                @for timed in blocks {
                    @let block = timed.block;
                    tr {
                        td data-head="Block" { (block.order) "." (block.number) }
                        td data-head="Processor" { (Printable(&block.processor)) }
                        td.number data-head="Begun" { @if let Some((begin, _)) = timed.period { (begin) } }
                        td.number data-head="Rested" { @if block.rested > Nanos::ZERO { (block.rested) } }
                        td.number data-head="Samples" { (timed.samples) }
                        td.number data-head="Sentinel before" { (block.before.sentinel) }
                        td.number data-head="Sentinel after" { (block.after.sentinel) }
                        td.number data-head="Temperature before" { (temperature(&block.before).unwrap_or_default()) }
                        td.number data-head="Temperature after" { (temperature(&block.after).unwrap_or_default()) }
                        td.number data-head="Thermal status" { @if let Some(worst) = status(&block.before).max(status(&block.after)) { (worst) } }
                        td.number data-head="Stolen" { @if let Some(disturbance) = block.disturbance { (disturbance.stolen_percent) " %" } }
                        td data-head="Counts" { (counts(block.rejection)) }
                    }
                }
            }
        } }
    }
}

//! The profiles that the lab has published, and one of them with what each layer costs.

use std::cmp::Reverse;

use axum::extract::State;
use layerlab_campaign::publish::PLOT;
use layerlab_farm::adb::Printable;
use layerlab_lab::page::picture;
use layerlab_lab::query::{IndexedProfile, Page as ListPage, indexed_profiles};
use layerlab_lab::record::RunNumber;
use layerlab_lab::text_table::estimate;
use layerlab_profiles::Layer;
use layerlab_profiles::check::check;
use layerlab_profiles::document::{LayerTimeRow, Processor, ProcessorKind, Profile, ProfileDigest};
use layerlab_profiles::summary::Estimate;
use maud::{Markup, html};
use serde::Deserialize;

use super::chart::{self, Series, chart};
use super::compare_chosen::MOST_OTHERS;
use super::jobs::more;
use super::layout::{Page, ProblemPage, simulated_mark};
use super::path::segment as in_path;
use super::told::{subject, when, when_words};
use crate::extract::{InPath, InQuery};
use crate::lab::WebState;
use crate::problem::Problem;
use crate::published::PublishedProfile;

/// So many profiles of the same model are offered for a comparison; a list has all of them.
const MOST_OFFERED: usize = 12;

/// Which profiles.
#[derive(Deserialize)]
pub(super) struct Chosen {
    model: Option<String>,
    device: Option<String>,
    page: Option<usize>,
}

/// All profiles, by model and device.
pub(super) async fn list(
    State(state): State<WebState>,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Page, ProblemPage> {
    let kept = state.lab.reader.all().await?;
    let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    let (model, device) = (named(&chosen.model), named(&chosen.device));
    let profiles = indexed_profiles(&kept, model.as_deref(), device.as_deref());
    let (number, all) = (chosen.page.unwrap_or(1).max(1), profiles.len());
    let profiles = ListPage::new(number).of(profiles);
    let path = "/profiles?page=";
    let content = html! {
        h1 { "Profiles" }
        form.filter action="/profiles" method="get" {
            label { "Model " input name="model" value=[model.as_deref()]; }
            label { "Device " input name="device" value=[device.as_deref()]; }
            button { "Show" }
        }
        @if profiles.is_empty() { p { "There is none." } } @else {
            form action="/compare" method="get" {
                (table(&profiles))
                @if profiles.len() > 1 {
                    p { button { "Compare those ticked" } " " span.note { "The others are compared with the first; " (MOST_OTHERS) " others at most." } }
                }
            }
        }
        (more(number, profiles.len(), all, path))
    };
    Ok(Page::new("Profiles", "/profiles", content).live())
}

fn table(profiles: &[IndexedProfile]) -> Markup {
    html! {
        div.table { table {
            thead { tr {
                th scope="col" { "Model" } th scope="col" { "Device" } th scope="col" { "Published" } th scope="col" { "Run" }
                @if profiles.len() > 1 { th scope="col" { "Compare" } }
            } }
            tbody {
                @for profile in profiles {
                    tr {
                        td data-head="Model" { a href={ "/profiles/" (profile.run) } { (Printable(&profile.model)) } }
                        td data-head="Device" { (Printable(&profile.device)) (simulated_mark(profile.simulated, false)) }
                        td data-head="Published" { (when(profile.published)) }
                        td data-head="Run" { a href={ "/runs/" (profile.run) } { (profile.run) } }
                        @if profiles.len() > 1 {
                            td data-head="Compare" { input type="checkbox" name="other" value=(profile.run) aria-label={ "Compare profile " (profile.run) }; }
                        }
                    }
                }
            }
        } }
    }
}

/// One profile.
pub(super) async fn show(
    State(state): State<WebState>,
    InPath(run): InPath<RunNumber>,
) -> Result<Page, ProblemPage> {
    let published = PublishedProfile::of_run(&state.lab.reader, run).await?;
    let kept = state.lab.reader.all().await?;
    let mut others = indexed_profiles(&kept, Some(&published.model), None);
    others.retain(|other| other.run != run);
    others.sort_by_key(|other| Reverse(other.published));
    others.truncate(MOST_OFFERED);
    let content = tokio::task::spawn_blocking(move || content(&published, &others));
    let content = content.await.map_err(Problem::internal)??;
    let page = Page::new(format!("Profile {run}"), "/profiles", content);
    Ok(page.with_style(chart::STYLE).with_scripts(&chart::SCRIPTS))
}

fn content(published: &PublishedProfile, others: &[IndexedProfile]) -> Result<Markup, Problem> {
    let (run, folder) = (published.run, &published.folder);
    let profile = published.read()?;
    let header = &profile.header;
    let digest = ProfileDigest::of_folder(folder).ok();
    let plot = std::fs::read(folder.join(PLOT)).ok();
    let findings = check(&profile);
    let words = format!("What each layer of {} costs", header.model.name);
    let wholes = header.processors.iter().zip(profile.whole_model_times());
    Ok(html! {
        h1 { (subject(header)) }
        dl {
            dt { "Published" } dd { (when(published.published)) ", by " a href={ "/runs/" (run) } { "run " (run) } }
            @if let Some(digest) = digest { dt { "Digest" } dd { code { (digest) } } }
            @for (processor, whole) in wholes {
                dt { "All on " (Printable(&processor.name)) }
                dd { @match whole { Some(time) => (time), None => "cannot run every layer" } }
            }
        }
        p.buttons {
            @if profile.header.processors.len() > 1 { a.button href={ "/profiles/" (run) "/explore" } { "Explore placements" } }
            a.button href={ "/profiles/" (run) "/samples" } { "Samples" }
            a.button href={ "/profiles/" (run) "/conditions" } { "How the run went" }
        }
        @if !findings.is_empty() {
            h2 { "What is doubtful" }
            ul.plain { @for finding in &findings { li { (Printable(&finding.sentence)) span.note { ": " (finding.remedy) } } } }
        }
        @if let Some(plot) = plot { figure tabindex="0" { (picture(&plot, &words)) } }
        (charts(&profile))
        h2 { "Layers" }
        (layers(&profile))
        p.note { "Times are estimates ± half their 95 % interval; ? marks what cannot be told from zero." }
        @if !others.is_empty() { (compared(published, others)) }
        h2 { "Files" }
        ul.plain {
            @for name in published.files()? {
                li { a href={ "/api/v1/profiles/" (run) "/files/" (name) } download=(name) { (name) } }
            }
        }
    })
}

/// The way to comparisons with other profiles of the same model, the newest first.
fn compared(published: &IndexedProfile, others: &[IndexedProfile]) -> Markup {
    html! {
        h2 { "Compare" }
        form.choose action="/compare" method="get" {
            input type="hidden" name="one" value=(published.run);
            fieldset {
                legend { "With " (MOST_OTHERS) " others at most" }
                @for (place, other) in others.iter().enumerate() {
                    label {
                        input type="checkbox" name="other" value=(other.run) checked[place == 0];
                        " " (Printable(&other.device)) @if other.simulated { " (simulated)" } ", " (when_words(other.published))
                    }
                }
                p { a href={ "/profiles?model=" (in_path(&published.model)) } { "All profiles of this model" } }
            }
            button { "Compare" }
        }
    }
}

/// What each layer costs to compute and to move, and each cut.
fn charts(profile: &Profile) -> Markup {
    let layers = &profile.layers;
    let of_each = |name: &dyn Fn(&str) -> String,
                   number: &dyn Fn(&LayerTimeRow) -> Option<Estimate>| {
        let processors = profile.header.processors.iter().enumerate();
        let series = processors.map(|(part, processor)| Series {
            name: name(&processor.name),
            part,
            numbers: (layers.iter())
                .map(|layer| number(row_of(profile, processor, layer.number)?))
                .collect(),
        });
        series.collect::<Vec<Series>>()
    };
    let compute = of_each(&str::to_owned, &|row| Some(row.time.compute));
    let to = of_each(&|name| format!("to {name}"), &|row| row.time.to_processor);
    // In a colour of their own, that of what comes after the processors.
    let count = profile.header.processors.len();
    let from = of_each(&|name| format!("from {name}"), &|row| {
        row.time.from_processor
    });
    let from = from.into_iter().map(|series| Series {
        part: count,
        ..series
    });
    let moving: Vec<Series> = to.into_iter().chain(from).collect();
    let processors = profile.header.processors.iter().enumerate();
    let cuts = processors.map(|(part, processor)| {
        let cost = |layer: &Layer| {
            let mut cuts = profile.cuts.iter();
            let cut =
                cuts.find(|cut| cut.processor == processor.name && cut.after_layer == layer.number);
            cut.map(|cut| cut.cost)
        };
        Series {
            name: processor.name.clone(),
            part,
            numbers: layers.iter().map(cost).collect(),
        }
    });
    let cuts: Vec<Series> = cuts.collect();
    html! {
        div.charts {
            (chart("Computing", "layer", layers, &compute))
            (chart("Moving a layer's input in and its output out", "layer", layers, &moving))
            (chart("What a cut costs: leaving after a layer and entering before the next", "after layer", layers, &cuts))
        }
    }
}

fn row_of<'a>(profile: &'a Profile, processor: &Processor, layer: u32) -> Option<&'a LayerTimeRow> {
    let mut rows = profile.times.iter();
    rows.find(|row| row.processor == processor.name && row.layer == layer)
}

fn layers(profile: &Profile) -> Markup {
    let processors = &profile.header.processors;
    html! {
        div.table { table.layers {
            thead { tr {
                th.number scope="col" { "Layer" } th scope="col" { "Name" } th.number scope="col" { "Output" }
                @for processor in processors {
                    @if processor.kind == ProcessorKind::Accelerator { th.number scope="col" { "to " (Printable(&processor.name)) } }
                    th.number scope="col" { (Printable(&processor.name)) }
                    @if processor.kind == ProcessorKind::Accelerator { th.number scope="col" { "from " (Printable(&processor.name)) } }
                }
            } }
            tbody {
                @for layer in &profile.layers {
                    tr {
                        td.number data-head="Layer" { (layer.number) }
                        td data-head="Name" { (Printable(&layer.name)) }
                        td.number data-head="Output" { (layer.output_bytes) }
                        @for processor in processors { (cells(processor, row_of(profile, processor, layer.number))) }
                    }
                }
            }
        } }
    }
}

fn cells(processor: &Processor, row: Option<&LayerTimeRow>) -> Markup {
    let name = Printable(&processor.name).to_string();
    let moved = |separate: Option<Estimate>, included: bool| match (separate, included) {
        (Some(time), _) => estimate(&time),
        (None, true) => "in compute".to_owned(),
        (None, false) => String::new(),
    };
    let is_accelerator = processor.kind == ProcessorKind::Accelerator;
    let time = row.map(|row| &row.time);
    let to = time.map(|time| moved(time.to_processor, time.compute_includes.to_processor));
    let from = time.map(|time| moved(time.from_processor, time.compute_includes.from_processor));
    html! {
        @if is_accelerator { td.number data-head={ "to " (name) } { (to.unwrap_or_default()) } }
        td.number data-head=(name) {
            @match time { Some(time) => (estimate(&time.compute)), None => "cannot run it" }
        }
        @if is_accelerator { td.number data-head={ "from " (name) } { (from.unwrap_or_default()) } }
    }
}

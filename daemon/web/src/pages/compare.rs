//! Two profiles of one model side by side: which numbers differ by more than noise explains, as `layerlab compare` says.

use axum::extract::{Query, State};
use layerlab_farm::adb::Printable;
use layerlab_lab::query::IndexedProfile;
use layerlab_lab::record::RunNumber;
use layerlab_lab::text_table::estimate;
use layerlab_profiles::Layer;
use layerlab_profiles::compare::{
    Difference, Quantity, RunsInOne, SIGNIFICANCE, compare, runs_in_one,
};
use layerlab_profiles::document::Profile;
use maud::{Markup, html};
use serde::Deserialize;

use super::chart::{self, Series, chart};
use super::layout::{Page, ProblemPage};
use super::told::{subject, when};
use crate::lab::WebState;
use crate::problem::Problem;
use crate::published::PublishedProfile;

/// Which profiles, by their runs.
#[derive(Deserialize)]
pub(super) struct Chosen {
    one: RunNumber,
    other: RunNumber,
    #[serde(default)]
    all: bool,
}

/// What two profiles say of the same layers.
pub(super) async fn show(
    State(state): State<WebState>,
    Query(chosen): Query<Chosen>,
) -> Result<Page, ProblemPage> {
    let one = PublishedProfile::of_run(&state.lab.reader, chosen.one).await?;
    let other = PublishedProfile::of_run(&state.lab.reader, chosen.other).await?;
    let content = tokio::task::spawn_blocking(move || content(&one, &other, chosen.all));
    let content = content.await.map_err(Problem::internal)??;
    let page = Page::new("Comparison", "/profiles", content);
    Ok(page.with_style(chart::STYLE).with_scripts(&chart::SCRIPTS))
}

fn content(one: &PublishedProfile, other: &PublishedProfile, all: bool) -> Result<Markup, Problem> {
    let profiles = (one.read()?, other.read()?);
    let differences = compare(&profiles.0, &profiles.1).map_err(Problem::unusable)?;
    let is_shown = |difference: &&Difference| all || difference.is_significant();
    let shown: Vec<&Difference> = differences.iter().filter(is_shown).collect();
    let significant = differences.iter().filter(|one| one.is_significant());
    let significant = significant.count();
    let layers = &profiles.0.layers;
    let this = format!("/compare?one={}&other={}", one.run, other.run);
    let lacking = runs_in_one(&profiles.0, &profiles.1);
    Ok(html! {
        h1 { "Comparison" }
        dl {
            (named("One", one, &profiles.0))
            (named("Other", other, &profiles.1))
        }
        p {
            strong { (significant) " of " (differences.len()) } " numbers differ significantly "
            span.note { (format!("(p < {SIGNIFICANCE}, adjusted by Holm's method)")) } ". "
            @if all { a href=(this) { "Only those" } } @else if significant < differences.len() { a href={ (this) "&all=true" } { "All numbers" } }
        }
        @if !lacking.is_empty() { ul.plain { @for lacked in &lacking { li { (lacks(layers, lacked)) } } } }
        (chart("Computing: the other less the one", "layer", layers, &series(&profiles.0, &differences)))
        @if !shown.is_empty() { (table(layers, &shown)) }
        p.note { "Times are estimates ± half their 95 % interval; ? marks what cannot be told from zero." }
    })
}

fn named(which: &str, published: &IndexedProfile, profile: &Profile) -> Markup {
    html! {
        dt { (which) }
        dd { a href={ "/profiles/" (published.run) } { (subject(&profile.header)) } span.note { ", " (when(published.published)) } }
    }
}

fn lacks(layers: &[Layer], lacked: &RunsInOne) -> Markup {
    let (can, cannot) = match lacked.lacks_other {
        true => ("one", "other"),
        false => ("other", "one"),
    };
    html! {
        "Layer " (lacked.layer) " (" (Printable(name(layers, lacked.layer))) ") runs on " (Printable(&lacked.processor))
        " in " (can) " and not in " (cannot) ": " (Printable(&lacked.reason))
    }
}

fn name(layers: &[Layer], number: u32) -> &str {
    let layer = layers.iter().find(|layer| layer.number == number);
    layer.map_or("", |layer| &layer.name)
}

/// By how much each layer's computing differs, on each processor of both.
fn series(profile: &Profile, differences: &[Difference]) -> Vec<Series> {
    let processors = profile.header.processors.iter().enumerate();
    let of = |processor: &str, layer: &Layer| {
        let mut of_layer = differences
            .iter()
            .filter(|one| one.processor == processor && one.layer == layer.number);
        let computing = of_layer.find(|one| one.quantity == Quantity::Compute);
        computing.map(|one| one.difference)
    };
    let series = processors.map(|(part, processor)| Series {
        name: processor.name.clone(),
        part,
        numbers: profile
            .layers
            .iter()
            .map(|layer| of(&processor.name, layer))
            .collect(),
    });
    series.collect()
}

fn table(layers: &[Layer], differences: &[&Difference]) -> Markup {
    html! {
        div.table { table.layers {
            thead { tr {
                th scope="col" { "Processor" } th.number scope="col" { "Layer" } th scope="col" { "Name" } th scope="col" { "What" }
                th.number scope="col" { "One" } th.number scope="col" { "Other" } th.number scope="col" { "Difference" } th.number scope="col" { "p" }
            } }
            tbody {
                @for difference in differences {
                    tr {
                        td data-head="Processor" { (Printable(&difference.processor)) }
                        td.number data-head="Layer" { (difference.layer) }
                        td data-head="Name" { (Printable(name(layers, difference.layer))) }
                        td data-head="What" { (difference.quantity.name().replace('_', " ")) }
                        td.number data-head="One" { (estimate(&difference.one)) }
                        td.number data-head="Other" { (estimate(&difference.other)) }
                        td.number data-head="Difference" { span class=[way(difference)] { (estimate(&difference.difference)) } }
                        td.number data-head="p" { @if let Some(p) = difference.p_value { (format!("{p:.2e}")) } }
                    }
                }
            }
        } }
    }
}

/// Whether the other is surely slower or faster.
fn way(difference: &Difference) -> Option<&'static str> {
    let is_slower = difference.difference.value.as_nanos() > 0;
    difference.is_significant().then_some(match is_slower {
        true => "changed slower",
        false => "changed faster",
    })
}

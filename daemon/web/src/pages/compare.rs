//! One profile beside others of its model: which numbers differ by more than noise explains, as `layerlab compare` says of each
//! pair.

use std::collections::BTreeMap;

use axum::extract::State;
use layerlab_farm::adb::Printable;
use layerlab_lab::query::{IndexedProfile, Page as ListPage};
use layerlab_lab::text_table::{estimate, p_value};
use layerlab_profiles::Layer;
use layerlab_profiles::compare::{
    Difference, Quantity, RunsInOne, SIGNIFICANCE, compare, runs_in_one,
};
use layerlab_profiles::document::Profile;
use layerlab_profiles::summary::Estimate;
use maud::{Markup, html};

use super::chart::{self, COLOURS, Series, chart};
use super::compare_chosen::ChosenProfiles;
use super::jobs::more;
use super::layout::{Page, ProblemPage};
use super::told::{subject, when};
use crate::extract::InQuery;
use crate::lab::WebState;
use crate::problem::Problem;
use crate::published::PublishedProfile;

/// What profiles say of the same layers.
pub(super) async fn show(
    State(state): State<WebState>,
    InQuery(chosen): InQuery<Vec<(String, String)>>,
) -> Result<Page, ProblemPage> {
    let chosen = ChosenProfiles::of(&chosen)?;
    let one = PublishedProfile::of_run(&state.lab.reader, chosen.one).await?;
    let mut others = Vec::new();
    for other in &chosen.others {
        others.push(PublishedProfile::of_run(&state.lab.reader, *other).await?);
    }
    let content = tokio::task::spawn_blocking(move || content(&chosen, &one, &others));
    let content = content.await.map_err(Problem::internal)??;
    let page = Page::new("Comparison", "/profiles", content);
    Ok(page.with_style(chart::STYLE).with_scripts(&chart::SCRIPTS))
}

/// What one of the others says.
struct Other<'a> {
    published: &'a IndexedProfile,
    profile: Profile,
    /// Of each number that both profiles have.
    differences: BTreeMap<NumberKey, Difference>,
    lacking: Vec<RunsInOne>,
}

/// A number of a profile: the place of its processor, its layer, and what it is.
type NumberKey = (usize, u32, u8);

impl<'a> Other<'a> {
    fn of(published: &'a PublishedProfile, one: &Profile) -> Result<Other<'a>, Problem> {
        let profile = published.read()?;
        let differences = compare(one, &profile).map_err(|error| {
            Problem::unusable(format!(
                "the profile of run {} cannot be compared: {error}",
                published.run
            ))
        })?;
        let places: BTreeMap<&str, usize> = (one.header.processors.iter().enumerate())
            .map(|(place, processor)| (processor.name.as_str(), place))
            .collect();
        let keyed = differences.into_iter().filter_map(|difference| {
            let place = places.get(difference.processor.as_str())?;
            Some((
                (*place, difference.layer, place_of(difference.quantity)),
                difference,
            ))
        });
        Ok(Other {
            differences: keyed.collect(),
            lacking: runs_in_one(one, &profile),
            published,
            profile,
        })
    }

    fn significant(&self) -> usize {
        let differences = self.differences.values();
        differences.filter(|one| one.is_significant()).count()
    }

    /// By how much the computing of each layer differs on the processor in this place.
    fn computing(&self, layers: &[Layer], place: usize) -> Vec<Option<Estimate>> {
        let of_layer = |layer: &Layer| {
            let key = (place, layer.number, place_of(Quantity::Compute));
            self.differences.get(&key).map(|one| one.difference)
        };
        layers.iter().map(of_layer).collect()
    }
}

/// In which order the numbers of a layer come.
fn place_of(quantity: Quantity) -> u8 {
    match quantity {
        Quantity::ToProcessor => 0,
        Quantity::Compute => 1,
        Quantity::FromProcessor => 2,
    }
}

/// A number, and how it is in each of the others that has it.
struct Row<'a> {
    number: &'a Difference,
    differences: Vec<Option<&'a Difference>>,
}

impl Row<'_> {
    fn is_significant(&self) -> bool {
        let known = self.differences.iter().flatten();
        known
            .into_iter()
            .any(|difference| difference.is_significant())
    }
}

fn content(
    chosen: &ChosenProfiles,
    published: &PublishedProfile,
    others: &[PublishedProfile],
) -> Result<Markup, Problem> {
    let one = published.read()?;
    let others = others.iter().map(|other| Other::of(other, &one));
    let others: Vec<Other<'_>> = others.collect::<Result<_, Problem>>()?;
    let (rows, hidden) = rows(&others, chosen.shows_all);
    let all = rows.len();
    let rows = ListPage::new(chosen.page).of(rows);
    Ok(html! {
        h1 { "Comparison" }
        (named(chosen, published, &one, &others))
        p {
            @if let [other] = &others[..] { strong { (significant_words(other)) } " " }
            span.note { (holm_words(others.len())) } " "
            @if chosen.shows_all { a href=(chosen.address(false)) { "Only those" } }
            @else if hidden > 0 { a href=(chosen.address(true)) { "All numbers" } }
        }
        (lacking(&one.layers, &others))
        (charts(&one, &others))
        @if !rows.is_empty() {
            div.table { table.layers { (table(&one.layers, &others, &rows)) } }
        }
        (more(chosen.page, rows.len(), all, &chosen.pages()))
        p.note { "Times are estimates ± half their 95 % interval; ? marks what cannot be told from zero." }
    })
}

/// The numbers to show, those that differ significantly first, and how many are not shown.
fn rows<'a>(others: &'a [Other<'_>], shows_all: bool) -> (Vec<Row<'a>>, usize) {
    let mut by_number: BTreeMap<NumberKey, Row<'a>> = BTreeMap::new();
    for (place, other) in others.iter().enumerate() {
        for (key, difference) in &other.differences {
            let row = by_number.entry(*key).or_insert_with(|| Row {
                number: difference,
                differences: vec![None; others.len()],
            });
            row.differences[place] = Some(difference);
        }
    }
    let (mut shown, rest): (Vec<Row<'a>>, Vec<Row<'a>>) =
        by_number.into_values().partition(Row::is_significant);
    let hidden = rest.len();
    if shows_all {
        shown.extend(rest);
    }
    (shown, hidden)
}

fn significant_words(other: &Other<'_>) -> String {
    let (significant, all) = (other.significant(), other.differences.len());
    format!("{significant} of {all} numbers differ significantly")
}

/// Over what p-values are adjusted.
fn holm_words(others: usize) -> String {
    let adjusted =
        format!("p < {SIGNIFICANCE}, adjusted by Holm's method over all numbers of a processor");
    match others {
        1 => format!("({adjusted})"),
        _ => format!(
            "Significantly: {adjusted}, each pair of profiles by itself. The chance that a number is said to differ although none \
             does is {:.0} % for each processor and pair, not for all pairs together.",
            SIGNIFICANCE * 100.0
        ),
    }
}

/// What is compared. With several others, each says how much of it differs, and leads to a comparison with it.
fn named(
    chosen: &ChosenProfiles,
    published: &IndexedProfile,
    one: &Profile,
    others: &[Other<'_>],
) -> Markup {
    let link = |published: &IndexedProfile, profile: &Profile| {
        html! { a href={ "/profiles/" (published.run) } { (subject(&profile.header)) } span.note { ", " (when(published.published)) } }
    };
    html! {
        dl {
            dt { "One" } dd { (link(published, one)) }
            @for other in others {
                dt { (head(others, other)) }
                dd {
                    (link(other.published, &other.profile))
                    @if others.len() > 1 {
                        ": " strong { (significant_words(other)) } ". "
                        a href=(chosen.led_by(other.published.run)) { "Compare all with this one" }
                    }
                }
            }
        }
    }
}

/// What one of the others is called.
fn head(others: &[Other<'_>], other: &Other<'_>) -> String {
    match others.len() {
        1 => "Other".to_owned(),
        _ => format!("Run {}", other.published.run),
    }
}

fn lacking(layers: &[Layer], others: &[Other<'_>]) -> Markup {
    let lacks = |other: &Other<'_>, lacked: &RunsInOne| {
        let other = head(others, other).to_lowercase();
        let (can, cannot) = match lacked.lacks_other {
            true => ("one".to_owned(), other),
            false => (other, "one".to_owned()),
        };
        html! {
            "Layer " (lacked.layer) " (" (Printable(name(layers, lacked.layer))) ") runs on " (Printable(&lacked.processor))
            " in " (can) " and not in " (cannot) ": " (Printable(&lacked.reason))
        }
    };
    let has_any = others.iter().any(|other| !other.lacking.is_empty());
    html! {
        @if has_any {
            ul.plain {
                @for other in others { @for lacked in &other.lacking { li { (lacks(other, lacked)) } } }
            }
        }
    }
}

/// The layers of a profile are in the order of their numbers, from 1.
fn name(layers: &[Layer], number: u32) -> &str {
    let place = (number as usize).checked_sub(1);
    place
        .and_then(|place| layers.get(place))
        .map_or("", |layer| &layer.name)
}

/// By how much each layer's computing differs: on each processor of both; with several others, in each of them.
fn charts(one: &Profile, others: &[Other<'_>]) -> Markup {
    let processors = || one.header.processors.iter().enumerate();
    if let [other] = others {
        let series = processors().map(|(part, processor)| Series {
            name: processor.name.clone(),
            part,
            numbers: other.computing(&one.layers, part),
        });
        let series: Vec<Series> = series.collect();
        return chart(
            "Computing: the other less the one",
            "layer",
            &one.layers,
            &series,
        );
    }
    let of_processor = |place: usize| {
        let series = others.iter().enumerate().map(|(part, other)| Series {
            name: format!(
                "run {}, {}",
                other.published.run,
                Printable(&other.published.device)
            ),
            part: part % COLOURS,
            numbers: other.computing(&one.layers, place),
        });
        series.collect::<Vec<Series>>()
    };
    html! {
        div.charts {
            @for (place, processor) in processors() {
                (chart(&format!("Computing on {}: each less the one", Printable(&processor.name)), "layer", &one.layers, &of_processor(place)))
            }
        }
    }
}

fn table(layers: &[Layer], others: &[Other<'_>], rows: &[Row<'_>]) -> Markup {
    let is_pair = others.len() == 1;
    html! {
        thead { tr {
            th scope="col" { "Processor" } th.number scope="col" { "Layer" } th scope="col" { "Name" } th scope="col" { "What" }
            th.number scope="col" { "One" }
            @if is_pair { th.number scope="col" { "Other" } th.number scope="col" { "Difference" } th.number scope="col" { "p" } }
            @else { @for other in others { th.number scope="col" { (head(others, other)) } } }
        } }
        tbody {
            @for row in rows {
                tr {
                    td data-head="Processor" { (Printable(&row.number.processor)) }
                    td.number data-head="Layer" { (row.number.layer) }
                    td data-head="Name" { (Printable(name(layers, row.number.layer))) }
                    td data-head="What" { (row.number.quantity.name().replace('_', " ")) }
                    td.number data-head="One" { (estimate(&row.number.one)) }
                    @if is_pair { (pair(row.number)) }
                    @else {
                        @for (other, difference) in others.iter().zip(&row.differences) {
                            td.number data-head=(head(others, other)) { @if let Some(difference) = difference { (less_the_one(difference)) } }
                        }
                    }
                }
            }
        }
    }
}

fn pair(difference: &Difference) -> Markup {
    html! {
        td.number data-head="Other" { (estimate(&difference.other)) }
        td.number data-head="Difference" { span class=[way(difference)] { (estimate(&difference.difference)) } }
        td.number data-head="p" { @if let Some(p) = difference.p_value { (p_value(p)) } }
    }
}

/// One of several others: by how much it differs, and how sure that is.
fn less_the_one(difference: &Difference) -> Markup {
    html! {
        span class=[way(difference)] { (estimate(&difference.difference)) }
        @if let Some(p) = difference.p_value { br; span.note { "p " (p_value(p)) } }
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

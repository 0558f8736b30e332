//! Charts: numbers with their intervals, one for each layer, and the words for them. A script draws them, by a library that the
//! program brings along; it calculates nothing.

use layerlab_lab::text_table::estimate;
use layerlab_profiles::Layer;
use layerlab_profiles::SignedNanos;
use layerlab_profiles::summary::Estimate;
use maud::{Markup, html};
use serde::Serialize;

/// The scripts and the style of a page with charts.
pub(super) const SCRIPTS: [&str; 2] = ["/assets/uPlot.iife.min.js", "/assets/charts.js"];
pub(super) const STYLE: &str = "/assets/uPlot.min.css";

/// Times from here on are shown in milliseconds.
const MILLISECONDS_FROM_NS: i64 = 10_000_000;

/// Numbers of the layers under one name.
pub(super) struct Series {
    /// What they are of, such as a processor.
    pub(super) name: String,
    /// Its colour, that of a processor.
    pub(super) part: usize,
    /// The number of each layer that has one.
    pub(super) numbers: Vec<Option<Estimate>>,
}

/// What the script draws.
#[derive(Serialize)]
struct Drawn<'a> {
    across: &'a str,
    unit: &'a str,
    at: Vec<u32>,
    names: Vec<String>,
    series: Vec<DrawnSeries<'a>>,
}

#[derive(Serialize)]
struct DrawnSeries<'a> {
    name: &'a str,
    part: usize,
    values: Vec<Option<f64>>,
    low: Vec<Option<f64>>,
    high: Vec<Option<f64>>,
    words: Vec<String>,
}

/// A chart of numbers of layers; nothing if there are none.
pub(super) fn chart(title: &str, across: &str, layers: &[Layer], all: &[Series]) -> Markup {
    let has_numbers = |series: &&Series| series.numbers.iter().any(Option::is_some);
    let all: Vec<&Series> = all.iter().filter(has_numbers).collect();
    if all.is_empty() {
        return Markup::default();
    }
    let numbers = all
        .iter()
        .flat_map(|series| series.numbers.iter().flatten());
    let largest = numbers.map(|number| number.value.as_nanos().abs()).max();
    let (unit, nanos) = match largest.unwrap_or(0) >= MILLISECONDS_FROM_NS {
        true => ("ms", 1e6),
        false => ("µs", 1e3),
    };
    let drawn = Drawn {
        across,
        unit,
        at: layers.iter().map(|layer| layer.number).collect(),
        names: layers
            .iter()
            .map(|layer| format!("{} {}", layer.number, layer.name))
            .collect(),
        series: all.iter().map(|series| drawn(series, nanos)).collect(),
    };
    let json = serde_json::to_string(&drawn).unwrap_or_default();
    html! {
        figure data-chart=(json) {
            figcaption { (title) }
            div.chart role="img" tabindex="0" aria-label={ (title) ": the table below says the same" } {}
            @for series in &all { span hidden class={ "part-" (series.part) } {} }
        }
    }
}

fn drawn(series: &Series, nanos: f64) -> DrawnSeries<'_> {
    let scaled = |time: SignedNanos| time.as_nanos() as f64 / nanos;
    let of = |part: fn(&Estimate) -> Option<SignedNanos>| {
        let numbers = series.numbers.iter();
        numbers
            .map(|number| number.as_ref().and_then(part).map(scaled))
            .collect()
    };
    let words = series.numbers.iter();
    DrawnSeries {
        name: &series.name,
        part: series.part,
        values: of(|number| Some(number.value)),
        low: of(|number| number.ci95.map(|(low, _)| low)),
        high: of(|number| number.ci95.map(|(_, high)| high)),
        words: words
            .map(|number| number.as_ref().map_or_else(String::new, estimate))
            .collect(),
    }
}

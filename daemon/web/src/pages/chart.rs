//! Charts: numbers along something, such as layers or time, with their intervals and the words for them. A script draws them, by a
//! library that the program brings along; it calculates nothing.

use layerlab_lab::text_table::estimate;
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Layer, SignedNanos};
use maud::{Markup, html};
use serde::Serialize;

/// The scripts and the style of a page with charts.
pub(super) const SCRIPTS: [&str; 2] = ["/assets/uPlot.iife.min.js", "/assets/charts.js"];
pub(super) const STYLE: &str = "/assets/uPlot.min.css";

/// What is said of a chart of which a table says the same.
pub(super) const SEE_TABLE: &str = "the table below says the same";

/// So many colours there are: those of the classes `part-0` and so on.
pub(super) const COLOURS: usize = 5;

/// What a chart goes along, from left to right.
pub(super) struct Across {
    /// What it is, with its unit.
    pub(super) name: String,
    /// Whether its numbers are whole, as those of layers are.
    pub(super) is_whole: bool,
    /// Where it begins and ends, if not with the first and the last place.
    pub(super) ends: Option<(f64, f64)>,
    /// The places where something may be drawn, ascending.
    pub(super) places: Vec<Place>,
}

/// A place along a chart.
pub(super) struct Place {
    /// Where it is.
    pub(super) at: f64,
    /// What it is called.
    pub(super) name: String,
    /// The page that it leads to.
    pub(super) link: Option<String>,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shape {
    /// Points, each joined to its neighbours.
    Line,
    /// A line alone, over places where it has no point as well.
    Level,
    /// Points alone.
    Points,
    /// Bars that stand on zero.
    Bars,
    /// Points, each of which holds until the next.
    Steps,
}

/// A number in the unit of its chart.
pub(super) struct Point {
    /// The number.
    pub(super) value: f64,
    /// The ends of its interval.
    pub(super) interval: Option<(f64, f64)>,
    /// What is said of it.
    pub(super) words: String,
}

/// Numbers under one name.
pub(super) struct Curve {
    /// What they are of, such as a processor.
    pub(super) name: String,
    /// Its colour, such as that of a processor.
    pub(super) part: usize,
    /// How it is drawn.
    pub(super) shape: Shape,
    /// The number at each place that has one.
    pub(super) points: Vec<Option<Point>>,
}

/// Times of the layers under one name.
pub(super) struct Series {
    /// What they are of, such as a processor.
    pub(super) name: String,
    /// Its colour, that of a processor.
    pub(super) part: usize,
    /// The number of each layer that has one.
    pub(super) numbers: Vec<Option<Estimate>>,
}

/// The unit in which times are drawn.
#[derive(Clone, Copy)]
pub(super) struct TimeUnit {
    /// Its name.
    pub(super) name: &'static str,
    nanos: f64,
}

impl TimeUnit {
    /// The units, each with the least time in ns from which on it is used.
    const FROM: [(i64, TimeUnit); 4] = [
        (600_000_000_000, TimeUnit::of_nanos("min", 60e9)),
        (10_000_000_000, TimeUnit::of_nanos("s", 1e9)),
        (10_000_000, TimeUnit::of_nanos("ms", 1e6)),
        (0, TimeUnit::of_nanos("µs", 1e3)),
    ];

    const fn of_nanos(name: &'static str, nanos: f64) -> TimeUnit {
        TimeUnit { name, nanos }
    }

    /// That of times of which the longest can be read.
    pub(super) fn of(times: impl IntoIterator<Item = SignedNanos>) -> TimeUnit {
        let lengths = times
            .into_iter()
            .map(|time| time.as_nanos().saturating_abs());
        let longest = lengths.max().unwrap_or(0);
        let known = TimeUnit::FROM.into_iter();
        let mut long_enough = known.filter(|(from, _)| longest >= *from);
        long_enough
            .next()
            .map_or(TimeUnit::FROM[3].1, |(_, unit)| unit)
    }

    /// A time in this unit.
    pub(super) fn number(self, time: SignedNanos) -> f64 {
        time.as_nanos() as f64 / self.nanos
    }

    /// An estimate in this unit.
    pub(super) fn point(self, estimated: &Estimate) -> Point {
        let ends = |(low, high)| (self.number(low), self.number(high));
        Point {
            value: self.number(estimated.value),
            interval: estimated.ci95.map(ends),
            words: estimate(estimated),
        }
    }
}

/// What the script draws.
#[derive(Serialize)]
struct Drawn<'a> {
    across: &'a str,
    whole: bool,
    ends: Option<(f64, f64)>,
    unit: &'a str,
    at: Vec<f64>,
    names: Vec<&'a str>,
    links: Vec<Option<&'a str>>,
    series: Vec<DrawnSeries<'a>>,
}

#[derive(Serialize)]
struct DrawnSeries<'a> {
    name: &'a str,
    part: usize,
    shape: Shape,
    values: Vec<Option<f64>>,
    low: Vec<Option<f64>>,
    high: Vec<Option<f64>>,
    words: Vec<&'a str>,
}

/// A chart of numbers of layers; nothing if there are none.
pub(super) fn chart(title: &str, across: &str, layers: &[Layer], all: &[Series]) -> Markup {
    let numbers = all.iter().flat_map(|one| one.numbers.iter().flatten());
    let unit = TimeUnit::of(numbers.map(|number| number.value));
    let place = |layer: &Layer| Place {
        at: f64::from(layer.number),
        name: format!("{} {}", layer.number, layer.name),
        link: None,
    };
    let across = Across {
        name: across.to_owned(),
        is_whole: true,
        ends: None,
        places: layers.iter().map(place).collect(),
    };
    let point = |number: &Option<Estimate>| number.as_ref().map(|number| unit.point(number));
    let curve = |series: &Series| Curve {
        name: series.name.clone(),
        part: series.part,
        shape: Shape::Line,
        points: series.numbers.iter().map(point).collect(),
    };
    let curves: Vec<Curve> = all.iter().map(curve).collect();
    drawing(title, SEE_TABLE, &across, unit.name, &curves)
}

/// A chart of curves, with what is said to those who do not see it; nothing if there are none.
pub(super) fn drawing(
    title: &str,
    said: &str,
    across: &Across,
    unit: &str,
    curves: &[Curve],
) -> Markup {
    let has_points = |curve: &&Curve| curve.points.iter().any(Option::is_some);
    let curves: Vec<&Curve> = curves.iter().filter(has_points).collect();
    if curves.is_empty() {
        return Markup::default();
    }
    let places = || across.places.iter();
    let drawn = Drawn {
        across: &across.name,
        whole: across.is_whole,
        ends: across.ends,
        unit,
        at: places().map(|place| place.at).collect(),
        names: places().map(|place| place.name.as_str()).collect(),
        links: places().map(|place| place.link.as_deref()).collect(),
        series: curves.iter().map(|curve| drawn(curve)).collect(),
    };
    let json = serde_json::to_string(&drawn).unwrap_or_default();
    html! {
        figure data-chart=(json) {
            figcaption { (title) }
            div.chart role="img" tabindex="0" aria-label={ (title) ": " (said) } {}
            @for curve in &curves { span hidden class={ "part-" (curve.part % COLOURS) } {} }
        }
    }
}

fn drawn(curve: &Curve) -> DrawnSeries<'_> {
    let points = || curve.points.iter().map(Option::as_ref);
    let end = |of: fn((f64, f64)) -> f64| points().map(|point| point?.interval.map(of)).collect();
    DrawnSeries {
        name: &curve.name,
        part: curve.part % COLOURS,
        shape: curve.shape,
        values: points().map(|point| Some(point?.value)).collect(),
        low: end(|(low, _)| low),
        high: end(|(_, high)| high),
        words: points()
            .map(|point| point.map_or("", |point| &point.words))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_drawn_in_the_unit_in_which_the_longest_can_be_read() {
        for (nanos, name, number) in [
            (9_999_999, "µs", 9_999.999),
            (-10_000_000, "ms", -10.0),
            (10_000_000_000, "s", 10.0),
            (600_000_000_000, "min", 10.0),
        ] {
            let time = SignedNanos::from_nanos(nanos);
            let unit = TimeUnit::of([SignedNanos::ZERO, time]);
            assert_eq!((unit.name, unit.number(time)), (name, number));
        }
        assert_eq!(TimeUnit::of([]).name, "µs");
    }
}

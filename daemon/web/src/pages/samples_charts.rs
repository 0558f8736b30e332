//! The samples of a segment, drawn: how many took how long, and one after another by visit.

use layerlab_profiles::Nanos;
use layerlab_profiles::document::{Sample, SegmentRow};
use maud::{Markup, html};

use super::bins::Bins;
use super::chart::{self, Across, Curve, Place, Point, Shape, TimeUnit, drawing};
use super::visits::Visit;

/// So many samples are drawn one after another at most; of more, every second, third and so on.
const MOST_DRAWN: usize = 1000;

/// The colours of visits, which take turns, of the median, and of what does not count.
const VISITS: [usize; 2] = [0, 1];
const MEDIAN: usize = 2;
const REJECTED: usize = 4;

/// How many samples that count took how long.
pub(super) fn histogram(row: &SegmentRow, visits: &[Visit<'_>]) -> Markup {
    let counting = visits.iter().filter(|visit| visit.rejection.is_none());
    let samples = counting.flat_map(|visit| &visit.samples);
    let durations: Vec<Nanos> = samples.map(|sample| sample.duration).collect();
    let Some(bins) = Bins::of(&durations) else {
        return Markup::default();
    };
    let unit = TimeUnit::of([row.summary.max.signed()]);
    let number = |time: Nanos| unit.number(time.signed());
    let places = bins.each().map(|(middle, name, _)| Place {
        at: number(middle),
        name,
        link: None,
    });
    let (begin, end) = bins.ends();
    let across = Across {
        name: format!("time of an inference, {}", unit.name),
        is_whole: false,
        ends: Some((number(begin), number(end))),
        places: places.collect(),
    };
    let points = bins.each().map(|(_, _, count)| {
        Some(Point {
            value: count as f64,
            interval: None,
            words: count.to_string(),
        })
    });
    let curve = Curve {
        name: "samples".to_owned(),
        part: VISITS[0],
        shape: Shape::Bars,
        points: points.collect(),
    };
    html! {
        div {
            (drawing("How long inferences took", chart::SEE_TABLE, &across, "samples", &[curve]))
            details {
                summary { "As a table" }
                div.table { table {
                    thead { tr { th scope="col" { "Time" } th.number scope="col" { "Samples" } } }
                    tbody {
                        @for (_, name, count) in bins.each().filter(|(_, _, count)| *count > 0) {
                            tr { td data-head="Time" { (name) } td.number data-head="Samples" { (count) } }
                        }
                    }
                } }
            }
        }
    }
}

/// A sample among all of its segment.
struct Drawn<'a> {
    /// Its number, from 1.
    number: usize,
    /// That of its visit.
    visit_number: usize,
    visit: &'a Visit<'a>,
    sample: &'a Sample,
}

/// The samples in the order of time, by visit, with the median.
pub(super) fn one_after_another(row: &SegmentRow, visits: &[Visit<'_>]) -> Markup {
    let of_visits = (1..).zip(visits);
    let all = of_visits.flat_map(|(visit_number, visit)| {
        let samples = visit.samples.iter();
        samples.map(move |sample| (visit_number, visit, *sample))
    });
    let numbered = (1..).zip(all);
    let all: Vec<Drawn<'_>> = numbered
        .map(|(number, (visit_number, visit, sample))| Drawn {
            number,
            visit_number,
            visit,
            sample,
        })
        .collect();
    let every = all.len().div_ceil(MOST_DRAWN).max(1);
    let drawn: Vec<Drawn<'_>> = all.into_iter().step_by(every).collect();
    let unit = TimeUnit::of(drawn.iter().map(|one| one.sample.duration.signed()));
    let across = Across {
        name: match every {
            1 => "sample".to_owned(),
            every => format!("sample (1 of {every} is drawn)"),
        },
        is_whole: true,
        ends: None,
        places: drawn.iter().map(place).collect(),
    };
    let curve = |name: &str, part: usize, is_meant: &dyn Fn(&Drawn<'_>) -> bool| Curve {
        name: name.to_owned(),
        part,
        shape: Shape::Points,
        points: drawn
            .iter()
            .map(|one| is_meant(one).then(|| point(one, unit)))
            .collect(),
    };
    let counts = |one: &Drawn<'_>| one.visit.rejection.is_none();
    let curves = [
        curve("visits 1, 3, …", VISITS[0], &|one| {
            counts(one) && one.visit_number % 2 == 1
        }),
        curve("visits 2, 4, …", VISITS[1], &|one| {
            counts(one) && one.visit_number % 2 == 0
        }),
        curve("rejected", REJECTED, &|one| !counts(one)),
        median(row, unit, drawn.len()),
    ];
    let said = "the table of visits below sums it up";
    drawing("One after another", said, &across, unit.name, &curves)
}

fn place(drawn: &Drawn<'_>) -> Place {
    let Drawn {
        number,
        visit_number,
        visit,
        ..
    } = drawn;
    let (order, block) = (visit.order, visit.block);
    Place {
        at: *number as f64,
        name: format!("{number}, visit {visit_number} (order {order}, block {block})"),
        link: None,
    }
}

fn point(drawn: &Drawn<'_>, unit: TimeUnit) -> Point {
    let duration = drawn.sample.duration;
    Point {
        value: unit.number(duration.signed()),
        interval: None,
        words: duration.to_string(),
    }
}

/// The median with its interval, from the first of so many samples to the last.
fn median(row: &SegmentRow, unit: TimeUnit, samples: usize) -> Curve {
    let number = |time: Nanos| unit.number(time.signed());
    let ends = row.summary.median_ci95;
    let point = |place: usize| {
        let is_end = place == 0 || place + 1 == samples;
        is_end.then(|| Point {
            value: number(row.summary.median),
            interval: ends.map(|(low, high)| (number(low), number(high))),
            words: row.summary.median.to_string(),
        })
    };
    Curve {
        name: "median".to_owned(),
        part: MEDIAN,
        shape: Shape::Level,
        points: (0..samples).map(point).collect(),
    }
}

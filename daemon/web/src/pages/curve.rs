//! The curve of all plans in the explorer: what accuracy can be had within each time, and where the placement at hand is.

use std::sync::Arc;

use layerlab_farm::adb::Printable;
use layerlab_planners::problem::PredictedAccuracy;
use layerlab_profiles::{Placement, SignedNanos};
use maud::{Markup, html};

use super::chart::{self, Across, Curve, Place, Point, Shape, TimeUnit, drawing};
use super::layout::simulated_mark;
use crate::curve::CurvePoint;
use crate::explorer::{Explored, Explorer, NotKnown};

/// The colours of the curve and of the placement at hand.
const PLANS: usize = 2;
const HERE: usize = 1;

/// The curve, with `placement` if it is known what that takes; of a profile without accuracy, the times of some placements.
pub(super) fn curve(
    explorer: &Arc<Explorer>,
    placement: &Placement,
    explored: Option<&Explored>,
) -> Markup {
    let mark = simulated_mark(explorer.header.simulated, explorer.is_emulated());
    html! {
        section #curve {
            h2 { "All plans" (mark) }
            @match explorer.curve() {
                Ok(points) => {
                    (drawn(explorer, points, placement, explored))
                    details {
                        summary { "The " (points.len()) " plans as a table" }
                        (table(explorer, points, placement))
                    }
                    p.note { "By estimates: whoever must keep a limit with confidence asks for a plan above." }
                }
                Err(NotKnown::BeingLearnt) => p.note { "They are found when the accuracy of placements has been learnt." },
                Err(NotKnown::Because(why)) => {
                    p.note { "There is no curve of time and accuracy: " (Printable(&why)) ". Times alone:" }
                    (times(explorer, placement))
                }
            }
        }
    }
}

fn link(explorer: &Explorer, placement: &Placement) -> String {
    format!("/profiles/{}/explore?placement={placement}", explorer.run())
}

/// The plans, and the placement at hand where its accuracy is known.
fn drawn(
    explorer: &Explorer,
    points: &[CurvePoint],
    placement: &Placement,
    explored: Option<&Explored>,
) -> Markup {
    let here = explored.and_then(|explored| {
        let accuracy = explored.accuracy.as_ref().ok()?;
        Some((explored.time.total(), accuracy))
    });
    let times = points.iter().map(|point| point.time);
    let unit = TimeUnit::of(times.chain(here.map(|(time, _)| time)));
    let place = |time: SignedNanos, placement: &Placement| Place {
        at: unit.number(time),
        name: format!("{time}, {}", off_cpu(placement)),
        link: Some(link(explorer, placement)),
    };
    let mut places: Vec<Place> = points
        .iter()
        .map(|one| place(one.time, &one.placement))
        .collect();
    let mut plans: Vec<Option<Point>> = points
        .iter()
        .map(|one| Some(point(&one.accuracy)))
        .collect();
    let mut marked: Vec<Option<Point>> = points.iter().map(|_| None).collect();
    if let Some((time, accuracy)) = here {
        let at = match points.iter().position(|one| one.placement == *placement) {
            Some(at) => at,
            None => {
                let at = points.partition_point(|one| one.time <= time);
                places.insert(at, place(time, placement));
                plans.insert(at, None);
                marked.insert(at, None);
                at
            }
        };
        marked[at] = Some(point(accuracy));
    }
    let across = Across {
        name: format!("time of an inference, {}", unit.name),
        is_whole: false,
        ends: None,
        places,
    };
    let curves = [
        Curve {
            name: "most accurate within".to_owned(),
            part: PLANS,
            shape: Shape::Steps,
            points: plans,
        },
        Curve {
            name: "this placement".to_owned(),
            part: HERE,
            shape: Shape::Points,
            points: marked,
        },
    ];
    drawing(
        "Accuracy within a time",
        chart::SEE_TABLE,
        &across,
        "accuracy",
        &curves,
    )
}

fn point(accuracy: &PredictedAccuracy) -> Point {
    Point {
        value: accuracy.value,
        interval: accuracy
            .interval
            .map(|(low, high)| (low.max(0.0), high.min(1.0))),
        words: format!("{:.4}, {}", accuracy.value, known_how(accuracy)),
    }
}

fn known_how(accuracy: &PredictedAccuracy) -> &'static str {
    match accuracy.is_measured {
        true => "measured",
        false => "predicted",
    }
}

fn off_cpu(placement: &Placement) -> String {
    let off = placement.processors().iter().filter(|one| **one != 0);
    format!(
        "{} of {} layers off the CPU",
        off.count(),
        placement.layers()
    )
}

fn table(explorer: &Explorer, points: &[CurvePoint], placement: &Placement) -> Markup {
    html! {
        div.table { table {
            thead { tr { th.number scope="col" { "Time" } th.number scope="col" { "Accuracy" } th scope="col" { "Known how" } th scope="col" { "Placement" } } }
            tbody {
                @for point in points {
                    tr {
                        td.number data-head="Time" { (point.time) }
                        td.number data-head="Accuracy" { (format!("{:.4}", point.accuracy.value)) }
                        td data-head="Known how" { (known_how(&point.accuracy)) }
                        td data-head="Placement" { (to_placement(explorer, &point.placement, placement)) }
                    }
                }
            }
        } }
    }
}

fn to_placement(explorer: &Explorer, to: &Placement, here: &Placement) -> Markup {
    html! { a href=(link(explorer, to)) aria-current=[(to == here).then_some("true")] { (off_cpu(to)) } }
}

/// What all layers on one processor take, and the fastest placement.
fn times(explorer: &Explorer, here: &Placement) -> Markup {
    let layers = explorer.layers.len();
    let names = explorer.processors.iter().enumerate();
    let uniform = names.map(|(digit, name)| {
        let all = Placement::all_on(u8::try_from(digit).unwrap_or(u8::MAX), layers);
        (format!("All on {}", Printable(name)), all)
    });
    let fastest = ("The fastest".to_owned(), explorer.fastest.clone());
    let timed = uniform.chain([fastest]).filter_map(|(name, placement)| {
        let time = explorer.time(&placement)?;
        Some((name, placement, time))
    });
    html! {
        div.table { table {
            thead { tr { th scope="col" { "Which" } th.number scope="col" { "Time" } th scope="col" { "Placement" } } }
            tbody {
                @for (name, placement, time) in timed {
                    tr {
                        td data-head="Which" { (name) }
                        td.number data-head="Time" { (time) }
                        td data-head="Placement" { (to_placement(explorer, &placement, here)) }
                    }
                }
            }
        } }
    }
}

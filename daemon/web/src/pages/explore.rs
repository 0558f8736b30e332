//! The placement explorer: layers are moved between processors, and what that takes is shown at once. A script asks for this
//! page of the placement that was clicked together, and puts its result in place.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use layerlab_farm::adb::Printable;
use layerlab_lab::record::RunNumber;
use layerlab_planners::problem::PredictedAccuracy;
use layerlab_planners::{Goal, Outcome};
use layerlab_profiles::{Nanos, Placement};
use maud::{Markup, html};
use serde::Deserialize;

use super::chart;
use super::curve::curve;
use super::layout::{Page, ProblemPage, simulated_mark};
use super::told::subject;
use crate::explorer::{Explored, Explorer, NotKnown};
use crate::extract::{InPath, InQuery};
use crate::lab::WebState;
use crate::problem::Problem;

/// Which placement is shown: the one that is named, or that of a plan.
#[derive(Deserialize)]
pub(super) struct Chosen {
    #[serde(default)]
    placement: String,
    #[serde(default)]
    goal: String,
    #[serde(default)]
    limit: String,
}

/// The explorer of a profile.
pub(super) async fn show(
    State(state): State<WebState>,
    InPath(run): InPath<RunNumber>,
    InQuery(chosen): InQuery<Chosen>,
) -> Result<Page, ProblemPage> {
    let explorer = state.explorers.of_run(&state.lab.reader, run).await?;
    let (placement, planned) = match chosen.goal.is_empty() {
        true => (named(&chosen.placement, &explorer)?, None),
        false => planned(&chosen, &explorer).await?,
    };
    let explored = explorer.explore(&placement);
    let name = &explorer.header.model.name;
    let content = html! {
        h1 {
            "Placements of " (subject(&explorer.header))
        }
        p { a href={ "/profiles/" (run) } { "The profile" } }
        (plan_form(&chosen, run))
        @if let Some(planned) = &planned { p.planned role="status" { (planned) } }
        div.explorer {
            (result(&explorer, &placement, explored.as_ref()))
            (layers(&explorer, &placement))
        }
        (curve(&explorer, &placement, explored.as_ref().ok()))
    };
    let page = Page::new(format!("Placements of {name}"), "/profiles", content);
    let [library, charts] = chart::SCRIPTS;
    Ok(page
        .with_style(chart::STYLE)
        .with_scripts(&[library, charts, "/assets/explore.js"]))
}

/// What is said of numbers that nobody measured.
fn mark(explorer: &Explorer) -> Markup {
    simulated_mark(explorer.header.simulated, explorer.is_emulated())
}

/// The placement of these digits; all on the CPU if there are none.
fn named(digits: &str, explorer: &Explorer) -> Result<Placement, Problem> {
    if digits.is_empty() {
        return Ok(Placement::all_on(0, explorer.layers.len()));
    }
    digits
        .parse()
        .map_err(|error| Problem::unusable(format!("the placement cannot be read: {error}")))
}

/// The placement of a plan, and what is said of it.
async fn planned(
    chosen: &Chosen,
    explorer: &Arc<Explorer>,
) -> Result<(Placement, Option<String>), Problem> {
    let goal = goal(chosen)?;
    let (outcome, _) = explorer.plan(goal).await?;
    Ok(match outcome {
        Outcome::Planned(plan) => {
            let sure = match plan.keeps_limit() {
                true => "keeps it with a confidence of 95 %",
                false => "keeps it by estimates only: none keeps it with a confidence of 95 %",
            };
            let said = format!("Asked for {goal}. The plan below {sure}.");
            (plan.combination().clone(), Some(said))
        }
        Outcome::Infeasible(why) => {
            let said = format!("Asked for {goal}. {why}");
            (named(&chosen.placement, explorer)?, Some(said))
        }
    })
}

fn goal(chosen: &Chosen) -> Result<Goal, Problem> {
    let limit = chosen.limit.trim();
    let wrong = |what: &str| {
        let detail = format!("`{limit}` is no {what}");
        Problem::usage(StatusCode::BAD_REQUEST, detail)
    };
    match chosen.goal.as_str() {
        "max-accuracy" => {
            let within = humantime::parse_duration(limit);
            let within = within.map_err(|_| wrong("time; write one such as 1500us"))?;
            Ok(Goal::MaxAccuracy {
                within: Nanos::from(within),
            })
        }
        "min-time" => {
            let at_least = limit.parse();
            let at_least = at_least.map_err(|_| wrong("accuracy; write a fraction such as 0.6"))?;
            Ok(Goal::MinTime { at_least })
        }
        other => {
            let detail = format!("`{other}` is no goal; there are max-accuracy and min-time");
            Err(Problem::usage(StatusCode::BAD_REQUEST, detail))
        }
    }
}

fn plan_form(chosen: &Chosen, run: RunNumber) -> Markup {
    html! {
        form.filter #plan action={ "/profiles/" (run) "/explore" } method="get" {
            label { "Plan "
                select name="goal" {
                    @for (goal, words) in [("max-accuracy", "the highest accuracy within a time"), ("min-time", "the shortest time at an accuracy")] {
                        option value=(goal) selected[chosen.goal == goal] { (words) }
                    }
                }
            }
            label { "Limit " input name="limit" value=(chosen.limit) placeholder="1500us or 0.6" required; }
            button { "Plan" }
            span.note { "The first plan of a profile learns its accuracy first, which may take a minute." }
        }
    }
}

fn result(
    explorer: &Explorer,
    placement: &Placement,
    explored: Result<&Explored, &Problem>,
) -> Markup {
    html! {
        section.result #result aria-live="polite" data-learning[matches!(explored, Ok(Explored { accuracy: Err(NotKnown::BeingLearnt), .. }))] {
            h2 { "This placement" (mark(explorer)) }
            @match explored {
                Err(problem) => p.bad role="alert" { (Printable(problem.told().1)) },
                Ok(explored) => {
                    p.total { (explored.time.total()) }
                    @if let Some((low, high)) = explored.interval { p.note { "95 % interval: " (low) " to " (high) } }
                    @else { p.note { "The profile's times have no intervals." } }
                    (where_time_goes(explorer, placement, explored))
                    h3 { "Accuracy" }
                    (accuracy(&explored.accuracy))
                    h3 { "To measure it" }
                    pre { code { "layerlab evaluate --model MODEL --device DEVICE --set SET \\\n    --combination " (placement) } }
                }
            }
        }
    }
}

fn where_time_goes(explorer: &Explorer, placement: &Placement, explored: &Explored) -> Markup {
    let layers_on = |digit: usize| {
        let digits = placement.processors().iter();
        digits.filter(|one| usize::from(**one) == digit).count()
    };
    let time = explored.time;
    // Estimates may be negative, and no bar is.
    let length = |nanos: i64| nanos.max(0);
    let mut parts: Vec<(usize, i64)> = (0..explorer.processors.len())
        .map(|digit| (digit, length(time.on(digit).as_nanos())))
        .collect();
    parts.push((explorer.processors.len(), length(time.transfer.as_nanos())));
    let all = parts.iter().map(|(_, nanos)| nanos).sum::<i64>().max(1);
    let mut x = 0.0;
    let bars = parts.into_iter().map(|(digit, nanos)| {
        let width = nanos as f64 / all as f64 * 100.0;
        x += width;
        (digit, x - width, width)
    });
    html! {
        svg.bar viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
            @for (digit, x, width) in bars {
                rect class={ "part-" (digit) } x=(format!("{x:.3}")) y="0" width=(format!("{width:.3}")) height="6" {}
            }
        }
        table {
            tbody {
                @for (digit, name) in explorer.processors.iter().enumerate() {
                    tr {
                        th scope="row" { span class={ "key part-" (digit) } {} (Printable(name)) }
                        td.number { (layers_on(digit)) " layers" }
                        td.number { (time.on(digit)) }
                    }
                }
                tr {
                    th scope="row" { span class={ "key part-" (explorer.processors.len()) } {} "moving" }
                    td {}
                    td.number { (time.transfer) }
                }
            }
        }
    }
}

fn accuracy(accuracy: &Result<PredictedAccuracy, NotKnown>) -> Markup {
    match accuracy {
        Ok(known) => html! {
            p {
                (format!("{:.4}", known.value)) ", "
                (if known.is_measured { "measured" } else { "predicted" })
                @if let Some((low, high)) = known.interval {
                    span.note { (format!(" (95 % interval: {:.4} to {:.4})", low.max(0.0), high.min(1.0))) }
                }
            }
        },
        Err(NotKnown::BeingLearnt) => {
            html! { p.note { "It is being learnt from what was measured." } }
        }
        Err(NotKnown::Because(why)) => html! { p.note { (Printable(why)) } },
    }
}

fn layers(explorer: &Explorer, placement: &Placement) -> Markup {
    let here = |index: usize| {
        placement
            .processors()
            .get(index)
            .map(|one| usize::from(*one))
    };
    let run = explorer.run();
    html! {
        form.layers #layers action={ "/profiles/" (run) "/explore" } data-run=(run) {
            p {
                "All layers on "
                @for (digit, name) in explorer.processors.iter().enumerate() {
                    a.all href={ "/profiles/" (run) "/explore?placement=" (digit.to_string().repeat(explorer.layers.len())) } { (Printable(name)) } " "
                }
            }
            @for (index, layer) in explorer.layers.iter().enumerate() {
                fieldset {
                    legend { (layer.number) " " (Printable(&layer.name)) }
                    @for (digit, name) in explorer.processors.iter().enumerate() {
                        @let lacked = explorer.times.why_not(digit, index);
                        label class={ "part-" (digit) } title=[lacked.map(|lacked| &lacked.reason)] {
                            input type="radio" name={ "layer" (layer.number) } value=(digit) checked[here(index) == Some(digit)] disabled[lacked.is_some()];
                            " " (Printable(name))
                        }
                    }
                }
            }
        }
    }
}

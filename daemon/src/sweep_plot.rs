//! The picture of a sweep: how accurate a model can be within a time, and how fast at an accuracy, as in mlmp Figures 7
//! and 11: steps for each algorithm, what running its plans gave, and all layers on one processor beside. SVG.

mod chart;
pub(crate) mod regions;
pub(crate) mod reliability;
pub(crate) mod video;

use layerlab_campaign::plot::axis::Unit;
use layerlab_campaign::plot::canvas::{self, INK, LABEL, LINE, QUIET, TITLE, lines};
use layerlab_campaign::plot::legend::{self, Entry};
use layerlab_planners::export::VerifiedPlacements;
use layerlab_planners::sweep::KeepingAlgorithm;
use layerlab_planners::{Algorithm, Goal, Outcome, Plan};
use plotters::prelude::{Color, HSLColor, RGBColor};
use plotters::style::text_anchor::HPos;

use chart::{Chart, ChartLine, Holds, Point};

/// The colours of the first lines; further ones are [mixed](colour).
const COLOURS: [RGBColor; 4] = [
    RGBColor(86, 130, 178),
    RGBColor(196, 78, 82),
    RGBColor(90, 150, 90),
    RGBColor(120, 90, 60),
];

/// All layers on the CPU, and on each accelerator.
const PROCESSORS: [RGBColor; 4] = [
    RGBColor(130, 90, 160),
    RGBColor(222, 143, 50),
    RGBColor(60, 160, 170),
    RGBColor(200, 110, 160),
];

/// The picture's width, and pixels from its edges.
const WIDTH: i32 = 720;
const EDGE: i32 = 12;

const NOTE: &str = "A step goes on from the limit that was asked for to the next one. Rings with whiskers are what \
running the plans gave, with 95 % intervals. Diamonds are all layers on one processor, dashes how far that is enough.";

/// All layers on one processor.
pub(crate) struct OnOneProcessor {
    /// The processor's name.
    pub(crate) name: String,
    /// T(L), in ns.
    pub(crate) time_ns: f64,
    /// A(L), a fraction.
    pub(crate) accuracy: f64,
}

/// The outcomes of a sweep, drawn, with a line for each of `algorithms`; `title` says of what.
///
/// # Errors
/// When the drawing library fails, which it does not on a drawing in memory.
pub(crate) fn svg(
    title: &str,
    algorithms: &[KeepingAlgorithm],
    outcomes: &[Outcome],
    verified: &VerifiedPlacements,
    on_one: &[OnOneProcessor],
) -> Result<String, String> {
    let searching: Vec<KeepingAlgorithm> = (algorithms.iter().copied())
        .filter(|(algorithm, _)| what(*algorithm).is_some())
        .collect();
    let charts = charts(&searching, outcomes, verified, on_one);
    let entries = entries(&searching, on_one);
    picture(title, &entries, &charts, NOTE)
}

/// A title, what the colours stand for, charts one below the other, and a note.
fn picture(title: &str, entries: &[Entry], charts: &[Chart], note: &str) -> Result<String, String> {
    let room = WIDTH - 2 * EDGE;
    let head = 12 + TITLE + 12;
    let notes = lines(note, room);
    let top = head + legend::height(entries, room) + 8;
    let height = top + charts.len() as i32 * chart::HEIGHT + notes.len() as i32 * LINE + 8;
    canvas::svg((WIDTH, height), |canvas| {
        canvas.write(
            title,
            (EDGE, 12),
            canvas::fitting(title, room),
            INK,
            HPos::Left,
        )?;
        legend::draw(canvas, entries, (EDGE, head), room)?;
        for (place, chart) in charts.iter().enumerate() {
            chart.draw(canvas, top + place as i32 * chart::HEIGHT, WIDTH)?;
        }
        let top = top + charts.len() as i32 * chart::HEIGHT;
        for (place, line) in notes.iter().enumerate() {
            let at = (EDGE, top + place as i32 * LINE);
            canvas.write(line, at, LABEL, QUIET, HPos::Left)?;
        }
        Ok(())
    })
}

/// What an algorithm does, in plain words; nothing of one whose only placement is drawn by itself.
fn what(algorithm: Algorithm) -> Option<&'static str> {
    match algorithm {
        Algorithm::AllCpu | Algorithm::AllNpu => None,
        Algorithm::Heuristic => Some("the papers' rule of thumb"),
        Algorithm::MlmpPaper => Some("the papers' search"),
        Algorithm::Mlmp => Some("layerlab's search"),
        Algorithm::Fastest => Some("the fastest, whatever its accuracy"),
        Algorithm::Exhaustive => Some("every placement tried"),
    }
}

fn entries(algorithms: &[KeepingAlgorithm], on_one: &[OnOneProcessor]) -> Vec<Entry> {
    let of_algorithm = |(place, (algorithm, keep)): (usize, &KeepingAlgorithm)| {
        let what = what(*algorithm).unwrap_or_default();
        let keeping = keep.map_or_else(String::new, |keep| format!(" keeping {keep}"));
        (format!("{algorithm}: {what}{keeping}"), colour(place))
    };
    let of_processor = |(place, one): (usize, &OnOneProcessor)| {
        let time = layerlab_profiles::SignedNanos::from_nanos(one.time_ns as i64);
        let text = format!(
            "all layers on {}: {time}, accuracy {:.3}",
            one.name, one.accuracy
        );
        (text, PROCESSORS[place % PROCESSORS.len()])
    };
    let algorithms = algorithms.iter().enumerate().map(of_algorithm);
    algorithms
        .chain(on_one.iter().enumerate().map(of_processor))
        .collect()
}

fn charts(
    algorithms: &[KeepingAlgorithm],
    outcomes: &[Outcome],
    verified: &VerifiedPlacements,
    on_one: &[OnOneProcessor],
) -> [Chart; 2] {
    let lines = |limit: fn(Goal) -> Option<f64>, reached: fn(&Plan) -> f64, ran: &Ran<'_>| {
        let line = |(place, wanted): (usize, &KeepingAlgorithm)| {
            let own = outcomes.iter();
            let own = own.filter(|one| (one.algorithm(), one.keep()) == *wanted);
            let point = |outcome: &Outcome| {
                let plan = outcome.plan();
                Some(Point {
                    limit: limit(goal(outcome))?,
                    reached: plan.map(reached),
                    ran: plan.and_then(ran),
                })
            };
            ChartLine {
                colour: colour(place),
                points: own.filter_map(point).collect(),
            }
        };
        algorithms.iter().enumerate().map(line).collect()
    };
    let on_one = |place: fn(&OnOneProcessor) -> (f64, f64)| {
        let places = on_one.iter().map(place);
        places.zip(PROCESSORS.into_iter().cycle()).collect()
    };
    let within = |goal| match goal {
        Goal::MaxAccuracy { within } => Some(within.as_nanos() as f64),
        Goal::MinTime { .. } => None,
    };
    let at_least = |goal| match goal {
        Goal::MinTime { at_least } => Some(at_least),
        Goal::MaxAccuracy { .. } => None,
    };
    let accuracy = |plan: &Plan| {
        let (accuracy, (low, high)) = verified.get(plan.combination())?.accuracy?;
        Some([low, accuracy, high])
    };
    let time = |plan: &Plan| {
        let found = verified.get(plan.combination())?;
        let (low, high) = found.time_ci95_ns.unwrap_or((found.time_ns, found.time_ns));
        Some([low, found.time_ns, high].map(|nanos| nanos as f64))
    };
    [
        Chart::new(
            "How accurate can it be within a time?",
            ("time that one inference may take", Unit::Time),
            ("accuracy", Unit::Fraction),
            lines(within, |plan| plan.accuracy().value, &accuracy),
            on_one(|one| (one.time_ns, one.accuracy)),
            Holds::ForMore,
        ),
        Chart::new(
            "How fast can it be at an accuracy?",
            ("accuracy that is required", Unit::Fraction),
            ("time", Unit::Time),
            lines(
                at_least,
                |plan| plan.time().total().as_nanos() as f64,
                &time,
            ),
            on_one(|one| (one.accuracy, one.time_ns)),
            Holds::ForLess,
        ),
    ]
}

/// The lower end, the middle and the upper end of what running a plan gave.
type Ran<'a> = dyn Fn(&Plan) -> Option<[f64; 3]> + 'a;

fn goal(outcome: &Outcome) -> Goal {
    match outcome {
        Outcome::Planned(plan) => plan.goal(),
        Outcome::Infeasible(infeasible) => infeasible.goal(),
    }
}

/// The colour of the line at `place`, unlike those of all others.
fn colour(place: usize) -> RGBColor {
    COLOURS.get(place).copied().unwrap_or_else(|| {
        // Steps of the golden ratio never come near a hue again.
        let hue = (place as f64 * 0.618_034).fract();
        let (red, green, blue) = HSLColor(hue, 0.45, 0.4).to_backend_color().rgb;
        RGBColor(red, green, blue)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn on_one() -> Vec<OnOneProcessor> {
        let one = |name: &str, time_ns, accuracy| OnOneProcessor {
            name: name.to_owned(),
            time_ns,
            accuracy,
        };
        vec![one("cpu", 3.76e6, 0.88), one("npu", 1.49e6, 0.71)]
    }

    #[test]
    fn every_algorithm_is_in_the_legend_in_plain_words() {
        let mut algorithms: Vec<KeepingAlgorithm> =
            Algorithm::ALL.iter().map(|&one| (one, None)).collect();
        algorithms.push((Algorithm::MlmpPaper, Some(5)));
        let drawn = svg(
            "a sweep",
            &algorithms,
            &[],
            &VerifiedPlacements::new(),
            &on_one(),
        );
        let drawn = drawn.expect("a drawing");
        for expected in [
            "heuristic: the papers' rule of thumb",
            "mlmp-paper: the papers' search",
            "mlmp-paper: the papers' search keeping 5",
            "mlmp: layerlab's search",
            "fastest: the fastest, whatever its accuracy",
            "exhaustive: every placement tried",
            "all layers on cpu: 3.760 ms, accuracy 0.880",
            "all layers on npu: 1.490 ms, accuracy 0.710",
        ] {
            let expected = expected.replace('\'', "&apos;");
            let shown = drawn
                .lines()
                .filter(|line| line.trim().replace('\'', "&apos;") == expected);
            assert_eq!(shown.count(), 1, "{expected}");
        }
    }

    #[test]
    fn all_layers_on_one_processor_are_in_both_charts() {
        let drawn = svg("a sweep", &[], &[], &VerifiedPlacements::new(), &on_one());
        let drawn = drawn.expect("a drawing");
        assert_eq!(drawn.matches("<polygon").count(), 4);
    }

    #[test]
    fn no_two_lines_have_one_colour() {
        let colours: BTreeSet<_> = (0..40).map(colour).map(|c| (c.0, c.1, c.2)).collect();
        assert_eq!(colours.len(), 40);
    }
}

//! The picture of a sweep: accuracy over time limits and time over accuracy limits, a line for each algorithm,
//! and what running the plans gave, as in mlmp Figures 7 and 11. SVG.

use layerlab_planners::export::VerifiedPlacements;
use layerlab_planners::sweep::KeepingAlgorithm;
use layerlab_planners::{Goal, Outcome, Plan};
use layerlab_profiles::Placement;
use plotters::prelude::*;

/// The colours of the first lines; further ones are [mixed](colour).
const COLOURS: [RGBColor; 4] = [
    RGBColor(150, 110, 160),
    RGBColor(222, 143, 50),
    RGBColor(86, 130, 178),
    RGBColor(196, 78, 82),
];

/// Where the legend begins, and the widest room of one of its entries, in pixels.
const LEGEND_LEFT: i32 = 90;
const LEGEND_ENTRY: i32 = 140;

const SIZE: (u32, u32) = (720, 760);

/// One chart of the sweep, with its axes and a line for each algorithm.
struct Panel {
    title: &'static str,
    across: &'static str,
    up: &'static str,
    lines: Vec<PlannerLine>,
}

/// What one algorithm reached.
struct PlannerLine {
    name: String,
    colour: RGBColor,
    /// The limit, and what was reached within it.
    points: Vec<(f64, f64)>,
    /// The limit, and the lower end, the middle and the upper end of what running the plan gave.
    verified: Vec<(f64, [f64; 3])>,
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
) -> Result<String, String> {
    let panels = [
        panel(
            algorithms,
            outcomes,
            "the most accurate within a time",
            "time limit, ms",
            "accuracy",
            |goal, plan| {
                let Goal::MaxAccuracy { within } = goal else {
                    return None;
                };
                Some((within.as_millis_f64(), plan.accuracy().value))
            },
            |placement| {
                let (accuracy, (low, high)) = verified.get(placement)?.accuracy?;
                Some([low, accuracy, high])
            },
        ),
        panel(
            algorithms,
            outcomes,
            "the fastest of an accuracy",
            "accuracy required",
            "time, ms",
            |goal, plan| {
                let Goal::MinTime { at_least } = goal else {
                    return None;
                };
                Some((at_least, plan.time().total().as_nanos() as f64 / 1e6))
            },
            |placement| {
                let found = verified.get(placement)?;
                let (low, high) = found.time_ci95_ns.unwrap_or((found.time_ns, found.time_ns));
                Some([low, found.time_ns, high].map(|nanos| nanos as f64 / 1e6))
            },
        ),
    ];
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        let failed = |error: DrawingAreaErrorKind<std::io::Error>| error.to_string();
        root.fill(&WHITE).map_err(failed)?;
        let (head, rest) = root.split_vertically(34);
        head.draw_text(title, &("sans-serif", 16).into_text_style(&head), (12, 8))
            .map_err(failed)?;
        for (area, panel) in rest.split_evenly((2, 1)).iter().zip(&panels) {
            draw(area, panel).map_err(failed)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(text)
}

fn panel(
    algorithms: &[KeepingAlgorithm],
    outcomes: &[Outcome],
    title: &'static str,
    across: &'static str,
    up: &'static str,
    point: impl Fn(Goal, &Plan) -> Option<(f64, f64)>,
    verified: impl Fn(&Placement) -> Option<[f64; 3]>,
) -> Panel {
    let line = |(place, &(algorithm, keep)): (usize, &KeepingAlgorithm)| {
        let plans = outcomes.iter().filter_map(Outcome::plan);
        let own = plans.filter(|plan| (plan.algorithm(), plan.keep()) == (algorithm, keep));
        let own: Vec<(&Plan, (f64, f64))> = own
            .filter_map(|plan| Some((plan, point(plan.goal(), plan)?)))
            .collect();
        let run = own
            .iter()
            .filter_map(|(plan, (limit, _))| Some((*limit, verified(plan.combination())?)));
        PlannerLine {
            name: match keep {
                Some(keep) => format!("{algorithm}, K = {keep}"),
                None => algorithm.to_string(),
            },
            colour: colour(place),
            verified: run.collect(),
            points: own.iter().map(|(_, at)| *at).collect(),
        }
    };
    Panel {
        title,
        across,
        up,
        lines: algorithms.iter().enumerate().map(line).collect(),
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

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    panel: &Panel,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let shown = panel.lines.iter().flat_map(|line| {
        let ends = line.verified.iter();
        let ends = ends.flat_map(|&(at, ends)| ends.map(|end| (at, end)));
        line.points.iter().copied().chain(ends)
    });
    let shown: Vec<(f64, f64)> = shown.collect();
    let range = |of: fn(&(f64, f64)) -> f64| {
        let all = || shown.iter().map(of);
        let (low, high) = (
            all().fold(f64::MAX, f64::min),
            all().fold(f64::MIN, f64::max),
        );
        // A sweep that found nothing still has axes.
        match low <= high {
            true => (low - 0.05 * (high - low).max(1e-9))..(high + 0.05 * (high - low).max(1e-9)),
            false => 0.0..1.0,
        }
    };
    let mut chart = ChartBuilder::on(area)
        .caption(panel.title, ("sans-serif", 14))
        .margin(8)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(range(|point| point.0), range(|point| point.1))?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(panel.across)
        .y_desc(panel.up)
        .label_style(("sans-serif", 11))
        .draw()?;
    let room = SIZE.0 as i32 - LEGEND_LEFT;
    let entry = LEGEND_ENTRY.min(room / panel.lines.len().max(1) as i32);
    for (place, line) in panel.lines.iter().enumerate() {
        let PlannerLine {
            name,
            colour,
            points,
            verified,
        } = line;
        chart.draw_series(LineSeries::new(
            points.iter().copied(),
            colour.stroke_width(2),
        ))?;
        chart.draw_series(points.iter().map(|&at| Circle::new(at, 2, colour.filled())))?;
        // What was measured stands beside as hollow circles with the ends of their intervals.
        let ends = verified.iter();
        let bars = ends
            .map(|&(at, [low, _, high])| PathElement::new(vec![(at, low), (at, high)], *colour));
        chart.draw_series(bars)?;
        let middles = verified.iter();
        chart.draw_series(
            middles.map(|&(at, [_, middle, _])| Circle::new((at, middle), 4, *colour)),
        )?;
        let left = LEGEND_LEFT + place as i32 * entry;
        area.draw(&Rectangle::new(
            [(left, 24), (left + 12, 36)],
            colour.filled(),
        ))?;
        area.draw(&Text::new(
            name.as_str(),
            (left + 18, 25),
            ("sans-serif", 12),
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use layerlab_planners::Algorithm;

    use super::*;

    #[test]
    fn every_algorithm_has_a_line_however_many_there_are() {
        let mut lines: Vec<KeepingAlgorithm> =
            Algorithm::ALL.iter().map(|&one| (one, None)).collect();
        lines.push((Algorithm::MlmpPaper, Some(5)));
        let drawn = svg("a sweep", &lines, &[], &VerifiedPlacements::new()).expect("a drawing");
        let names = Algorithm::ALL.iter().map(ToString::to_string);
        for name in names.chain(["mlmp-paper, K = 5".to_owned()]) {
            let shown = drawn.lines().filter(|line| line.trim() == name).count();
            assert_eq!(shown, 2, "{name} in both legends");
        }
    }

    #[test]
    fn no_two_lines_have_one_colour() {
        let colours: BTreeSet<_> = (0..40).map(colour).map(|c| (c.0, c.1, c.2)).collect();
        assert_eq!(colours.len(), 40);
    }
}

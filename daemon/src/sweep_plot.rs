//! The picture of a sweep: accuracy over time limits and time over accuracy limits, a line for each algorithm,
//! as in mlmp Figures 7 and 11. SVG.

use layerlab_planners::{Algorithm, Goal, Outcome};
use plotters::prelude::*;

const COLOURS: [RGBColor; 4] = [
    RGBColor(150, 110, 160),
    RGBColor(222, 143, 50),
    RGBColor(86, 130, 178),
    RGBColor(196, 78, 82),
];
const SIZE: (u32, u32) = (720, 760);

/// One chart of the sweep, with its axes and a line for each algorithm.
struct Panel {
    title: &'static str,
    across: &'static str,
    up: &'static str,
    lines: Vec<Line>,
}

/// What one algorithm reached.
struct Line {
    name: &'static str,
    colour: RGBColor,
    /// The limit, and what was reached within it.
    points: Vec<(f64, f64)>,
}

/// The outcomes of a sweep, drawn; `title` says of what.
///
/// # Errors
/// When the drawing library fails, which it does not on a drawing in memory.
pub fn svg(title: &str, outcomes: &[Outcome]) -> Result<String, String> {
    let panels = [
        panel(
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
        ),
        panel(
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
    outcomes: &[Outcome],
    title: &'static str,
    across: &'static str,
    up: &'static str,
    point: impl Fn(Goal, &layerlab_planners::Plan) -> Option<(f64, f64)>,
) -> Panel {
    let line = |(algorithm, colour): (&Algorithm, &RGBColor)| {
        let plans = outcomes.iter().filter_map(Outcome::plan);
        let own = plans.filter(|plan| plan.algorithm().name() == algorithm.name());
        let points: Vec<(f64, f64)> = own.filter_map(|plan| point(plan.goal(), plan)).collect();
        Line {
            name: algorithm.name(),
            colour: *colour,
            points,
        }
    };
    Panel {
        title,
        across,
        up,
        lines: Algorithm::ALL.iter().zip(&COLOURS).map(line).collect(),
    }
}

fn draw<B: DrawingBackend>(
    area: &DrawingArea<B, plotters::coord::Shift>,
    panel: &Panel,
) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
    let range = |of: fn(&(f64, f64)) -> f64| {
        let all = || {
            panel
                .lines
                .iter()
                .flat_map(|line| line.points.iter().map(of))
        };
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
    for (place, line) in panel.lines.iter().enumerate() {
        let Line {
            name,
            colour,
            points,
        } = line;
        chart.draw_series(LineSeries::new(
            points.iter().copied(),
            colour.stroke_width(2),
        ))?;
        chart.draw_series(points.iter().map(|&at| Circle::new(at, 2, colour.filled())))?;
        let left = 90 + place as i32 * 140;
        area.draw(&Rectangle::new(
            [(left, 24), (left + 12, 36)],
            colour.filled(),
        ))?;
        area.draw(&Text::new(*name, (left + 18, 25), ("sans-serif", 12)))?;
    }
    Ok(())
}

//! Errors against noise, both on logarithmic scales, one panel beside the other.

use std::path::Path;

use plotters::prelude::*;

/// One line of a panel: the error of one design over the noise.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// (noise in per cent, error in ms).
    pub points: Vec<(f64, f64)>,
}

/// From the palette of Okabe and Ito, which colour-blind readers can tell apart.
const COLOURS: [RGBColor; 4] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
];

/// Draws the panels, each with its title, into an SVG file.
pub fn plot(path: &Path, panels: &[(&str, Vec<Series>)]) -> Result<(), String> {
    let size = (560 * panels.len() as u32, 420);
    let root = SVGBackend::new(path, size).into_drawing_area();
    draw(&root, panels).map_err(|error| format!("{}: {error}", path.display()))
}

fn draw(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    panels: &[(&str, Vec<Series>)],
) -> Result<(), Box<dyn std::error::Error>> {
    root.fill(&WHITE)?;
    for (area, (title, series)) in root.split_evenly((1, panels.len())).iter().zip(panels) {
        let points = || series.iter().flat_map(|series| series.points.iter());
        let low = points().map(|point| point.1).fold(f64::INFINITY, f64::min) / 1.5;
        let high = points().map(|point| point.1).fold(0.0, f64::max) * 4.0;
        let mut chart = ChartBuilder::on(area)
            .caption(*title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d((0.45..5.6).log_scale(), (low..high).log_scale())?;
        chart
            .configure_mesh()
            .x_desc("noise, % of the duration")
            .y_desc("root mean square error, ms")
            .x_label_formatter(&|x| format!("{x:.1}"))
            .y_label_formatter(&|y| format!("{y}"))
            .draw()?;
        for (series, colour) in series.iter().zip(COLOURS) {
            chart
                .draw_series(LineSeries::new(
                    series.points.iter().copied(),
                    colour.stroke_width(2),
                ))?
                .label(series.name.clone())
                .legend(move |(x, y)| {
                    PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
                });
            let marks = series
                .points
                .iter()
                .map(|&point| Circle::new(point, 3, colour.filled()));
            chart.draw_series(marks)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()?;
    }
    root.present()?;
    Ok(())
}

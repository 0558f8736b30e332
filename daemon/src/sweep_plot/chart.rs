//! One chart of a sweep: what is reached over what is asked for, or over what the world is like.

use layerlab_campaign::plot::axis::{Axis, Unit};
use layerlab_campaign::plot::canvas::{Canvas, Drawn, GRID, HEAD, INK, LABEL, LINE, Pixel, QUIET};
use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;

/// Pixels of a chart, and of its parts: the plot, and what is left of it and right of it.
pub(super) const HEIGHT: i32 = HEAD + 12 + LINE + PLOT + 2 * LINE + 26;
const PLOT: i32 = 240;
const LEFT: i32 = 76;
const RIGHT: i32 = 30;

/// One chart, with a line for each algorithm.
pub(super) struct Chart {
    title: &'static str,
    across: (&'static str, Axis),
    up: (&'static str, Axis),
    lines: Vec<ChartLine>,
    on_one: Vec<((f64, f64), RGBColor)>,
    bands: Vec<Band>,
    holds: Holds,
}

/// A colour behind the lines, from one place across to another.
pub(super) struct Band {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) colour: RGBColor,
}

/// Which other limits an answer keeps as well.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Holds {
    /// Higher ones: what is fast enough is so with more time.
    ForMore,
    /// Lower ones: what is accurate enough is so where less is required.
    ForLess,
    /// None: what is across is no limit, and lines go straight from point to point.
    Nowhere,
}

/// What one algorithm reached, by limits, lowest first.
pub(super) struct ChartLine {
    pub(super) colour: RGBColor,
    pub(super) points: Vec<Point>,
}

#[derive(Clone)]
pub(super) struct Point {
    pub(super) limit: f64,
    /// Nothing where there is no plan.
    pub(super) reached: Option<f64>,
    /// The lower end, the middle and the upper end of what running the plan gave.
    pub(super) ran: Option<[f64; 3]>,
}

impl Chart {
    /// A chart whose axes show all of its points.
    pub(super) fn new(
        title: &'static str,
        across: (&'static str, Unit),
        up: (&'static str, Unit),
        lines: Vec<ChartLine>,
        on_one: Vec<((f64, f64), RGBColor)>,
        holds: Holds,
    ) -> Chart {
        let points = || lines.iter().flat_map(|line| &line.points);
        let planned = || points().filter(|point| point.reached.is_some());
        let xs = planned().map(|point| point.limit);
        let xs = xs.chain(on_one.iter().map(|((x, _), _)| *x));
        let ys = points().flat_map(|point| {
            point
                .reached
                .into_iter()
                .chain(point.ran.into_iter().flatten())
        });
        let ys = ys.chain(on_one.iter().map(|((_, y), _)| *y));
        Chart {
            title,
            across: (across.0, axis(xs, across.1)),
            up: (up.0, axis(ys, up.1)),
            lines,
            on_one,
            bands: Vec::new(),
            holds,
        }
    }

    /// A chart on which every step, across and up, is as many times the last.
    pub(super) fn logarithmic(
        title: &'static str,
        across: (&'static str, Axis),
        up: (&'static str, Axis),
        lines: Vec<ChartLine>,
        bands: Vec<Band>,
    ) -> Chart {
        Chart {
            title,
            across,
            up,
            lines,
            on_one: Vec::new(),
            bands,
            holds: Holds::Nowhere,
        }
    }

    /// Draws the chart from `top` on, in a picture so wide.
    pub(super) fn draw(&self, canvas: &Canvas<'_>, top: i32, picture: i32) -> Drawn {
        canvas.write(self.title, (12, top + 6), HEAD, INK, HPos::Left)?;
        let top = top + HEAD + 12;
        canvas.write(self.up.0, (LEFT - 6, top), LABEL, QUIET, HPos::Left)?;
        let frame = Frame {
            left: LEFT,
            right: picture - RIGHT,
            top: top + LINE,
            foot: top + LINE + PLOT,
        };
        let at = |x: f64, y: f64| -> Pixel {
            let x = self.across.1.pixel(x, frame.left, frame.right);
            (x, self.up.1.pixel(y, frame.foot, frame.top))
        };
        for band in &self.bands {
            let ends = [band.from, band.to];
            let [from, to] = ends.map(|x| self.across.1.pixel(x, frame.left, frame.right));
            canvas.fill((from, frame.top), (to, frame.foot), band.colour)?;
        }
        self.draw_axes(canvas, &frame)?;
        for ((x, y), colour) in &self.on_one {
            let from = at(*x, *y);
            let end = match self.holds {
                Holds::ForMore => frame.right,
                Holds::ForLess => frame.left,
                Holds::Nowhere => from.0,
            };
            canvas.dashes(from, (end, from.1), *colour)?;
        }
        let count = self.lines.len();
        for (place, line) in self.lines.iter().enumerate() {
            // Lines that lie on each other stay to be seen: the first is the widest.
            let width = 2 + 2 * (count - 1 - place) as u32;
            for pair in line.points.windows(2) {
                let (a, b) = (&pair[0], &pair[1]);
                let (Some(from), Some(to)) = (a.reached, b.reached) else {
                    continue;
                };
                let corner = match self.holds {
                    Holds::ForMore => at(b.limit, from),
                    Holds::ForLess => at(a.limit, to),
                    Holds::Nowhere => at(b.limit, to),
                };
                let steps = [at(a.limit, from), corner, at(b.limit, to)];
                canvas.line(&steps, line.colour, width)?;
            }
            for point in &line.points {
                if let Some(reached) = point.reached {
                    let radius = 2 + width as i32 / 2;
                    canvas.dot(at(point.limit, reached), radius, line.colour, true)?;
                }
            }
        }
        // On the lines, which begin and end there.
        for ((x, y), colour) in &self.on_one {
            canvas.diamond(at(*x, *y), 6, *colour)?;
        }
        for line in &self.lines {
            for point in &line.points {
                if let Some([low, middle, high]) = point.ran {
                    let (x, y) = at(point.limit, middle);
                    let ends = (at(point.limit, low).1, at(point.limit, high).1);
                    canvas.whisker(x, ends, 4)?;
                    canvas.dot((x, y), 4, line.colour, false)?;
                }
            }
        }
        Ok(())
    }

    fn draw_axes(&self, canvas: &Canvas<'_>, frame: &Frame) -> Drawn {
        for (value, name) in &self.up.1.ticks {
            let y = self.up.1.pixel(*value, frame.foot, frame.top);
            canvas.line(&[(frame.left, y), (frame.right, y)], GRID, 1)?;
            let at = (frame.left - 6, y - LABEL / 2);
            canvas.write(name, at, LABEL, QUIET, HPos::Right)?;
        }
        for (value, name) in &self.across.1.ticks {
            let x = self.across.1.pixel(*value, frame.left, frame.right);
            canvas.line(&[(x, frame.foot), (x, frame.foot + 4)], INK, 1)?;
            canvas.write(name, (x, frame.foot + 8), LABEL, QUIET, HPos::Center)?;
        }
        canvas.line(
            &[(frame.left, frame.foot), (frame.right, frame.foot)],
            INK,
            1,
        )?;
        let middle = (frame.left + frame.right) / 2;
        canvas.write(
            self.across.0,
            (middle, frame.foot + 8 + LINE),
            LABEL,
            QUIET,
            HPos::Center,
        )
    }
}

/// Where the plot is.
struct Frame {
    left: i32,
    right: i32,
    top: i32,
    foot: i32,
}

fn axis(values: impl Iterator<Item = f64>, unit: Unit) -> Axis {
    let values: Vec<f64> = values.collect();
    let low = values.iter().copied().fold(f64::MAX, f64::min);
    let high = values.iter().copied().fold(f64::MIN, f64::max);
    match values.is_empty() {
        true => Axis::linear(0.0, 1.0, unit),
        false => Axis::linear(low, high, unit),
    }
}

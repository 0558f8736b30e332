//! One chart of a profile's picture: a column for each layer, its legend above it and what it does not say by itself
//! below it.

use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;

use super::axis::{Axis, Unit};
use super::canvas::{Canvas, Drawn, GRID, HEAD, INK, LABEL, LINE, QUIET, lines, width};
use super::legend::{self, Entry};

/// Pixels left of the columns, for the axis, and right of them.
pub(super) const AXIS_WIDTH: i32 = 76;
pub(super) const EDGE: i32 = 12;

/// Pixels of the columns' height, above them for what is written over bars that are cut off, and between two panels.
const PLOT_HEIGHT: i32 = 220;
const ABOVE: i32 = 18;
const GAP: i32 = 22;

/// The longest name of a layer that is written out, in letters.
const LONGEST_NAME: usize = 18;

/// So many times as high as the next one is a bar that is cut off, so that the others can be told apart.
const DWARFS: f64 = 2.0;

pub(super) struct Panel {
    pub(super) title: String,
    pub(super) legend: Vec<Entry>,
    pub(super) marks: Marks,
    /// Sentences below the columns.
    pub(super) notes: Vec<String>,
}

/// What stands in the column of each layer.
pub(super) enum Marks {
    /// Parts on each other, from 0 up, or down where they are negative.
    Stacks(Unit, Vec<Vec<Part>>),
    /// Times beside each other as points over a logarithmic axis.
    Points(Vec<Vec<Option<Part>>>),
}

/// A value, with its 95 % interval, in its colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) value: f64,
    pub(super) ci95: Option<(f64, f64)>,
    pub(super) colour: RGBColor,
}

impl Part {
    /// Whether its interval contains 0, or it is less than that.
    pub(super) fn is_unresolved(&self) -> bool {
        self.ci95.map_or(self.value, |(low, _)| low) <= 0.0
    }
}

/// Where a part of a stack begins and ends.
struct Level {
    from: f64,
    to: f64,
    part: Part,
}

impl Panel {
    /// The height in a picture of such a width, in pixels.
    pub(super) fn height(&self, picture: i32, names: &[&str]) -> i32 {
        let room = room(picture);
        let notes = self.notes.iter().map(|note| lines(note, room).len() as i32);
        let columns = ABOVE + PLOT_HEIGHT + names_height(picture, names);
        HEAD + 8 + legend::height(&self.legend, room) + columns + notes.sum::<i32>() * LINE + GAP
    }

    /// Draws the panel from `top` on.
    pub(super) fn draw(
        &self,
        canvas: &Canvas<'_>,
        top: i32,
        picture: i32,
        names: &[&str],
    ) -> Drawn {
        let room = room(picture);
        canvas.write(&self.title, (EDGE, top), HEAD, INK, HPos::Left)?;
        let mut y = top + HEAD + 8;
        legend::draw(canvas, &self.legend, (EDGE, y), room)?;
        y += legend::height(&self.legend, room) + ABOVE;
        let columns = Columns {
            canvas,
            axis: self.axis(),
            top: y,
            foot: y + PLOT_HEIGHT,
            picture,
            count: names.len(),
        };
        columns.draw_axis()?;
        match &self.marks {
            Marks::Stacks(_, stacks) => columns.draw_stacks(stacks)?,
            Marks::Points(points) => columns.draw_points(points)?,
        }
        columns.draw_names(names)?;
        y += PLOT_HEIGHT + names_height(picture, names);
        for note in &self.notes {
            for line in lines(note, room) {
                canvas.write(&line, (EDGE, y), LABEL, QUIET, HPos::Left)?;
                y += LINE;
            }
        }
        Ok(())
    }

    fn axis(&self) -> Axis {
        match &self.marks {
            Marks::Stacks(unit, stacks) => stacks_axis(stacks, *unit),
            Marks::Points(points) => {
                let parts = || points.iter().flatten().flatten();
                let told = parts().filter(|part| !part.is_unresolved());
                let ends = told.flat_map(|part| part.ci95.map_or([part.value; 2], |(a, b)| [a, b]));
                // Of what cannot be told from zero only the upper end is shown.
                let least =
                    parts().filter_map(|part| Some(part.ci95?.1).filter(|high| *high > 0.0));
                let all: Vec<f64> = ends.chain(least).collect();
                let low = all.iter().copied().fold(f64::MAX, f64::min);
                let high = all.iter().copied().fold(0.0, f64::max);
                match high > 0.0 {
                    true => Axis::logarithmic(low, high, Unit::Time),
                    false => Axis::logarithmic(1e3, 1e6, Unit::Time),
                }
            }
        }
    }
}

/// Pixels between a picture's edges.
fn room(picture: i32) -> i32 {
    picture - 2 * EDGE
}

fn names_height(picture: i32, names: &[&str]) -> i32 {
    match are_upright(picture, names) {
        true => LINE + 8,
        false => {
            let widths = names.iter().map(|name| width(&short(name), LABEL));
            widths.max().unwrap_or(0) + 14
        }
    }
}

/// Whether all names fit below their columns without being turned.
fn are_upright(picture: i32, names: &[&str]) -> bool {
    let column = (picture - AXIS_WIDTH - EDGE) / names.len().max(1) as i32;
    names.iter().all(|name| width(name, LABEL) <= column)
}

fn short(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    let begin: String = name.chars().take(LONGEST_NAME - 1).collect();
    format!("{begin}…")
}

/// The parts' places: those of more than 0 on each other, those of less below each other.
fn levels(stack: &[Part]) -> Vec<Level> {
    let (mut up, mut down) = (0.0, 0.0);
    let level = |part: &Part| {
        let edge = if part.value < 0.0 { &mut down } else { &mut up };
        let from = *edge;
        *edge += part.value;
        Level {
            from,
            to: *edge,
            part: *part,
        }
    };
    stack.iter().map(level).collect()
}

/// The ends of all parts of a stack and of their whiskers.
fn ends(stack: &[Part]) -> impl Iterator<Item = f64> {
    levels(stack)
        .into_iter()
        .flat_map(|Level { from, to, part }| {
            let (low, high) = part.ci95.unwrap_or((part.value, part.value));
            [to, from + low, from + high]
        })
}

fn top_of(stack: &[Part]) -> f64 {
    ends(stack).fold(0.0, f64::max)
}

fn stacks_axis(stacks: &[Vec<Part>], unit: Unit) -> Axis {
    let low = stacks.iter().flat_map(|stack| ends(stack));
    let high = match unit {
        Unit::Time => highest_shown(stacks),
        // Of savings and losses the large ones are what is looked for.
        Unit::Percent | Unit::Fraction | Unit::Bandwidth => {
            stacks.iter().map(|stack| top_of(stack)).fold(0.0, f64::max)
        }
    };
    Axis::linear(low.fold(0.0, f64::min), high, unit)
}

/// Whether a bar goes on beyond the axis.
pub(super) fn is_any_cut(stacks: &[Vec<Part>], unit: Unit) -> bool {
    let axis = stacks_axis(stacks, unit);
    stacks.iter().any(|stack| top_of(stack) > axis.high())
}

/// The highest of what is not cut off: where a few bars dwarf all others, the axis ends a little above the others.
fn highest_shown(stacks: &[Vec<Part>]) -> f64 {
    let mut tops: Vec<f64> = stacks.iter().map(|stack| top_of(stack)).collect();
    tops.sort_by(|a, b| b.total_cmp(a));
    let few = tops.len() / 4;
    let cut = (1..=few).rev().find(|&place| {
        let next = tops[place];
        next > 0.0 && tops[place - 1] >= DWARFS * next
    });
    match cut {
        Some(place) => 1.1 * tops[place],
        None => tops.first().copied().unwrap_or(0.0),
    }
}

/// The part of a panel that holds the columns.
struct Columns<'a, 'c> {
    canvas: &'a Canvas<'c>,
    axis: Axis,
    top: i32,
    foot: i32,
    picture: i32,
    count: usize,
}

impl Columns<'_, '_> {
    fn y(&self, value: f64) -> i32 {
        self.axis.pixel(value, self.foot, self.top)
    }

    /// A share of a column's width, from the left edge of the column at `place`.
    fn x(&self, place: usize, share: f64) -> i32 {
        let all = f64::from(self.picture - AXIS_WIDTH - EDGE);
        let column = all / self.count.max(1) as f64;
        AXIS_WIDTH + (column * (place as f64 + share)).round() as i32
    }

    fn draw_axis(&self) -> Drawn {
        let right = self.picture - EDGE;
        for (value, name) in &self.axis.ticks {
            let y = self.y(*value);
            // Nothing is what bars stand on.
            let colour = if *value == 0.0 { INK } else { GRID };
            self.canvas
                .line(&[(AXIS_WIDTH, y), (right, y)], colour, 1)?;
            let at = (AXIS_WIDTH - 6, y - LABEL / 2);
            self.canvas.write(name, at, LABEL, QUIET, HPos::Right)?;
        }
        Ok(())
    }

    fn draw_names(&self, names: &[&str]) -> Drawn {
        let upright = are_upright(self.picture, names);
        for (place, name) in names.iter().enumerate() {
            let x = self.x(place, 0.5);
            match upright {
                true => {
                    let at = (x, self.foot + 8);
                    self.canvas.write(name, at, LABEL, INK, HPos::Center)?;
                }
                false => {
                    let at = (x + LABEL / 2, self.foot + 8);
                    self.canvas.write_down(&short(name), at)?;
                }
            }
        }
        Ok(())
    }

    fn draw_stacks(&self, stacks: &[Vec<Part>]) -> Drawn {
        for (place, stack) in stacks.iter().enumerate() {
            let (left, right) = (self.x(place, 0.14), self.x(place, 0.86));
            let levels = levels(stack);
            for level in &levels {
                let (from, to) = (self.y(level.from), self.y(level.to));
                self.canvas.fill(
                    (left, from.min(to)),
                    (right, from.max(to)),
                    level.part.colour,
                )?;
            }
            let cap = ((right - left) / (3 * levels.len().max(1) as i32)).clamp(1, 5);
            for (place, level) in levels.iter().enumerate() {
                let Some((low, high)) = level.part.ci95 else {
                    continue;
                };
                if level.from + high > self.axis.high() {
                    continue;
                }
                // Side by side, so that none hides another.
                let share = (place + 1) as i32 * (right - left) / (levels.len() as i32 + 1);
                let ends = (self.y(level.from + low), self.y(level.from + high));
                self.canvas.whisker(left + share, ends, cap)?;
            }
            if top_of(stack) > self.axis.high() {
                self.cut(place, (left, right), top_of(stack))?;
            }
        }
        Ok(())
    }

    /// A gap in a bar that goes on beyond the axis, with its whole height above it.
    fn cut(&self, place: usize, (left, right): (i32, i32), top: f64) -> Drawn {
        let y = self.top + 12;
        for gap in [0, 1] {
            let y = y + gap;
            let points = [(left - 2, y + 8), (right + 2, y)];
            self.canvas.line(&points, plotters::prelude::WHITE, 3)?;
        }
        let name = layerlab_profiles::SignedNanos::from_nanos(top as i64).to_string();
        // At the edges the words would leave the picture.
        let side = match place {
            0 => HPos::Left,
            _ if place + 1 == self.count => HPos::Right,
            _ => HPos::Center,
        };
        let x = match side {
            HPos::Left => left,
            HPos::Right => right,
            HPos::Center => (left + right) / 2,
        };
        self.canvas
            .write(&name, (x, self.top - LABEL - 4), LABEL, INK, side)
    }

    fn draw_points(&self, points: &[Vec<Option<Part>>]) -> Drawn {
        for (place, column) in points.iter().enumerate() {
            for (index, part) in column.iter().enumerate() {
                let Some(part) = part else {
                    continue;
                };
                let share = (index as f64 + 1.0) / (column.len() as f64 + 1.0);
                let x = self.x(place, share);
                let told = !part.is_unresolved();
                if let Some((low, high)) = part.ci95 {
                    self.canvas.whisker(x, (self.y(low), self.y(high)), 4)?;
                }
                let y = if told { self.y(part.value) } else { self.foot };
                self.canvas.dot((x, y), 4, part.colour, told)?;
            }
        }
        Ok(())
    }
}

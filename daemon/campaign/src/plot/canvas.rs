//! A drawing in SVG: shapes and words at pixels, and how wide words are.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The size of letters in the title of a picture, in pixels.
pub const TITLE: i32 = 17;
/// The size of letters in the title of a chart, in pixels.
pub const HEAD: i32 = 14;
/// The size of all other letters, in pixels.
pub const LABEL: i32 = 12;

/// What is written and drawn first of all.
pub const INK: RGBColor = RGBColor(30, 32, 36);
/// What explains it.
pub const QUIET: RGBColor = RGBColor(92, 98, 105);
/// The lines behind it.
pub const GRID: RGBColor = RGBColor(225, 225, 225);

/// The height of a line of labels, in pixels.
pub const LINE: i32 = LABEL + 6;

/// The drawing library takes sizes of letters that it divides by this.
const LIBRARY_LETTERS: f64 = 1.24;

/// The mean width of a letter by its height in the widest of the usual fonts. Who will look at a picture, and with which
/// fonts, nobody knows.
const LETTER_WIDTH: f64 = 0.6;

/// What the drawing library may say.
pub type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Pixels right of the left edge and below the upper edge.
pub type Pixel = (i32, i32);

/// What can be drawn on.
pub struct Canvas<'a>(DrawingArea<SVGBackend<'a>, Shift>);

/// A white picture of so many pixels with what `work` draws, as an SVG document.
///
/// # Errors
/// When the drawing library fails, which it does not on a drawing in memory.
pub fn svg(
    (width, height): (i32, i32),
    work: impl FnOnce(&Canvas<'_>) -> Drawn,
) -> Result<String, String> {
    let size = (width.unsigned_abs(), height.unsigned_abs());
    let mut text = String::new();
    {
        let canvas = Canvas(SVGBackend::with_string(&mut text, size).into_drawing_area());
        let drawn = canvas.0.fill(&WHITE).and_then(|()| work(&canvas));
        let drawn = drawn.and_then(|()| canvas.0.present());
        drawn.map_err(|error| error.to_string())?;
    }
    Ok(text)
}

impl Canvas<'_> {
    /// A filled rectangle between two corners.
    pub fn fill(&self, from: Pixel, to: Pixel, colour: RGBColor) -> Drawn {
        self.0.draw(&Rectangle::new([from, to], colour.filled()))
    }

    /// Straight lines from point to point.
    pub fn line(&self, points: &[Pixel], colour: RGBColor, width: u32) -> Drawn {
        let line = PathElement::new(points.to_vec(), colour.stroke_width(width));
        self.0.draw(&line)
    }

    /// A disc, or a ring with white inside.
    pub fn dot(&self, at: Pixel, radius: i32, colour: RGBColor, is_full: bool) -> Drawn {
        if is_full {
            return self.0.draw(&Circle::new(at, radius, colour.filled()));
        }
        self.0.draw(&Circle::new(at, radius, WHITE.filled()))?;
        let ring = colour.stroke_width(2);
        self.0.draw(&Circle::new(at, radius, ring))
    }

    /// A square on its corner.
    pub fn diamond(&self, (x, y): Pixel, radius: i32, colour: RGBColor) -> Drawn {
        let corners = vec![
            (x, y - radius),
            (x + radius, y),
            (x, y + radius),
            (x - radius, y),
        ];
        self.0.draw(&Polygon::new(corners, colour.filled()))
    }

    /// A dashed line between two pixels of one height or one width.
    pub fn dashes(&self, from: Pixel, to: Pixel, colour: RGBColor) -> Drawn {
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let long = across.abs().max(down.abs());
        let at = |done: i32| {
            (
                from.0 + across.signum() * done,
                from.1 + down.signum() * done,
            )
        };
        for begin in (0..long).step_by(8) {
            self.line(&[at(begin), at((begin + 4).min(long))], colour, 1)?;
        }
        Ok(())
    }

    /// A 95 % interval: a line between two heights with a cap at each end, which shows where the line is too short to.
    pub fn whisker(&self, x: i32, (low, high): (i32, i32), cap: i32) -> Drawn {
        // White around it makes it seen on any colour.
        for (colour, width) in [(WHITE, 3), (INK, 1)] {
            self.line(&[(x, low), (x, high)], colour, width)?;
            for end in [low, high] {
                self.line(&[(x - cap, end), (x + cap, end)], colour, width)?;
            }
        }
        Ok(())
    }

    /// Words that begin, are centred or end at `at`, which is their upper edge.
    pub fn write(&self, text: &str, at: Pixel, size: i32, colour: RGBColor, side: HPos) -> Drawn {
        let font = ("sans-serif", f64::from(size) * LIBRARY_LETTERS).into_font();
        let style = font.color(&colour).pos(Pos::new(side, VPos::Top));
        self.0.draw(&Text::new(text, at, style))
    }

    /// Words from `at` down, turned by a quarter.
    pub fn write_down(&self, text: &str, at: Pixel) -> Drawn {
        let font = ("sans-serif", f64::from(LABEL) * LIBRARY_LETTERS).into_font();
        let font = font.transform(FontTransform::Rotate90);
        self.0.draw(&Text::new(text, at, font.color(&INK)))
    }
}

/// About how many pixels wide a text is.
pub fn width(text: &str, size: i32) -> i32 {
    (text.chars().count() as f64 * f64::from(size) * LETTER_WIDTH).ceil() as i32
}

/// The largest size of letters in which a title fits so many pixels.
pub fn fitting(title: &str, room: i32) -> i32 {
    let mut sizes = [TITLE, HEAD, LABEL].into_iter();
    sizes
        .find(|size| width(title, *size) <= room)
        .unwrap_or(LABEL)
}

/// The text in lines of labels that are no wider than so many pixels, unless a word is.
pub fn lines(text: &str, room: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), LABEL) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

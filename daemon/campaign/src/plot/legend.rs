//! What the colours of a panel stand for, in rows above it, so that no word lies on the drawing or beyond its edge.

use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;

use super::canvas::{Canvas, Drawn, INK, LABEL, LINE, width};

/// A word and its colour.
pub type Entry = (String, RGBColor);

/// Pixels for the coloured square, and between two entries.
const SQUARE: i32 = 18;
const GAP: i32 = 22;

/// The height of the legend in a picture with so much room, in pixels.
pub fn height(entries: &[Entry], room: i32) -> i32 {
    let rows = places(entries, room).last().map_or(0, |(_, row)| row + 1);
    rows * LINE
}

/// Draws the legend from `left` and `top` on.
pub fn draw(canvas: &Canvas<'_>, entries: &[Entry], (left, top): (i32, i32), room: i32) -> Drawn {
    for ((label, colour), (x, row)) in entries.iter().zip(places(entries, room)) {
        let (x, y) = (left + x, top + row * LINE);
        canvas.fill((x, y), (x + LABEL, y + LABEL), *colour)?;
        canvas.write(label, (x + SQUARE, y), LABEL, INK, HPos::Left)?;
    }
    Ok(())
}

/// Where each entry begins, from the left edge of the legend, and in which row.
fn places(entries: &[Entry], room: i32) -> Vec<(i32, i32)> {
    let (mut x, mut row) = (0, 0);
    let place = |(label, _): &Entry| {
        let needs = SQUARE + width(label, LABEL);
        if x > 0 && x + needs > room {
            (x, row) = (0, row + 1);
        }
        let place = (x, row);
        x += needs + GAP;
        place
    };
    entries.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_does_not_fit_beside_the_others_begins_a_row() {
        let names = ["compute on the cpu", "compute on the npu", "from the npu"];
        let entries = names.map(|name| (name.to_owned(), INK));
        let ends = |room| {
            let places = places(&entries, room).into_iter().zip(&entries);
            let end = |((x, row), (label, _)): ((i32, i32), &Entry)| {
                (x + SQUARE + width(label, LABEL), row)
            };
            places.map(end).collect::<Vec<_>>()
        };
        let wide = ends(10_000);
        assert!(wide.iter().all(|(_, row)| *row == 0), "{wide:?}");
        let (last, _) = wide[2];
        let narrow = ends(last - 1);
        assert_eq!(
            narrow.iter().map(|(_, row)| *row).collect::<Vec<_>>(),
            [0, 0, 1]
        );
        assert!(narrow.iter().all(|(end, _)| *end < last), "{narrow:?}");
        assert_eq!(height(&entries, last - 1), 2 * LINE);
    }
}

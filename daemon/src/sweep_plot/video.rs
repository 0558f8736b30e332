//! The picture of `video replay`: what each policy makes of a video over what is varied, as in cbo Figures 11 to 13 and fastva
//! Figures 5 to 11. SVG.

use layerlab_campaign::plot::axis::Unit;
use layerlab_campaign::plot::legend::Entry;

use super::chart::{Chart, ChartLine, Holds, Point};
use super::{colour, picture};

/// What one policy reached over what was varied, the least first; nothing where it could not answer every frame.
pub(crate) struct PolicyLine {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, Option<f64>)>,
}

/// The lines of policies, drawn.
///
/// # Errors
/// When the drawing library fails, which it does not on a drawing in memory.
pub(crate) fn svg(
    title: &str,
    across: (&'static str, Unit),
    up: (&'static str, Unit),
    lines: &[PolicyLine],
    note: &str,
) -> Result<String, String> {
    let line = |(place, line): (usize, &PolicyLine)| ChartLine {
        colour: colour(place),
        points: line
            .points
            .iter()
            .map(|&(limit, reached)| Point {
                limit,
                reached,
                ran: None,
            })
            .collect(),
    };
    let chart = Chart::new(
        "What do policies make of the video?",
        across,
        up,
        lines.iter().enumerate().map(line).collect(),
        Vec::new(),
        Holds::Nowhere,
    );
    let entries = lines.iter().enumerate();
    let entries: Vec<Entry> = entries
        .map(|(place, line)| (line.name.clone(), colour(place)))
        .collect();
    picture(title, &entries, &[chart], note)
}

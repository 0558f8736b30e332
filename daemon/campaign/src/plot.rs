//! The picture of a profile: what the whole model and each layer cost on each processor, what each layer costs on an
//! accelerator with its data moved, as in mlmp Figure 10, and what it saves and loses alone there, as in mlmp Figures 2
//! and 8. SVG, the same bytes for the same profile.

pub mod axis;
pub mod canvas;
pub mod legend;
mod minutes;
mod panel;
mod panels;
#[cfg(test)]
mod tests;
mod whole;

use layerlab_profiles::document::{ProcessorKind, Profile};
use layerlab_profiles::soak::Thermal;
use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;

use self::minutes::Minutes;
use canvas::{INK, LINE, QUIET, TITLE};
use panel::{AXIS_WIDTH, EDGE};
use whole::Whole;

const ENTER: RGBColor = RGBColor(86, 130, 178);
const COMPUTE: RGBColor = RGBColor(222, 143, 50);
const LEAVE: RGBColor = RGBColor(130, 176, 120);
const CPU: RGBColor = RGBColor(130, 90, 160);
const LOSS: RGBColor = RGBColor(196, 78, 82);
/// The accelerators beside the CPU, in their order.
const ACCELERATORS: [RGBColor; 4] = [COMPUTE, ENTER, LEAVE, LOSS];
/// Further CPUs: the clusters of a big.LITTLE machine.
const CPUS: [RGBColor; 3] = [CPU, RGBColor(178, 150, 200), RGBColor(84, 62, 104)];

/// A model of few layers has a picture of the least width. One of more has columns as wide as the usual width leaves,
/// and one of very many columns of the least width, in pixels.
const LEAST_WIDTH: i32 = 720;
const USUAL_WIDTH: i32 = 1280;
const WIDEST_COLUMN: i32 = 40;
const NARROWEST_COLUMN: i32 = 15;

/// Pixels between two parts of the picture.
const GAP: i32 = 22;

/// The profile's plot as an SVG document.
///
/// # Errors
/// When the drawing library fails, which it does not on a drawing in memory.
pub fn svg(profile: &Profile) -> Result<String, String> {
    let names: Vec<&str> = (profile.layers.iter())
        .map(|layer| layer.name.as_str())
        .collect();
    let width = picture_width(names.len());
    let (whole, panels) = (Whole::of(profile), panels::panels(profile));
    let minutes = Minutes::of(profile);
    let header = &profile.header;
    let mark = title_mark(header.simulated, header.emulated);
    let steady = match header.thermal {
        Thermal::Cold => "",
        Thermal::Steady => " — STEADY, of a device that did not get cool",
    };
    let mark = format!("{mark}{steady}");
    let title = format!("{} on {}", header.model.name, header.device.name);
    let mark = mark.trim_start_matches(" — ");
    let head = 12 + TITLE + LINE + GAP;
    let heights = panels.iter().map(|panel| panel.height(width, &names));
    let height = head + whole.height() + minutes.height(width) + heights.sum::<i32>();
    canvas::svg((width, height), |canvas| {
        let size = canvas::fitting(&title, width - 2 * EDGE);
        canvas.write(&title, (EDGE, 12), size, INK, HPos::Left)?;
        canvas.write(
            mark,
            (EDGE, 12 + TITLE + 6),
            canvas::LABEL,
            QUIET,
            HPos::Left,
        )?;
        whole.draw(canvas, head, width)?;
        let mut top = head + whole.height();
        minutes.draw(canvas, top, width)?;
        top += minutes.height(width);
        for panel in &panels {
            panel.draw(canvas, top, width, &names)?;
            top += panel.height(width, &names);
        }
        Ok(())
    })
}

fn picture_width(layers: usize) -> i32 {
    let layers = layers.max(1) as i32;
    let room = (USUAL_WIDTH - AXIS_WIDTH - EDGE) / layers;
    let columns = room.clamp(NARROWEST_COLUMN, WIDEST_COLUMN) * layers;
    (AXIS_WIDTH + columns + EDGE).max(LEAST_WIDTH)
}

/// The colour of a processor, wherever it is drawn.
fn processor_colour(profile: &Profile, place: usize) -> RGBColor {
    let processors = &profile.header.processors;
    let kind = processors[place].kind;
    let before = processors[..place].iter().filter(|one| one.kind == kind);
    let colours: &[RGBColor] = match kind {
        ProcessorKind::Cpu => &CPUS,
        ProcessorKind::Accelerator => &ACCELERATORS,
    };
    colours[before.count() % colours.len()]
}

/// What the title of a picture adds to the device's name if not all of its numbers are a real device's.
pub fn title_mark(simulated: bool, emulated: bool) -> &'static str {
    match (simulated, emulated) {
        (true, _) => " — SIMULATED, no real phone",
        (false, true) => " — EMULATED, no phone's times",
        (false, false) => "",
    }
}

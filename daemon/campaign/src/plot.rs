//! The picture of a profile: what each layer costs on the accelerator, stacked, as in mlmp Figure 10,
//! on the CPU beside the accelerator, and what it saves and loses alone on the accelerator, as in mlmp Figures
//! 2 and 8. SVG, the same bytes for the same profile.

use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::document::{Evaluation, LayerTimeRow, Processor, ProcessorKind, Profile};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::time_model::TimeModel;
use layerlab_profiles::{Placement, SignedNanos};
use plotters::coord::Shift;
use plotters::prelude::*;

const ENTER: RGBColor = RGBColor(86, 130, 178);
const COMPUTE: RGBColor = RGBColor(222, 143, 50);
const LEAVE: RGBColor = RGBColor(130, 176, 120);
const CPU: RGBColor = RGBColor(150, 110, 160);
const LOSS: RGBColor = RGBColor(196, 78, 82);
/// The accelerators beside the CPU, in their order.
const ACCELERATORS: [RGBColor; 4] = [COMPUTE, ENTER, LEAVE, LOSS];
const INTERVAL: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(225, 225, 225);

/// Pixels for the axis and for each layer, so that a large model gets a wide picture.
const AXIS_WIDTH: u32 = 110;
const LAYER_WIDTH: u32 = 34;
const LEAST_WIDTH: u32 = 640;
const PANEL_HEIGHT: u32 = 320;
const TITLE_HEIGHT: u32 = 34;
/// The most letters of a label that is no more than a name.
const LONGEST_NAME: usize = 15;

/// What the drawing library may say.
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// The profile's plot as an SVG document.
///
/// # Errors
/// When the drawing library fails, which it does not on a drawing in memory.
pub fn svg(profile: &Profile) -> Result<String, String> {
    let width = (AXIS_WIDTH + LAYER_WIDTH * profile.header.model.layers).max(LEAST_WIDTH);
    let panels = panels(profile);
    let height = TITLE_HEIGHT + PANEL_HEIGHT * panels.len() as u32;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
        draw(&root, profile, &panels).map_err(|error| error.to_string())?;
        root.present().map_err(|error| error.to_string())?;
    }
    Ok(text)
}

/// One chart: bars side by side for each layer, each a stack of parts.
struct Panel {
    title: String,
    /// Of the vertical axis.
    unit: &'static str,
    legend: Vec<(String, RGBColor)>,
    /// For each layer its stacks.
    layers: Vec<Vec<Stack>>,
}

/// Parts of one bar, from the bottom up.
type Stack = Vec<Part>;

/// One part of a bar, in the panel's unit.
#[derive(Clone, Copy)]
struct Part {
    value: f64,
    ci95: Option<(f64, f64)>,
    colour: RGBColor,
}

impl Part {
    fn time(estimate: Estimate, colour: RGBColor) -> Part {
        Part {
            value: millis(estimate.value),
            ci95: estimate.ci95.map(|(low, high)| (millis(low), millis(high))),
            colour,
        }
    }
}

fn panels(profile: &Profile) -> Vec<Panel> {
    let of_kind = |kind| {
        profile
            .header
            .processors
            .iter()
            .filter(move |p| p.kind == kind)
    };
    let mut panels: Vec<Panel> = of_kind(ProcessorKind::Accelerator)
        .map(|processor| transfers_panel(profile, processor))
        .collect();
    if let Some(cpu) = of_kind(ProcessorKind::Cpu).next() {
        let accelerators: Vec<&Processor> = of_kind(ProcessorKind::Accelerator).collect();
        panels.push(comparison_panel(profile, cpu, &accelerators));
    }
    for evaluation in &profile.evaluations {
        let processors = evaluation.processors(&profile.header);
        let accelerators = (1..).zip(&processors[1..]);
        panels.extend(
            accelerators.map(|(place, name)| singles_panel(profile, evaluation, place, name)),
        );
    }
    panels
}

/// What each layer alone on an accelerator, whose digit is `place`, saves of the model's time and loses of its
/// accuracy.
fn singles_panel(profile: &Profile, evaluation: &Evaluation, place: u8, npu: &str) -> Panel {
    let cpu = &evaluation.cpu;
    let (cpu_times, npu_times) = (profile.layer_times(cpu), profile.layer_times(npu));
    let model = TimeModel::new(&cpu_times, &npu_times).ok();
    let time = |combination: &Placement| {
        let predicted = model.as_ref()?.predict(combination).ok()?;
        Some(predicted.total().as_nanos() as f64)
    };
    let layers = profile.layers.len();
    let all_cpu = time(&Placement::all_on(0, layers));
    let of_layer = |layer: usize| {
        // Of the two processors of the time model.
        let alone = Placement::alone_on(1, layer, layers);
        let saved = all_cpu.zip(time(&alone)).map(|(all, one)| Part {
            value: 100.0 * (all - one) / all,
            ci95: None,
            colour: CPU,
        });
        let alone = Placement::alone_on(place, layer, layers);
        let wanted = (cpu, &evaluation.accelerator, &alone);
        let mut rows = profile.combinations.iter();
        let row = rows.find(|row| (&row.cpu, &row.accelerator, &row.combination) == wanted);
        let lost = row.map(|row| Part {
            value: 100.0 * row.loss,
            ci95: Some((100.0 * row.loss_ci95.0, 100.0 * row.loss_ci95.1)),
            colour: LOSS,
        });
        vec![saved.into_iter().collect(), lost.into_iter().collect()]
    };
    Panel {
        title: format!("each layer alone on {npu}, all others on {cpu}"),
        unit: "%",
        legend: vec![
            ("time saved, % of the whole model's".to_owned(), CPU),
            ("accuracy lost, % points".to_owned(), LOSS),
        ],
        layers: (0..layers).map(of_layer).collect(),
    }
}

/// Transfer in, compute and transfer out of each layer on an accelerator.
fn transfers_panel(profile: &Profile, processor: &Processor) -> Panel {
    let stack = |time: LayerTime| {
        let parts = [
            (time.to_processor, ENTER),
            (Some(time.compute), COMPUTE),
            (time.from_processor, LEAVE),
        ];
        parts
            .into_iter()
            .filter_map(|(part, colour)| Some(Part::time(part?, colour)))
            .collect()
    };
    let name = &processor.name;
    Panel {
        title: format!("{name}: each layer by itself"),
        unit: "ms",
        legend: vec![
            (format!("to {name}"), ENTER),
            (
                "compute (first and last: with one transfer)".to_owned(),
                COMPUTE,
            ),
            (format!("from {name}"), LEAVE),
        ],
        // Layers that it cannot run have no bar.
        layers: profile
            .layer_times(name)
            .into_iter()
            .map(|time| vec![time.map_or_else(Vec::new, stack)])
            .collect(),
    }
}

/// Computing each layer on the CPU and on the accelerators.
fn comparison_panel(profile: &Profile, cpu: &Processor, accelerators: &[&Processor]) -> Panel {
    let mut layers: Vec<Vec<Stack>> = rows(profile, cpu)
        .map(|row| vec![vec![Part::time(row.time.compute, CPU)]])
        .collect();
    let mut legend = vec![(cpu.name.clone(), CPU)];
    for (accelerator, &colour) in accelerators.iter().zip(ACCELERATORS.iter().cycle()) {
        // Bars stand in the order of the legend: a layer that this one cannot run has none here.
        for (stacks, time) in layers
            .iter_mut()
            .zip(profile.layer_times(&accelerator.name))
        {
            let part = time.map(|time| Part::time(time.compute, colour));
            stacks.push(part.into_iter().collect());
        }
        legend.push((accelerator.name.clone(), colour));
    }
    Panel {
        title: "compute time".to_owned(),
        unit: "ms",
        legend,
        layers,
    }
}

fn rows<'a>(
    profile: &'a Profile,
    processor: &'a Processor,
) -> impl Iterator<Item = &'a LayerTimeRow> {
    profile
        .times
        .iter()
        .filter(|row| row.processor == processor.name)
}

fn draw<B: DrawingBackend<ErrorType = std::io::Error>>(
    root: &DrawingArea<B, Shift>,
    profile: &Profile,
    panels: &[Panel],
) -> Drawn {
    root.fill(&WHITE)?;
    let header = &profile.header;
    let simulated = if header.simulated {
        " — SIMULATED, no real phone"
    } else {
        ""
    };
    let title = format!("{} on {}{simulated}", header.model.name, header.device.name);
    let (title_area, rest) = root.split_vertically(TITLE_HEIGHT);
    title_area.draw_text(
        &title,
        &("sans-serif", 18).into_text_style(&title_area),
        (12, 8),
    )?;
    let names: Vec<&str> = profile
        .layers
        .iter()
        .map(|layer| layer.name.as_str())
        .collect();
    for (area, panel) in rest.split_evenly((panels.len(), 1)).iter().zip(panels) {
        draw_panel(area, panel, &names)?;
    }
    Ok(())
}

fn draw_panel<B: DrawingBackend<ErrorType = std::io::Error>>(
    area: &DrawingArea<B, Shift>,
    panel: &Panel,
    names: &[&str],
) -> Drawn {
    let (low, high) = range(panel);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 14))
        .margin(8)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..names.len() as f64, low..high)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(GRID)
        .x_labels(0)
        .y_desc(panel.unit)
        .label_style(("sans-serif", 11))
        .draw()?;
    for (index, stacks) in panel.layers.iter().enumerate() {
        let width = 0.8 / stacks.len() as f64;
        for (place, stack) in stacks.iter().enumerate() {
            let left = index as f64 + 0.1 + place as f64 * width;
            chart.draw_series(bars(stack, left, width))?;
            chart.draw_series(intervals(stack, left, width))?;
        }
    }
    let vertical = FontTransform::Rotate90;
    for (index, name) in names.iter().enumerate() {
        let style = ("sans-serif", 11).into_font().transform(vertical.clone());
        let at = chart.backend_coord(&(index as f64 + 0.65, low));
        let base = area.get_base_pixel();
        area.draw(&Text::new(*name, (at.0 - base.0, at.1 - base.1 + 4), style))?;
    }
    let entry = legend_entry(&panel.legend);
    for (place, (label, colour)) in panel.legend.iter().enumerate() {
        let left = 90 + place as i32 * entry;
        area.draw(&Rectangle::new(
            [(left, 26), (left + 12, 38)],
            colour.filled(),
        ))?;
        area.draw(&Text::new(
            label.clone(),
            (left + 18, 27),
            ("sans-serif", 12),
        ))?;
    }
    Ok(())
}

/// The width of each entry of a legend, in pixels: that of a sentence, and less where there are many and all
/// are names.
fn legend_entry(legend: &[(String, RGBColor)]) -> i32 {
    let is_name = |(label, _): &(String, RGBColor)| label.chars().count() <= LONGEST_NAME;
    match legend.len() > 2 && legend.iter().all(is_name) {
        true => 130,
        false => 290,
    }
}

/// The stack's parts as rectangles; a negative part, which noise can give, goes down.
fn bars(stack: &Stack, left: f64, width: f64) -> Vec<Rectangle<(f64, f64)>> {
    let part = |(bottom, top, colour): (f64, f64, RGBColor)| {
        Rectangle::new([(left, bottom), (left + width, top)], colour.filled())
    };
    levels(stack)
        .map(|(bottom, top, colour, _)| part((bottom, top, colour)))
        .collect()
}

/// The parts' 95 % intervals, side by side so that none hides another.
fn intervals(stack: &Stack, left: f64, width: f64) -> Vec<PathElement<(f64, f64)>> {
    let count = stack.len() as f64;
    levels(stack)
        .enumerate()
        .filter_map(|(place, (bottom, _, _, ci95))| {
            let (low, high) = ci95?;
            let x = left + width * (place as f64 + 1.0) / (count + 1.0);
            Some(PathElement::new(
                vec![(x, bottom + low), (x, bottom + high)],
                INTERVAL.stroke_width(1),
            ))
        })
        .collect()
}

/// Bottom, top, colour and interval of each part.
fn levels(stack: &Stack) -> impl Iterator<Item = (f64, f64, RGBColor, Option<(f64, f64)>)> {
    let mut bottom = 0.0;
    stack.iter().map(move |part| {
        let from = bottom;
        bottom += part.value;
        (from, bottom, part.colour, part.ci95)
    })
}

/// The panel's lowest and highest point, with some air above for the legend.
fn range(panel: &Panel) -> (f64, f64) {
    let mut low = 0.0_f64;
    let mut high = 0.0_f64;
    for stack in panel.layers.iter().flatten() {
        for (bottom, top, _, ci95) in levels(stack) {
            let (ci_low, ci_high) = ci95.map_or((top, top), |(ci_low, ci_high)| {
                (bottom + ci_low, bottom + ci_high)
            });
            low = low.min(top).min(ci_low);
            high = high.max(top).max(ci_high);
        }
    }
    // A profile in which nothing takes any time still has an axis.
    (low, if high > low { high * 1.15 } else { low + 1.0 })
}

fn millis(time: SignedNanos) -> f64 {
    time.as_nanos() as f64 / 1e6
}

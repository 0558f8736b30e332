//! Which panels a profile's picture has, and what they say.

use layerlab_profiles::derive::LayerTime;
use layerlab_profiles::document::{Evaluation, Processor, ProcessorKind, Profile};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::time_model::TimeModel;
use layerlab_profiles::{Placement, SignedNanos};
use plotters::prelude::RGBColor;

use super::axis::Unit;
use super::panel::{Marks, Panel, Part, is_any_cut};
use super::{COMPUTE, CPU, ENTER, LEAVE, LOSS, processor_colour};

pub(super) fn panels(profile: &Profile) -> Vec<Panel> {
    let of_kind = |kind| {
        let processors = profile.header.processors.iter();
        processors.filter(move |one| one.kind == kind)
    };
    let accelerators: Vec<&Processor> = of_kind(ProcessorKind::Accelerator).collect();
    let mut panels = Vec::new();
    panels.extend(
        of_kind(ProcessorKind::Cpu)
            .next()
            .map(|_| computing(profile)),
    );
    panels.extend(accelerators.iter().map(|one| moving(profile, one)));
    for evaluation in &profile.evaluations {
        let processors = evaluation.processors(&profile.header);
        for (place, name) in (1..).zip(&processors[1..]) {
            panels.extend(alone(profile, evaluation, place, name));
        }
    }
    panels
}

/// Computing each layer on each processor.
fn computing(profile: &Profile) -> Panel {
    let processors = &profile.header.processors;
    let columns: Vec<Vec<Option<LayerTime>>> = (processors.iter())
        .map(|processor| profile.layer_times(&processor.name))
        .collect();
    let colours: Vec<RGBColor> = (0..processors.len())
        .map(|place| processor_colour(profile, place))
        .collect();
    let point = |layer: usize| {
        let of = |(times, colour): (&Vec<Option<LayerTime>>, &RGBColor)| {
            times[layer].map(|time| part(time.compute, *colour))
        };
        columns.iter().zip(&colours).map(of).collect::<Vec<_>>()
    };
    let points: Vec<Vec<Option<Part>>> = (0..profile.layers.len()).map(point).collect();
    let all: Vec<Part> = points.iter().flatten().flatten().copied().collect();
    let mut notes = vec![format!(
        "Each line of the axis is a multiple of the one below it. {}",
        whiskers(&all, Unit::Time)
    )];
    if all.iter().any(Part::is_unresolved) {
        notes.push("A ring at the foot: it cannot be told from zero; the whisker's end is the most that it may be.".to_owned());
    }
    for (processor, times) in processors.iter().zip(&columns) {
        notes.extend(included(profile, processor, times));
        notes.extend(absent(profile, processor));
    }
    Panel {
        title: "computing each layer".to_owned(),
        legend: names(profile).zip(colours).collect(),
        marks: Marks::Points(points),
        notes,
    }
}

/// Moving in, computing and moving out of each layer by itself on an accelerator.
fn moving(profile: &Profile, processor: &Processor) -> Panel {
    let name = &processor.name;
    let times = profile.layer_times(name);
    let stack = |time: LayerTime| {
        let parts = [
            (time.to_processor, ENTER),
            (Some(time.compute), COMPUTE),
            (time.from_processor, LEAVE),
        ];
        let parts = parts.into_iter();
        parts
            .filter_map(|(time, colour)| Some(part(time?, colour)))
            .collect()
    };
    // Layers that it cannot run have no bar.
    let stacks: Vec<Vec<Part>> = (times.iter())
        .map(|time| time.map_or_else(Vec::new, stack))
        .collect();
    let mut notes = about_stacks(&stacks, Unit::Time);
    if stacks.iter().flatten().any(|part| part.value < 0.0) {
        notes.push("Below zero: layer times are differences of measured times, and one that is too short to be told from zero may come out negative.".to_owned());
    }
    notes.extend(included(profile, processor, &times));
    notes.extend(absent(profile, processor));
    Panel {
        title: format!("{name}: each layer by itself, its data moved in and out"),
        legend: vec![
            (format!("moving to {name}"), ENTER),
            (format!("computing on {name}"), COMPUTE),
            (format!("moving from {name}"), LEAVE),
        ],
        marks: Marks::Stacks(Unit::Time, stacks),
        notes,
    }
}

/// What each layer alone on an accelerator, whose digit is `place`, saves of the model's time and loses of its accuracy.
fn alone(profile: &Profile, evaluation: &Evaluation, place: u8, npu: &str) -> [Panel; 2] {
    let cpu = &evaluation.cpu;
    let (cpu_times, npu_times) = (profile.layer_times(cpu), profile.layer_times(npu));
    let model = TimeModel::new(&cpu_times, &npu_times).ok();
    let time = |combination: &Placement| {
        let predicted = model.as_ref()?.predict(combination).ok()?;
        Some(predicted.total().as_nanos() as f64)
    };
    let layers = profile.layers.len();
    let all_cpu = time(&Placement::all_on(0, layers));
    let saved = |layer: usize| {
        // Of the two processors of the time model.
        let alone = Placement::alone_on(1, layer, layers);
        let saved = all_cpu.zip(time(&alone)).map(|(all, one)| Part {
            value: 100.0 * (all - one) / all,
            ci95: None,
            colour: CPU,
        });
        saved.into_iter().collect::<Vec<_>>()
    };
    let lost = |layer: usize| {
        let alone = Placement::alone_on(place, layer, layers);
        let wanted = (cpu, &evaluation.accelerator, &alone);
        let mut rows = profile.combinations.iter();
        let row = rows.find(|row| (&row.cpu, &row.accelerator, &row.combination) == wanted);
        let lost = row.map(|row| Part {
            value: 100.0 * row.loss,
            ci95: Some((100.0 * row.loss_ci95.0, 100.0 * row.loss_ci95.1)),
            colour: LOSS,
        });
        lost.into_iter().collect::<Vec<_>>()
    };
    let title = format!("each layer alone on {npu}, all others on {cpu}");
    let panel = |what: &str, colour, stacks: Vec<Vec<Part>>, below: &str| {
        let mut notes = about_stacks(&stacks, Unit::Percent);
        if stacks.iter().flatten().any(|part| part.value < 0.0) {
            notes.push(below.to_owned());
        }
        Panel {
            title: title.clone(),
            legend: vec![(what.to_owned(), colour)],
            marks: Marks::Stacks(Unit::Percent, stacks),
            notes,
        }
    };
    [
        panel(
            "time saved, of the whole model's",
            CPU,
            (0..layers).map(saved).collect(),
            "Below zero: moving its data takes longer than computing it there saves.",
        ),
        panel(
            "accuracy lost, percentage points",
            LOSS,
            (0..layers).map(lost).collect(),
            "Below zero: more answers were right than with all layers on the CPU.",
        ),
    ]
}

fn part(estimate: Estimate, colour: RGBColor) -> Part {
    let nanos = |time: SignedNanos| time.as_nanos() as f64;
    Part {
        value: nanos(estimate.value),
        ci95: estimate.ci95.map(|(low, high)| (nanos(low), nanos(high))),
        colour,
    }
}

fn names(profile: &Profile) -> impl Iterator<Item = String> {
    let processors = profile.header.processors.iter();
    processors.map(|processor| processor.name.clone())
}

/// What whiskers are and how long they are at most, which a reader cannot see where they are short.
fn whiskers(parts: &[Part], unit: Unit) -> String {
    let halves = parts.iter().filter_map(|part| part.ci95);
    let longest = halves
        .map(|(low, high)| (high - low) / 2.0)
        .fold(None, |most: Option<f64>, half| {
            Some(most.map_or(half, |most| most.max(half)))
        });
    match (longest, unit) {
        (None, _) => "Too few samples for intervals.".to_owned(),
        (Some(half), Unit::Time) => {
            let half = SignedNanos::from_nanos(half.round() as i64);
            // A number and its unit stay on one line.
            let half = half.to_string().replace(' ', "\u{a0}");
            format!("Whiskers are 95 % intervals, at most ±\u{a0}{half}.")
        }
        (Some(half), _) => format!("Whiskers are 95 % intervals, at most ±\u{a0}{half:.1}."),
    }
}

fn about_stacks(stacks: &[Vec<Part>], unit: Unit) -> Vec<String> {
    let all: Vec<Part> = stacks.iter().flatten().copied().collect();
    let mut notes = Vec::new();
    if all.iter().any(|part| part.ci95.is_some()) {
        notes.push(whiskers(&all, unit));
    }
    if is_any_cut(stacks, unit) {
        notes.push("A bar with a gap goes on; its whole height is written above it.".to_owned());
    }
    notes
}

/// Which transfers are part of compute times.
fn included(
    profile: &Profile,
    processor: &Processor,
    times: &[Option<LayerTime>],
) -> Option<String> {
    let of = |is: fn(&LayerTime) -> bool| {
        let layers = profile.layers.iter().zip(times);
        let those = layers.filter(|(_, time)| time.as_ref().is_some_and(is));
        let names: Vec<&str> = those.map(|(layer, _)| layer.name.as_str()).collect();
        names.join(", ")
    };
    let entering = of(|time| time.compute_includes.to_processor);
    let leaving = of(|time| time.compute_includes.from_processor);
    let name = &processor.name;
    let mut parts = Vec::new();
    if !entering.is_empty() {
        parts.push(format!("that of {entering} contains moving in"));
    }
    if !leaving.is_empty() {
        parts.push(format!("that of {leaving} contains moving out"));
    }
    (!parts.is_empty()).then(|| {
        format!(
            "Not all times of {name} could be told apart: in computing, {}.",
            parts.join(", and ")
        )
    })
}

fn absent(profile: &Profile, processor: &Processor) -> Option<String> {
    let name = &processor.name;
    let layers = profile.layers.iter();
    let those: Vec<&str> = layers
        .filter(|layer| profile.why_unsupported(name, layer.number).is_some())
        .map(|layer| layer.name.as_str())
        .collect();
    (!those.is_empty()).then(|| format!("{name} cannot run {}.", those.join(", ")))
}

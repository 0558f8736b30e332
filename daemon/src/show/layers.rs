//! What each layer costs on each processor, as a table; on a narrow terminal, a table for each processor.

use layerlab_lab::text_table::table;
use layerlab_profiles::Layer;
use layerlab_profiles::document::{LayerTimeRow, Processor, ProcessorKind, Profile};
use layerlab_profiles::summary::Estimate;

use super::estimate;

/// What stands in the place of a transfer that the compute time contains.
const IN_COMPUTE: &str = "in compute";

/// The model's own tensors that a layer takes and gives beside the cuts.
const MODEL_INPUT: &str = "model input";
const MODEL_OUTPUT: &str = "model output";

/// The longest name of a layer where columns are few.
const SHORT_NAME: usize = 20;

/// A column: its head, and a cell for each layer.
struct Column {
    head: String,
    cells: Vec<String>,
    is_number: bool,
}

/// The tables for so many columns of text, and what in them needs an explanation.
pub(super) fn tables(profile: &Profile, columns: Option<usize>) -> Vec<String> {
    let layers = layer_columns(profile, None);
    let of_processors: Vec<Vec<Column>> = (profile.header.processors.iter())
        .map(|processor| processor_columns(profile, processor))
        .collect();
    let all: Vec<&Column> = layers
        .iter()
        .chain(of_processors.iter().flatten())
        .collect();
    let notes = notes(&all);
    let whole = drawn(&all);
    let fits = |text: &str| columns.is_none_or(|columns| width(text) <= columns);
    if fits(&whole) {
        return [vec![whole], notes].concat();
    }
    let layers = layer_columns(profile, Some(SHORT_NAME));
    let part = |(place, of_processor): (usize, &Vec<Column>)| {
        // Sizes are said once.
        let layers = &layers[..if place == 0 { layers.len() } else { 2 }];
        drawn(&layers.iter().chain(of_processor).collect::<Vec<_>>())
    };
    let mut parts: Vec<String> = of_processors.iter().enumerate().map(part).collect();
    parts.extend(notes);
    parts.push("All columns side by side: layerlab show --wide FOLDER | less -S".to_owned());
    parts
}

/// What is said of each layer itself; its name in at most so many letters.
fn layer_columns(profile: &Profile, longest: Option<usize>) -> Vec<Column> {
    let column = |head: &str, is_number, cell: &dyn Fn(&Layer) -> String| Column {
        head: head.to_owned(),
        cells: profile.layers.iter().map(cell).collect(),
        is_number,
    };
    let name = |layer: &Layer| match longest {
        Some(longest) if layer.name.chars().count() > longest => {
            let begin: String = layer.name.chars().take(longest - 1).collect();
            format!("{begin}…")
        }
        _ => layer.name.clone(),
    };
    let mut columns = vec![
        column("layer", true, &|layer| layer.number.to_string()),
        column("name", false, &name),
        column("output", true, &|layer| layer.output_bytes.to_string()),
    ];
    if profile.layers.iter().any(Layer::has_tensors_beside_cuts) {
        columns.extend([
            column(MODEL_INPUT, true, &|layer| {
                layer.model_input_bytes.to_string()
            }),
            column(MODEL_OUTPUT, true, &|layer| {
                layer.model_output_bytes.to_string()
            }),
        ]);
    }
    columns
}

fn processor_columns(profile: &Profile, processor: &Processor) -> Vec<Column> {
    let name = &processor.name;
    let column = |head: String, cell: &dyn Fn(&LayerTimeRow) -> String, absent: bool| Column {
        head,
        cells: (profile.layers.iter())
            .map(|layer| {
                let mut times = profile.times.iter();
                let row = times.find(|row| &row.processor == name && row.layer == layer.number);
                match row {
                    Some(row) => cell(row),
                    None if absent && profile.why_unsupported(name, layer.number).is_some() => {
                        "unsupported".to_owned()
                    }
                    None => String::new(),
                }
            })
            .collect(),
        is_number: true,
    };
    let compute = column(
        format!("{name} compute"),
        &|row| estimate(&row.time.compute),
        true,
    );
    if processor.kind == ProcessorKind::Cpu {
        return vec![compute];
    }
    let to = |row: &LayerTimeRow| {
        transfer(
            row.time.to_processor,
            row.time.compute_includes.to_processor,
        )
    };
    let from = |row: &LayerTimeRow| {
        transfer(
            row.time.from_processor,
            row.time.compute_includes.from_processor,
        )
    };
    vec![
        column(format!("to {name}"), &to, false),
        compute,
        column(format!("from {name}"), &from, false),
    ]
}

fn transfer(time: Option<Estimate>, merged: bool) -> String {
    match time {
        Some(time) => estimate(&time),
        None if merged => IN_COMPUTE.to_owned(),
        None => String::new(),
    }
}

fn drawn(columns: &[&Column]) -> String {
    let heads: Vec<&str> = columns.iter().map(|column| column.head.as_str()).collect();
    let numbers = columns.iter().enumerate();
    let right: Vec<usize> = numbers
        .filter(|(_, column)| column.is_number)
        .map(|(place, _)| place)
        .collect();
    let rows = columns.first().map_or(0, |first| first.cells.len());
    let row = |row: usize| {
        columns
            .iter()
            .map(|column| column.cells[row].clone())
            .collect()
    };
    table(&heads, &right, (0..rows).map(row))
}

fn width(text: &str) -> usize {
    text.lines()
        .map(console::measure_text_width)
        .max()
        .unwrap_or(0)
}

/// What stands in the table that not everybody knows.
fn notes(columns: &[&Column]) -> Vec<String> {
    let is_any = |is: fn(&String) -> bool| columns.iter().any(|column| column.cells.iter().any(is));
    let mut notes = Vec::new();
    if is_any(|cell| cell == IN_COMPUTE) {
        notes.push("in compute: this moving cannot be told from computing, and is part of it.");
    }
    if is_any(|cell| cell.starts_with("? ")) {
        notes.push("?: too short to be told from zero; noise may make it negative.");
    }
    match notes.is_empty() {
        true => Vec::new(),
        false => vec![notes.join("\n")],
    }
}

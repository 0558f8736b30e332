//! `layerlab video calibrate`: calibrations of a model's confidence, compared on answers that none of them has seen.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use layerlab_campaign::publish::Staging;
use layerlab_lab::text_table::table;
use layerlab_planners::video::calibration::{
    CALIBRATION_FORMAT, CALIBRATION_VERSION, CalibrationDocument, CalibrationTrial,
    ChosenCalibration, FEWEST_POSITIVES, choose,
};
use layerlab_planners::video::measured::halves;

use super::check;
use super::measure::mark;
use crate::campaign::publish_failure;
use crate::exit::{Code, ExitWith, Failure};
use crate::output;
use crate::sweep_plot::reliability;

#[derive(clap::Args)]
pub(crate) struct CalibrateArgs {
    /// The folder that `layerlab video measure` published
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Where to publish: a folder that is not there yet
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Replace a folder that is already there
    #[arg(long)]
    replace: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The calibrator, and what it was fitted on.
pub(super) const CALIBRATION_JSON: &str = "calibration.json";

/// Reads what `layerlab video calibrate` published.
pub(super) fn read_calibration(folder: &Path) -> Result<CalibrationDocument, Failure> {
    let path = folder.join(CALIBRATION_JSON);
    let shown = path.display();
    let bytes = std::fs::read(&path).map_err(|error| anyhow!("cannot read {shown}: {error}"));
    let bytes = bytes.exit_with(Code::Input)?;
    let wrong = |error| Failure::new(Code::Input, error);
    let kind: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| wrong(anyhow!("{shown} is no JSON: {error}")))?;
    if kind.get("format").and_then(|it| it.as_str()) != Some(CALIBRATION_FORMAT) {
        return Err(wrong(anyhow!("{shown} is no calibration of layerlab's")));
    }
    if kind.get("version") != Some(&CALIBRATION_VERSION.into()) {
        return Err(wrong(anyhow!(
            "{shown} has another version than this layerlab knows; update layerlab, or calibrate again"
        )));
    }
    let document: CalibrationDocument = serde_json::from_value(kind)
        .map_err(|error| wrong(anyhow!("{shown} is not as docs/video.md says: {error}")))?;
    match document.best() {
        Some(_) => Ok(document),
        None => Err(wrong(anyhow!(
            "{shown} chooses a calibration that it does not have; calibrate again"
        ))),
    }
}

/// The bins of all trials' reliability diagrams.
const BINS_CSV: &str = "reliability.csv";

/// The reliability diagrams.
const PLOT: &str = "reliability.svg";

pub(super) fn run(args: &CalibrateArgs) -> Result<(), Failure> {
    let video = check::read(&args.folder)?;
    let staging = Staging::prepare(&args.out, args.replace).map_err(publish_failure)?;
    let (train, held_out) = halves(&video).exit_with(Code::Input)?;
    let chosen = choose(&train, &held_out).exit_with(Code::Input)?;
    let document = CalibrationDocument::new(&video, &chosen, (&train, &held_out));
    let json = serde_json::to_vec_pretty(&document).exit_with(Code::Internal)?;
    let title = format!(
        "Confidence of {} on {}{}",
        video.header.model.name,
        video.header.answered_by(),
        mark(&video)
    );
    let svg = reliability::svg(&title, chosen.trials())
        .map_err(|error| Failure::new(Code::Internal, anyhow!(error)))?;
    let files = [
        (CALIBRATION_JSON, json),
        (BINS_CSV, bins(&chosen).exit_with(Code::Internal)?),
        (PLOT, svg.into_bytes()),
    ];
    staging.publish_files(&files).map_err(publish_failure)?;
    if args.json {
        return output::print_json(&document);
    }
    let cells = chosen
        .trials()
        .iter()
        .map(|trial| cells(trial, chosen.best()));
    let heads = ["calibration", "ECE", "MCE", "right", "answers changed", ""];
    output::print(format_args!(
        "{title}\n{} answers to learn from, {} to judge by\n{}",
        train.count(),
        held_out.count(),
        table(&heads, &[1, 2, 3, 4], cells)
    ))?;
    let best = chosen.best();
    let changed = match best.changed_answers > 0.0 {
        true => format!(
            "It changes {:.1} % of the answers: their largest calibrated score is of another class.",
            100.0 * best.changed_answers
        ),
        false => "It changes no answer.".to_owned(),
    };
    output::print(format_args!(
        "Chosen by the least ECE on held-out answers: {}. {changed}\n{}Published in {}",
        best.name(),
        rare(&document, &video.header.set.classes),
        args.out.display()
    ))
}

/// The classes that one-vs-rest has too few images of, as a line; nothing where there are none.
fn rare(document: &CalibrationDocument, classes: &[String]) -> String {
    let pooled = document.trials.iter().map(|trial| &trial.pooled_classes);
    let pooled = pooled.max_by_key(|pooled| pooled.len());
    let names = pooled.into_iter().flatten();
    let names: Vec<&str> = names
        .filter_map(|&class| classes.get(class).map(String::as_str))
        .collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(
            "Shown in fewer than {FEWEST_POSITIVES} of the images to learn from, so that one-vs-rest has one model for them together: {}\n",
            names.join(", ")
        ),
    }
}

fn cells(trial: &CalibrationTrial, best: &CalibrationTrial) -> Vec<String> {
    vec![
        trial.name().to_owned(),
        format!("{:.4}", trial.reliability.expected_error()),
        format!("{:.4}", trial.reliability.maximum_error()),
        format!("{:.4}", trial.accuracy),
        format!("{:.1} %", 100.0 * trial.changed_answers),
        match std::ptr::eq(trial, best) {
            true => "chosen".to_owned(),
            false => String::new(),
        },
    ]
}

/// One row for each bin of each trial.
fn bins(chosen: &ChosenCalibration) -> anyhow::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "calibration",
        "confidence_from",
        "confidence_to",
        "answers",
        "right",
        "mean_confidence",
        "accuracy",
    ])?;
    for trial in chosen.trials() {
        for (place, bin) in trial.reliability.bins().iter().enumerate() {
            let mean = |sum: f64| match bin.count {
                0 => String::new(),
                count => (sum / count as f64).to_string(),
            };
            writer.write_record([
                trial.name().to_owned(),
                format!("{:.1}", place as f64 / 10.0),
                format!("{:.1}", (place + 1) as f64 / 10.0),
                bin.count.to_string(),
                bin.right.to_string(),
                mean(bin.confidence_sum),
                mean(bin.right as f64),
            ])?;
        }
    }
    Ok(writer.into_inner()?)
}

//! `layerlab video measure`: a model's answers to frames on one processor of a device.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use layerlab_campaign::publish::Staging;
use layerlab_campaign::{
    MeasureVideoError, SIDES, SetFile, VideoPlace, VideoSettings, forms, input_size, measure_video,
};
use layerlab_farm::adb::Printable;
use layerlab_lab::text_table::table;
use layerlab_model::Network;
use layerlab_profiles::Segment;
use layerlab_profiles::accuracy::Metric;
use layerlab_profiles::document::{Processor, ProcessorKind};
use layerlab_profiles::video::{VideoDocument, VideoPart};
use serde_json::json;

use crate::adb::{self, AdbArgs, PhoneArgs};
use crate::campaign::{agent_program, campaign_failure, publish_failure};
use crate::evaluate::hello;
use crate::exit::{Code, ExitWith, Failure};
use crate::model_options::{DimArgs, open_with_twin};
use crate::output;
use crate::progress::Bars;

#[derive(clap::Args)]
pub(crate) struct MeasureArgs {
    /// The ONNX model
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// The device: a name that `layerlab devices` lists, or a simulated device's file. A server is measured on the server, as
    /// its `host`
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// The processor that answers [default: the device's first accelerator, without one its first CPU]
    #[arg(long, value_name = "NAME")]
    processor: Option<String>,
    /// Which layers run on which processor, such as 1-4:cpu,5-11:npu, in the place of all on one; layers are as `layerlab model`
    /// numbers them
    #[arg(long, value_name = "PARTS", value_delimiter = ',', value_parser = part, conflicts_with = "processor")]
    placement: Vec<VideoPart>,
    /// The model's quantised twin, which 8-bit processors of ONNX Runtime run; `layerlab quantise` makes one
    #[arg(long, value_name = "FILE")]
    quantised: Option<PathBuf>,
    /// The evaluation set, as `layerlab set` makes it: its images are the frames as the camera delivers them, of whatever
    /// --size it was made with
    #[arg(long, value_name = "FILE")]
    set: PathBuf,
    /// How many of the set's images to answer: half of them to calibrate by, half to judge that by [default: all]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(2..))]
    answers: Option<u64>,
    /// How many of them, at most, to answer in all resolutions and encodings, those that judge first
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    frames: u64,
    /// What images and halves are drawn from; give the same for phone and server
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to publish: a folder that is not there yet
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Replace a folder that is already there
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    phone: PhoneArgs,
    #[command(flatten)]
    dims: DimArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    args: &MeasureArgs,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    let model = open_with_twin(&args.model, args.quantised.as_deref(), &args.dims.map())?;
    let set = SetFile::open(&args.set).exit_with(Code::Input)?;
    let size = set.set.picture_size().exit_with(Code::Input)?;
    let network = &model.network;
    let input = input_size(network).ok_or_else(|| {
        let error = anyhow!(
            "{} takes no images: its input is not 1 x channels x height x width",
            network.name()
        );
        Failure::new(Code::Input, error)
    })?;
    refuse_other_answers(&set, network)?;
    refuse_unless_whole(&args.placement, network)?;
    let staging = Staging::prepare(&args.out, args.replace).map_err(publish_failure)?;
    let link = adb::open(&args.device, agent_program(agent)?, adb, &args.phone).await?;
    let there = hello(&link).await?.processors;
    let place = placed(args, &there)?;
    let forms = forms(size, input);
    let too_large: Vec<String> = SIDES
        .iter()
        .filter(|side| **side > size.0.min(size.1))
        .map(ToString::to_string)
        .collect();
    if !too_large.is_empty() {
        output::note(format_args!(
            "layerlab: the set's images are {}x{}, so that frames of {} pixels are left out; make a set of larger images with \
             `layerlab set --size`",
            size.0,
            size.1,
            too_large.join(", ")
        ));
    }
    let settings = VideoSettings {
        answers: args.answers.unwrap_or(u64::MAX),
        frames: args.frames,
        seed: args.seed,
    };
    let title = format!(
        "frames for {} on {}",
        network.name(),
        Printable(&args.device)
    );
    let mut bar = Bars::new().add(title);
    let measured = measure_video(&link, &model, &set, &place, &forms, &settings, &mut bar);
    let video = measured.await.map_err(|error| match error {
        MeasureVideoError::Campaign(error) => campaign_failure(error),
        error => Failure::new(Code::Input, error),
    })?;
    drop(bar);
    let findings = staging.publish_video(&video).map_err(publish_failure)?;
    for finding in &findings {
        output::note(finding);
    }
    match args.json {
        true => output::print_json(&summary(&video, &args.out)),
        false => output::print(text(&video, &args.out)),
    }
}

/// Whether the set asks for classes, and the model answers with a score for each.
fn refuse_other_answers(set: &SetFile, network: &Network) -> Result<(), Failure> {
    let wrong = |error| Err(Failure::new(Code::Input, error));
    let (name, classes) = (&set.set.name, set.set.classes.len() as u64);
    if set.set.answers() < 2 {
        return wrong(anyhow!(
            "`{name}` has one image, and one half of the images judges what was learnt from the other; make a larger set"
        ));
    }
    if !matches!(
        set.set.metric,
        Metric::TopK { .. } | Metric::MultiLabel { .. }
    ) {
        return wrong(anyhow!(
            "a confidence is that of a class, and the metric of `{name}` asks for none; make a set with --metric top-1 or \
             multi-label"
        ));
    }
    let outputs = network.frontier(network.layer_count()).iter();
    let scores: u64 = outputs.map(layerlab_model::TensorSpec::elements).sum();
    if scores != classes {
        return wrong(anyhow!(
            "{} answers with {scores} scores, and `{name}` has {classes} classes; name the classes of the model with \
             `layerlab set --classes`",
            network.name()
        ));
    }
    Ok(())
}

/// A part of a placement as users write it.
fn part(text: &str) -> Result<VideoPart, String> {
    let read = || {
        let (layers, processor) = text.split_once(':')?;
        let (first, last) = layers.split_once('-').unwrap_or((layers, layers));
        let segment = Segment::new(first.parse().ok()?, last.parse().ok()?).ok()?;
        (!processor.is_empty()).then(|| VideoPart {
            segment,
            processor: processor.to_owned(),
        })
    };
    read().ok_or_else(|| {
        "write the layers and the processor of each part, such as 1-4:cpu,5-11:npu".to_owned()
    })
}

/// Refuses a placement that leaves layers out.
fn refuse_unless_whole(parts: &[VideoPart], network: &Network) -> Result<(), Failure> {
    let layers = network.layer_count();
    let mut next = 1;
    for part in parts {
        if part.segment.first() != next {
            break;
        }
        next = part.segment.last() + 1;
    }
    match parts.is_empty() || next == layers + 1 {
        true => Ok(()),
        false => Err(Failure::new(
            Code::Usage,
            anyhow!(
                "--placement must name layers 1 to {layers} of {}, one part after the other",
                network.name()
            ),
        )),
    }
}

/// Where the layers run, on a device with these processors.
fn placed(args: &MeasureArgs, there: &[Processor]) -> Result<VideoPlace, Failure> {
    let parts = args.placement.iter();
    let of_parts: Result<Vec<&Processor>, Failure> = parts
        .map(|part| chosen(there, Some(&part.processor)))
        .collect();
    let of_parts = of_parts?;
    let accelerator = of_parts
        .iter()
        .find(|one| one.kind == ProcessorKind::Accelerator);
    let processor = match accelerator.or(of_parts.first()) {
        Some(processor) => processor,
        None => chosen(there, args.processor.as_deref())?,
    };
    Ok(VideoPlace {
        processor: processor.clone(),
        parts: args.placement.clone(),
    })
}

/// The processor of this name, or the one that a phone would answer frames on.
fn chosen<'a>(there: &'a [Processor], name: Option<&str>) -> Result<&'a Processor, Failure> {
    let of_kind = |kind| there.iter().find(move |one| one.kind == kind);
    let found = match name {
        Some(name) => there.iter().find(|one| one.name == name),
        None => of_kind(ProcessorKind::Accelerator).or_else(|| of_kind(ProcessorKind::Cpu)),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = there.iter().map(|one| one.name.as_str()).collect();
        let error = anyhow!(
            "the device has no processor `{}`, but {}",
            name.unwrap_or_default(),
            names.join(", ")
        );
        Failure::new(Code::Input, error)
    })
}

/// What is simulated of it, for a title.
pub(super) fn mark(video: &VideoDocument) -> &'static str {
    layerlab_campaign::plot::title_mark(
        video.header.device.simulated,
        video.header.processor.emulated,
    )
}

fn text(video: &VideoDocument, folder: &Path) -> String {
    let header = &video.header;
    let rows = video.times.iter().zip(&video.accuracies);
    let cells = rows.map(|(times, accuracy)| {
        vec![
            format!("{}x{}", times.form.width, times.form.height),
            times.form.encoding(),
            times.bytes.to_string(),
            times.prepare.to_string(),
            times.serve.to_string(),
            format!("{:.3}", accuracy.score),
            format!("{:.3} to {:.3}", accuracy.ci95.0, accuracy.ci95.1),
        ]
    });
    let heads = [
        "size",
        "encoding",
        "bytes",
        "to send",
        "to answer",
        "right",
        "95 % interval",
    ];
    format!(
        "{} on {} of {}{}\n{}\nPublished in {}",
        header.model.name,
        header.answered_by(),
        Printable(&header.device.name),
        mark(video),
        table(&heads, &[2, 3, 4, 5], cells),
        folder.display()
    )
}

fn summary(video: &VideoDocument, folder: &Path) -> serde_json::Value {
    let header = &video.header;
    let rows = video.times.iter().zip(&video.accuracies);
    let rows: Vec<serde_json::Value> = rows
        .map(|(times, accuracy)| {
            json!({
                "width": times.form.width,
                "height": times.form.height,
                "encoding": times.form.encoding(),
                "bytes_median": times.bytes,
                "prepare_median_ns": times.prepare,
                "serve_median_ns": times.serve,
                "answers": accuracy.answers,
                "score": accuracy.score,
                "score_ci95": [accuracy.ci95.0, accuracy.ci95.1],
            })
        })
        .collect();
    json!({
        "model": header.model.name,
        "device": header.device.name,
        "processor": header.processor.name,
        "answered_by": header.answered_by(),
        "simulated": header.device.simulated,
        "emulated": header.processor.emulated,
        "answers": video.answers.len(),
        "frames": video.frames.len(),
        "forms": rows,
        "folder": folder,
    })
}

//! `layerlab video measure`: a model's answers to frames on one processor of a device.

use std::path::{Path, PathBuf};

use layerlab_campaign::publish::Staging;
use layerlab_campaign::{SetFile, VideoCampaign, VideoSettings};
use layerlab_farm::adb::Printable;
use layerlab_lab::text_table::table;
use layerlab_profiles::Segment;
use layerlab_profiles::video::{VideoDocument, VideoPart};
use serde_json::json;

use crate::adb::{self, AdbArgs, PhoneArgs};
use crate::campaign::{agent_program, campaign_failure, publish_failure};
use crate::evaluate::hello;
use crate::exit::{Code, ExitWith, Failure};
use crate::model_options::{DimArgs, open_with_twin};
use crate::output;
use crate::progress::{Bars, CampaignBars};

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
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(VideoSettings::FEWEST_ANSWERS..))]
    answers: Option<u64>,
    /// How many of them, at most, to answer in all resolutions and encodings, those that judge first
    #[arg(long, value_name = "COUNT", default_value_t = VideoSettings::FRAMES)]
    frames: u64,
    /// What images and halves are drawn from; give the same for phone and server
    #[arg(long, default_value_t = VideoSettings::SEED)]
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
    let settings = VideoSettings {
        processor: args.processor.clone(),
        parts: args.placement.clone(),
        answers: args.answers,
        frames: args.frames,
        seed: args.seed,
    };
    let campaign = VideoCampaign {
        model: &model,
        set: &set,
        settings: &settings,
    };
    let sizes = campaign.sizes().exit_with(Code::Input)?;
    let staging = Staging::prepare(&args.out, args.replace).map_err(publish_failure)?;
    let link = adb::open(&args.device, agent_program(agent)?, adb, &args.phone).await?;
    let there = hello(&link).await?.processors;
    campaign.processor(&there).exit_with(Code::Input)?;
    if let Some(left_out) = sizes.left_out() {
        output::note(format_args!("layerlab: {left_out}"));
    }
    let bars = Bars::new();
    let mut follower = CampaignBars::new(&bars, model.network.name(), &args.device);
    let video = campaign.run(&link, &mut follower).await;
    let video = video.map_err(campaign_failure)?;
    let findings = staging.publish_video(&video).map_err(publish_failure)?;
    for finding in &findings {
        output::note(finding);
    }
    match args.json {
        true => output::print_json(&summary(&video, &args.out)),
        false => output::print(text(&video, &args.out)),
    }
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

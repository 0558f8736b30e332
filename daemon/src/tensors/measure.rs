//! `layerlab tensors measure`: the tensors that cross a model's cuts, compressed on one device.

use std::path::{Path, PathBuf};

use layerlab_campaign::publish::Staging;
use layerlab_campaign::{SetFile, TensorsCampaign, TensorsSettings};
use layerlab_farm::adb::Printable;
use layerlab_lab::text_table::table;
use layerlab_profiles::Nanos;
use layerlab_profiles::tensors::{TensorCodec, TensorsDocument, Timed};
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
    /// The processor that runs the layers [default: the device's first CPU]; tensors are always compressed on a CPU
    #[arg(long, value_name = "NAME")]
    processor: Option<String>,
    /// The model's quantised twin, which 8-bit processors of ONNX Runtime run; `layerlab quantise` makes one
    #[arg(long, value_name = "FILE")]
    quantised: Option<PathBuf>,
    /// The evaluation set, as `layerlab set` makes it
    #[arg(long, value_name = "FILE")]
    set: PathBuf,
    /// How many of the set's pictures to answer [default: 100, or all of a smaller set]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pictures: Option<u64>,
    /// What tensors are packed by, separated by commas [default: all]: u8, u8-png, u8-zstd and u8-lz4 round numbers to 8 bits,
    /// f32-zstd and f32-lz4 keep them
    #[arg(long, value_name = "CODECS", value_delimiter = ',')]
    codecs: Vec<TensorCodec>,
    /// Leave the accuracy out, for a network that does not answer with the classes of the set
    #[arg(long)]
    sizes_only: bool,
    /// What pictures are drawn by; give the same for phone and server
    #[arg(long, default_value_t = TensorsSettings::SEED)]
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

impl MeasureArgs {
    /// Those that were named, each once, in the order of the tables.
    fn codecs(&self) -> Vec<TensorCodec> {
        let is_named = |it: &TensorCodec| self.codecs.is_empty() || self.codecs.contains(it);
        TensorCodec::ALL.into_iter().filter(is_named).collect()
    }
}

pub(super) async fn run(
    args: &MeasureArgs,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    let model = open_with_twin(&args.model, args.quantised.as_deref(), &args.dims.map())?;
    let set = SetFile::open(&args.set).exit_with(Code::Input)?;
    let settings = TensorsSettings {
        processor: args.processor.clone(),
        codecs: args.codecs(),
        pictures: args.pictures,
        judge: !args.sizes_only,
        seed: args.seed,
    };
    let campaign = TensorsCampaign {
        model: &model,
        set: &set,
        settings: &settings,
    };
    campaign.refuse_unfit().exit_with(Code::Input)?;
    let staging = Staging::prepare(&args.out, args.replace).map_err(publish_failure)?;
    let link = adb::open(&args.device, agent_program(agent)?, adb, &args.phone).await?;
    let there = hello(&link).await?.processors;
    campaign.processor(&there).exit_with(Code::Input)?;
    let bars = Bars::new();
    let mut follower = CampaignBars::new(&bars, model.network.name(), &args.device);
    let tensors = campaign.run(&link, &mut follower).await;
    let tensors = tensors.map_err(campaign_failure)?;
    let findings = staging.publish_tensors(&tensors);
    for finding in &findings.map_err(publish_failure)? {
        output::note(finding);
    }
    match args.json {
        true => output::print_json(&summary(&tensors, &args.out)),
        false => output::print(text(&tensors, &args.out)),
    }
}

fn text(tensors: &TensorsDocument, folder: &Path) -> String {
    let header = &tensors.header;
    let time =
        |time: Option<(Nanos, _)>| time.map_or("-".to_owned(), |(median, _)| median.to_string());
    let rows = tensors.tensors.iter().map(|row| {
        vec![
            row.tensor.producer_layer.to_string(),
            Printable(&row.tensor.tensor).to_string(),
            row.tensor.bytes.to_string(),
            row.codec.to_string(),
            row.bytes.to_string(),
            format!("{:.2}", row.ratio_to_8_bits),
            format!("{:.1} %", 100.0 * row.zero_share),
            time(row.compress),
            time(row.decompress),
        ]
    });
    let heads = [
        "layer",
        "tensor",
        "bytes",
        "codec",
        "packed",
        "to 8 bits",
        "zeros",
        "to pack",
        "to unpack",
    ];
    let mut text = format!(
        "{} on {} of {}{}, {} pictures\n{}\n",
        header.model.name,
        header.processor.name,
        Printable(&header.device.name),
        layerlab_campaign::plot::title_mark(header.device.simulated, header.processor.emulated),
        header.pictures,
        table(&heads, &[0, 2, 4, 5, 6, 7, 8], rows),
    );
    if header.timed == Timed::No {
        text += "Nothing was timed: the machine that plays a simulated device is another one.\n";
    }
    if header.judged {
        let rows = tensors.crossings.iter().map(|row| {
            vec![
                row.cut.to_string(),
                row.pictures.to_string(),
                row.changed.to_string(),
                format!("{:.4}", row.scores.1),
                format!("{:.4}", row.scores.0),
                format!("{:+.4}", row.loss.value),
                format!("{:+.4} to {:+.4}", row.loss.ci95.0, row.loss.ci95.1),
            ]
        });
        let heads = [
            "cut",
            "pictures",
            "changed",
            "in 32 bits",
            "in 8 bits",
            "loss",
            "95 % interval",
        ];
        text += &format!("{}\n", table(&heads, &[0, 1, 2, 3, 4, 5], rows));
    }
    text + &format!("Published in {}", folder.display())
}

fn summary(tensors: &TensorsDocument, folder: &Path) -> serde_json::Value {
    let header = &tensors.header;
    let rows = tensors.tensors.iter().map(|row| {
        json!({
            "tensor": row.tensor.tensor,
            "producer_layer": row.tensor.producer_layer,
            "bytes": row.tensor.bytes,
            "codec": row.codec,
            "compressed_bytes": row.bytes,
            "ratio_to_8_bits": row.ratio_to_8_bits,
            "zero_share": row.zero_share,
            "zero_code_share": row.zero_code_share,
            "compress_ns": row.compress.map(|(median, _)| median),
            "decompress_ns": row.decompress.map(|(median, _)| median),
        })
    });
    let crossings = tensors.crossings.iter().map(|row| {
        json!({
            "cut": row.cut,
            "tensors": row.tensors,
            "pictures": row.pictures,
            "changed_answers": row.changed,
            "score": row.scores.0,
            "score_32_bits": row.scores.1,
            "loss": row.loss.value,
            "loss_ci95": [row.loss.ci95.0, row.loss.ci95.1],
        })
    });
    json!({
        "model": header.model.name,
        "device": header.device.name,
        "processor": header.processor.name,
        "simulated": header.device.simulated,
        "emulated": header.processor.emulated,
        "timed": header.timed,
        "pictures": header.pictures,
        "tensors": rows.collect::<Vec<_>>(),
        "crossings": crossings.collect::<Vec<_>>(),
        "folder": folder,
    })
}

//! `layerlab model support`: which layers of a model each processor of a device can run, and why not the others.

use std::path::PathBuf;

use layerlab_profiles::Layer;
use layerlab_profiles::document::{Processor, Unsupported};
use serde::Serialize;

use super::adb::{self, AdbArgs, PhoneArgs};
use super::campaign::{agent_program, campaign_failure};
use super::exit::Failure;
use super::model_options::{DimArgs, open_with_twin};
use super::output;
use layerlab_campaign::find_unsupported;
use layerlab_farm::Link;
use layerlab_lab::text_table::table;

#[derive(clap::Args)]
pub(super) struct SupportArgs {
    /// The ONNX model
    #[arg(value_name = "FILE")]
    model: PathBuf,
    /// The device: a name that `layerlab devices` lists, or a simulated device's file
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// The model's quantised twin, for processors that compute in 8 bits
    #[arg(long, value_name = "FILE")]
    quantised: Option<PathBuf>,
    #[command(flatten)]
    phone: PhoneArgs,
    #[command(flatten)]
    dims: DimArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was found, for scripts.
#[derive(Serialize)]
struct SupportView<'a> {
    model: &'a str,
    device: &'a str,
    simulated: bool,
    emulated: bool,
    processors: &'a [Processor],
    layers: Vec<LayerView<'a>>,
}

/// A layer, and where it can run.
#[derive(Serialize)]
struct LayerView<'a> {
    layer: u32,
    name: &'a str,
    operators: &'a [String],
    /// In the order of `processors`.
    on: Vec<AnswerView<'a>>,
}

/// Whether a processor runs a layer.
#[derive(Serialize)]
struct AnswerView<'a> {
    processor: &'a str,
    runs: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

pub(super) async fn run(
    args: &SupportArgs,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    let model = open_with_twin(&args.model, args.quantised.as_deref(), &args.dims.map())?;
    let link = adb::open(&args.device, agent_program(agent)?, adb, &args.phone).await?;
    let connection = link.connect().await;
    let hello = connection
        .map_err(|error| campaign_failure(error.into()))?
        .hello;
    let processors = hello.processors;
    let names: Vec<String> = processors.iter().map(|one| one.name.clone()).collect();
    let found = find_unsupported(&link, &model, &names).await;
    let unsupported = found.map_err(|error| campaign_failure(error.into()))?;
    let support = Support {
        layers: model.network.layers(),
        processors: &processors,
        unsupported: &unsupported,
    };
    if args.json {
        return output::print_json(&SupportView {
            model: model.network.name(),
            device: &hello.device.name,
            simulated: hello.device.simulated,
            emulated: processors.iter().any(|one| one.emulated),
            processors: &processors,
            layers: support.views(),
        });
    }
    output::print(format_args!("{}\n", support.table()))?;
    for line in support.lines(hello.device.simulated) {
        output::print(line)?;
    }
    Ok(())
}

/// Layers, processors, and what these cannot run of those.
struct Support<'a> {
    layers: &'a [Layer],
    processors: &'a [Processor],
    unsupported: &'a [Unsupported],
}

impl<'a> Support<'a> {
    /// Why a processor cannot run a layer; `None` where it can.
    fn why_not(&self, processor: &Processor, layer: &Layer) -> Option<&'a str> {
        let mut rows = self.unsupported.iter();
        let row = rows.find(|row| {
            let is_it = (row.segment.first(), row.segment.last()) == (layer.number, layer.number);
            row.processor == processor.name && is_it
        })?;
        Some(&row.reason)
    }

    fn views(&self) -> Vec<LayerView<'a>> {
        let view = |layer: &'a Layer| LayerView {
            layer: layer.number,
            name: &layer.name,
            operators: &layer.operators,
            on: self
                .processors
                .iter()
                .map(|processor| {
                    let reason = self.why_not(processor, layer);
                    AnswerView {
                        processor: &processor.name,
                        runs: reason.is_none(),
                        reason,
                    }
                })
                .collect(),
        };
        self.layers.iter().map(view).collect()
    }

    fn table(&self) -> String {
        let mut heads = vec!["layer", "name", "operators"];
        heads.extend(self.processors.iter().map(|one| one.name.as_str()));
        let rows = self.layers.iter().map(|layer| {
            let mut cells = vec![
                layer.number.to_string(),
                layer.name.clone(),
                layer.operators.join(" "),
            ];
            cells.extend(self.processors.iter().map(|processor| {
                let can = self.why_not(processor, layer).is_none();
                (if can { "runs" } else { "-" }).to_owned()
            }));
            cells
        });
        table(&heads, &[0], rows)
    }

    /// How many layers each processor runs, and why not the others: neighbours with one reason in one line.
    fn lines(&self, simulated: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for processor in self.processors {
            let mark = match (simulated, processor.emulated) {
                (true, _) => " (simulated)",
                (false, true) => " (emulated)",
                (false, false) => "",
            };
            let why: Vec<(u32, Option<&str>)> = self
                .layers
                .iter()
                .map(|layer| (layer.number, self.why_not(processor, layer)))
                .collect();
            let runs = why.iter().filter(|(_, why)| why.is_none()).count();
            lines.push(format!(
                "{}{mark} runs {runs} of {} layers",
                processor.name,
                self.layers.len()
            ));
            for same in why.chunk_by(|one, next| one.1 == next.1) {
                if let [(first, Some(reason)), ..] = same {
                    let last = first + same.len() as u32 - 1;
                    let layers = match *first == last {
                        true => format!("layer {first}"),
                        false => format!("layers {first} to {last}"),
                    };
                    lines.push(format!("  not {layers}: {reason}"));
                }
            }
        }
        lines
    }
}

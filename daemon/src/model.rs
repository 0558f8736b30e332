//! `layerlab model inspect`: the layer table of a model, and what its options have in common with other commands'.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use layerlab_profiles::Layer;
use layerlab_profiles::document::Model;

use super::adb::AdbArgs;
use super::exit::{Code, ExitWith, Failure};
use super::model_support::{self, SupportArgs};
use super::output;
use layerlab_campaign::ModelFile;
use layerlab_lab::text_table::{Cells, table};

#[derive(clap::Args)]
pub(super) struct ModelArgs {
    #[command(subcommand)]
    command: ModelCommand,
}

#[derive(clap::Subcommand)]
enum ModelCommand {
    /// Print a model's layers: what they are, their sizes and their operation counts
    Inspect {
        /// The ONNX model
        #[arg(value_name = "FILE")]
        model: PathBuf,
        #[command(flatten)]
        dims: DimArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print which layers each processor of a device can run, and why not the others
    Support(SupportArgs),
}

/// Sizes for the symbolic dimensions of a model.
#[derive(clap::Args)]
pub(super) struct DimArgs {
    /// The size of a symbolic dimension of the model; may be repeated
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = parse_dim)]
    dims: Vec<(String, u64)>,
}

impl DimArgs {
    pub(super) fn map(&self) -> BTreeMap<String, u64> {
        self.dims.iter().cloned().collect()
    }
}

/// `NAME=SIZE`.
pub(super) fn parse_dim(text: &str) -> Result<(String, u64), String> {
    let (name, size) = text
        .split_once('=')
        .ok_or("write NAME=SIZE, such as H=224")?;
    match size.parse() {
        Ok(size) if size > 0 => Ok((name.to_owned(), size)),
        _ => Err(format!(
            "`{size}` is no size: write a whole number of at least 1"
        )),
    }
}

/// Refuses another quantised twin than the one that a profile's numbers are of.
pub(super) fn refuse_other_twin(profiled: &Model, given: &ModelFile) -> anyhow::Result<()> {
    let given = given.quantised.as_ref().map(|twin| &twin.source.sha256);
    let profiled = profiled.quantised.as_ref().map(|twin| &twin.sha256);
    match (given, profiled) {
        (None, Some(_)) => anyhow::bail!(
            "the profile is of a model with a quantised twin; give the twin with --quantised"
        ),
        (Some(_), None) => anyhow::bail!(
            "the profile is of a model without a quantised twin; leave --quantised out, or measure this one first"
        ),
        (Some(given), Some(profiled)) if given != profiled => anyhow::bail!(
            "--quantised is another quantised model than the profile's; measure this one first"
        ),
        _ => Ok(()),
    }
}

pub(super) async fn run(
    args: &ModelArgs,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    match &args.command {
        ModelCommand::Inspect { model, dims, json } => inspect(model, dims, *json),
        ModelCommand::Support(args) => model_support::run(args, agent, adb).await,
    }
}

fn inspect(model: &Path, dims: &DimArgs, json: bool) -> Result<(), Failure> {
    let model = ModelFile::open(model, &dims.map()).exit_with(Code::Input)?;
    let layers = model.network.layers();
    if json {
        return output::print_json(&layers);
    }
    let network = &model.network;
    output::print(format_args!(
        "{}: {} layers, opset {}",
        network.name(),
        network.layer_count(),
        network.opset()
    ))?;
    output::print(table(
        &[
            "layer",
            "name",
            "operators",
            "parameters",
            "input",
            "output",
            "additions",
            "multiplications",
        ],
        &[0, 3, 4, 5, 6, 7],
        layers.iter().map(row).chain([total(layers)]),
    ))
}

fn row(layer: &Layer) -> Cells {
    vec![
        layer.number.to_string(),
        layer.name.clone(),
        layer.operators.join(" "),
        layer.parameter_bytes.to_string(),
        layer.input_bytes.to_string(),
        layer.output_bytes.to_string(),
        layer.additions.to_string(),
        layer.multiplications.to_string(),
    ]
}

fn total(layers: &[Layer]) -> Cells {
    let parameters: layerlab_profiles::Bytes = layers.iter().map(|l| l.parameter_bytes).sum();
    let additions: u64 = layers.iter().map(|l| l.additions).sum();
    let multiplications: u64 = layers.iter().map(|l| l.multiplications).sum();
    let mut cells = vec![String::new(); 8];
    cells[1] = "all".to_owned();
    cells[3] = parameters.to_string();
    cells[6] = additions.to_string();
    cells[7] = multiplications.to_string();
    cells
}

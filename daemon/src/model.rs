//! `layerlab model`: what a model is made of.

use std::path::{Path, PathBuf};

use layerlab_profiles::Layer;

use super::adb::WithPhones;
use super::exit::{Code, ExitWith, Failure};
use super::model_group;
use super::model_options::DimArgs;
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
    /// Make several nodes one layer, such as the attention of a transformer's block: written into a copy of the model, which
    /// all commands then take by these layers
    Group(model_group::GroupArgs),
    /// Print which layers each processor of a device can run, and why not the others
    Support(Box<WithPhones<SupportArgs>>),
}

pub(super) async fn run(args: &ModelArgs, agent: Option<PathBuf>) -> Result<(), Failure> {
    match &args.command {
        ModelCommand::Inspect { model, dims, json } => inspect(model, dims, *json),
        ModelCommand::Group(args) => model_group::run(args),
        ModelCommand::Support(support) => {
            let WithPhones { args, adb } = support.as_ref();
            model_support::run(args, agent, adb).await
        }
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
    let beside = layers.iter().any(Layer::has_tensors_beside_cuts);
    let mut head = vec![
        "layer",
        "name",
        "operators",
        "parameters",
        "input",
        "output",
        "additions",
        "multiplications",
    ];
    if beside {
        head.extend(["model input", "model output"]);
    }
    let mut rows: Vec<Cells> = layers.iter().map(|layer| row(layer, beside)).collect();
    rows.push(total(layers, head.len()));
    output::print(table(&head, &[0, 3, 4, 5, 6, 7, 8, 9], rows))
}

/// A layer's cells, with those of the model's own inputs and outputs `beside` the cuts where some layer has such.
fn row(layer: &Layer, beside: bool) -> Cells {
    let mut cells = vec![
        layer.number.to_string(),
        layer.name.clone(),
        layer.operators.join(" "),
        layer.parameter_bytes.to_string(),
        layer.input_bytes.to_string(),
        layer.output_bytes.to_string(),
        layer.additions.to_string(),
        layer.multiplications.to_string(),
    ];
    if beside {
        cells.push(layer.model_input_bytes.to_string());
        cells.push(layer.model_output_bytes.to_string());
    }
    cells
}

fn total(layers: &[Layer], columns: usize) -> Cells {
    let parameters: layerlab_profiles::Bytes = layers.iter().map(|l| l.parameter_bytes).sum();
    let additions: u64 = layers.iter().map(|l| l.additions).sum();
    let multiplications: u64 = layers.iter().map(|l| l.multiplications).sum();
    let mut cells = vec![String::new(); columns];
    cells[1] = "all".to_owned();
    cells[3] = parameters.to_string();
    cells[6] = additions.to_string();
    cells[7] = multiplications.to_string();
    cells
}

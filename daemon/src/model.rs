//! `layerlab model inspect`: the layer table of a model.

use std::collections::BTreeMap;
use std::path::PathBuf;

use layerlab_profiles::Layer;

use super::exit::{Code, ExitWith, Failure};
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

pub(super) fn run(args: &ModelArgs) -> Result<(), Failure> {
    let ModelCommand::Inspect { model, dims, json } = &args.command;
    let model = ModelFile::open(model, &dims.map()).exit_with(Code::Input)?;
    let layers = model.network.layers();
    if *json {
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

//! `layerlab model group`: a model whose file says which nodes are one layer together.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use layerlab_model::{NamedLayer, Network};

use super::campaign::publish_failure;
use super::exit::{Code, ExitWith, Failure};
use super::layer_rules::LayerRules;
use super::model_options::DimArgs;
use super::output;
use layerlab_campaign::publish::StagedFile;

#[derive(clap::Args)]
pub(super) struct GroupArgs {
    /// The ONNX model
    #[arg(value_name = "FILE")]
    model: PathBuf,
    /// Rules in TOML: for each `[[layer]]` a regular expression `nodes`, which matches names of nodes, and a `name`, in which
    /// `$1` stands for what the expression's first group matched. Nodes that get the same name are one layer, with all that
    /// lies between them; the first rule that matches decides
    #[arg(long, value_name = "FILE")]
    layers: PathBuf,
    /// Where to write the model with its layers; weights in files beside the model have to be beside this one as well
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    dims: DimArgs,
    /// Replace a file that is already there
    #[arg(long)]
    replace: bool,
}

pub(super) fn run(args: &GroupArgs) -> Result<(), Failure> {
    let model = args.model.display();
    let opened = Network::open_with_source(&args.model, &args.dims.map());
    let (network, source) = opened
        .map_err(|error| anyhow!("`{model}`: {error}"))
        .exit_with(Code::Input)?;
    if !network.named_layers().is_empty() {
        return Err(Failure::new(
            Code::Input,
            anyhow!("`{model}` names its layers already: give the model that it was made of"),
        ));
    }
    if !source.external_weights.is_empty() && folder(&args.out) != folder(&args.model) {
        return Err(Failure::new(
            Code::Input,
            anyhow!(
                "`{model}` keeps weights in files beside it, where its copy needs them as well: give an --out in {}",
                folder(&args.model).display()
            ),
        ));
    }
    let layers = LayerRules::read(&args.layers)
        .and_then(|rules| rules.apply(&network))
        .exit_with(Code::Input)?;
    let grouped = network
        .with_named_layers(layers.clone())
        .map_err(|error| anyhow!("{}: {error}", args.layers.display()))
        .exit_with(Code::Input)?;
    let staged = StagedFile::prepare(&args.out, args.replace).map_err(publish_failure)?;
    staged
        .publish(&NamedLayer::name_in(&layers, source.onnx))
        .map_err(publish_failure)?;
    output::print(format_args!(
        "{}: {} layers, {} before; {} of them are named by {}",
        network.name(),
        grouped.layer_count(),
        network.layer_count(),
        layers.len(),
        args.layers.display()
    ))?;
    output::print(format_args!("Written to {}", args.out.display()))
}

/// The folder that a file is in, whatever way leads there.
fn folder(file: &Path) -> PathBuf {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

//! `layerlab quantise`: an int8 model of a float one.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::ValueEnum;
use layerlab_model::{QuantiseOptions, RangeMethod, WeightScales};
use layerlab_profiles::sha256;
use serde::Serialize;

use super::campaign::publish_failure;
use super::evaluate::fitting_set;
use super::exit::{Code, ExitWith, Failure};
use super::model_options::DimArgs;
use super::output;
use layerlab_campaign::ModelFile;
use layerlab_campaign::publish::StagedFile;

#[derive(clap::Args)]
pub(super) struct QuantiseArgs {
    /// The ONNX model, with 32-bit floats
    #[arg(value_name = "FILE")]
    model: PathBuf,
    /// The evaluation set, as `layerlab set` makes it, on whose first, third, fifth … image ranges of activations are
    /// found; the others are left to judge the result by
    #[arg(long, value_name = "FILE")]
    set: PathBuf,
    /// Where to write the quantised model
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How many scales the weights of one operator have: one (per-tensor) or one for each output channel (per-channel)
    #[arg(long, value_enum, default_value = "per-channel")]
    weights: WeightsName,
    /// What range of an activation its integers hold: all of it (min-max) or all but the 0.001 % of its values that are
    /// farthest from zero (percentile)
    #[arg(long, value_enum, default_value = "min-max")]
    ranges: RangesName,
    /// Find ranges on at most so many images
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    #[command(flatten)]
    dims: DimArgs,
    /// Replace a file that is already there
    #[arg(long)]
    replace: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum WeightsName {
    PerTensor,
    PerChannel,
}

#[derive(Clone, Copy, ValueEnum)]
enum RangesName {
    MinMax,
    Percentile,
}

impl QuantiseArgs {
    fn options(&self) -> QuantiseOptions {
        QuantiseOptions {
            weights: match self.weights {
                WeightsName::PerTensor => WeightScales::PerTensor,
                WeightsName::PerChannel => WeightScales::PerChannel,
            },
            ranges: match self.ranges {
                RangesName::MinMax => RangeMethod::MinMax,
                RangesName::Percentile => RangeMethod::Percentile,
            },
        }
    }
}

/// What was made.
#[derive(Serialize)]
struct QuantisedSummary {
    name: String,
    layers: u32,
    /// How many activations are rounded to 8 bits.
    activations: usize,
    /// How many operators have 8-bit weights.
    weights: usize,
    /// How many images the ranges were found on, and how many the set has.
    images: usize,
    images_of_set: usize,
    bytes: usize,
    bytes_before: usize,
    sha256: String,
}

pub(super) fn run(args: &QuantiseArgs) -> Result<(), Failure> {
    let model = ModelFile::open(&args.model, &args.dims.map()).exit_with(Code::Input)?;
    let set = fitting_set(&args.set, &model)?.set;
    let staged = StagedFile::prepare(&args.out, args.replace).map_err(publish_failure)?;
    // More than fits in memory is all.
    let limit = args.limit.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let answers = (0..set.answers()).step_by(2);
    let images = answers.flat_map(|answer| set.images(answer)).take(limit);
    let used = images.clone().count();
    let quantised = layerlab_model::quantise(&model.network, &images, args.options());
    let quantised = quantised.map_err(|error| {
        let message = anyhow!("`{}`: {error}", args.model.display());
        Failure::new(Code::Input, message)
    })?;
    let bytes = quantised.network.to_onnx();
    staged.publish(&bytes).map_err(publish_failure)?;
    let summary = QuantisedSummary {
        name: model.network.name().to_owned(),
        layers: model.network.layer_count(),
        activations: quantised.activations,
        weights: quantised.weights,
        images: used,
        images_of_set: set.answers() * set.metric.images_per_answer(),
        bytes: bytes.len(),
        bytes_before: model.onnx.len(),
        sha256: sha256(&bytes),
    };
    if args.json {
        return output::print_json(&summary);
    }
    output::print(summary.text())?;
    output::print(format_args!("Written to {}", args.out.display()))
}

impl QuantisedSummary {
    fn text(&self) -> String {
        [
            format!(
                "{}: {} layers, {} activations and the weights of {} operators in 8 bits",
                self.name, self.layers, self.activations, self.weights
            ),
            format!(
                "ranges of {} of {} images: every second one, the first among them",
                self.images, self.images_of_set
            ),
            format!("{} bytes, {} before", self.bytes, self.bytes_before),
            format!("sha256 {}", self.sha256),
        ]
        .join("\n")
    }
}

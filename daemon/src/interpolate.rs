//! `layerlab interpolate`: what a model would take at a size that was not profiled, from profiles of other sizes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use layerlab_campaign::ModelFile;
use layerlab_profiles::between_sizes::{LeftOut, Missed, Sizes};
use layerlab_profiles::document::Profile;
use layerlab_profiles::summary::Estimate;
use serde_json::{Value, json};

use super::exit::{Code, ExitWith, Failure};
use super::model_options::DimArgs;
use super::{output, show};

#[derive(clap::Args)]
pub(super) struct InterpolateArgs {
    /// Profiles of one model on one device, of two sizes or more; with three, what lies between is compared with what was measured
    #[arg(value_name = "FOLDER", required = true)]
    profiles: Vec<PathBuf>,
    /// The ONNX model that was profiled
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    #[command(flatten)]
    dims: DimArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &InterpolateArgs) -> Result<(), Failure> {
    let model = ModelFile::open(&args.model, &args.dims.map()).exit_with(Code::Input)?;
    let profiles = args.profiles.iter().map(|folder| Profile::read(folder));
    let profiles: Vec<Profile> = profiles.collect::<Result<_, _>>().exit_with(Code::Input)?;
    if let Some(other) = profiles
        .iter()
        .position(|profile| profile.header.model.sha256 != model.source_sha256)
    {
        return Err(Failure::new(
            Code::Input,
            anyhow::anyhow!(
                "{} is of another model than {}: give the model that was profiled",
                args.profiles[other].display(),
                args.model.display()
            ),
        ));
    }
    let sizes = Sizes::of(&profiles).exit_with(Code::Input)?;
    let calculated = sizes.at(model.network.layers()).exit_with(Code::Input)?;
    let left_out = sizes.left_out();
    let folder = |left_out: &LeftOut<'_>| {
        let mut both = profiles.iter().zip(&args.profiles);
        let found = both.find(|(profile, _)| std::ptr::eq(*profile, left_out.profile));
        found.map_or_else(PathBuf::new, |(_, folder)| folder.clone())
    };
    let left_out: Vec<(PathBuf, Vec<Missed>)> = left_out
        .into_iter()
        .map(|one| (folder(&one), one.processors))
        .collect();
    let dims = args.dims.map();
    if args.json {
        return output::print_json(&as_json(&calculated, &dims, &left_out));
    }
    let sizes: Vec<String> = dims
        .iter()
        .map(|(name, size)| format!("{name}={size}"))
        .collect();
    output::print(format_args!(
        "{}, calculated from the profiles of {} sizes{}\n\n{}",
        show::title(&calculated.header),
        profiles.len(),
        if sizes.is_empty() {
            String::new()
        } else {
            format!(" for {}", sizes.join(", "))
        },
        show::layers_and_totals(&calculated)
    ))?;
    if left_out.is_empty() {
        return output::print(
            "\nHow far these times are from being measured ones is not known: that takes profiles of three sizes that differ in one dimension.",
        );
    }
    output::print(
        "\nHow far calculated times are from measured ones, each size between others left out in turn:",
    )?;
    for (folder, processors) in &left_out {
        for missed in processors {
            output::print(in_words(folder, missed, &calculated))?;
        }
    }
    Ok(())
}

fn in_words(folder: &Path, missed: &Missed, profile: &Profile) -> String {
    let layer = profile.layers.get((missed.layer as usize).wrapping_sub(1));
    format!(
        "{}: all layers on {} {:+.1} %; of layers most by {}, by {:+.1} % of that",
        folder.display(),
        missed.processor,
        100.0 * missed.whole,
        layer.map_or("", |layer| &layer.name),
        100.0 * missed.of_layer
    )
}

fn as_json(
    profile: &Profile,
    dims: &BTreeMap<String, u64>,
    left_out: &[(PathBuf, Vec<Missed>)],
) -> Value {
    let header = &profile.header;
    let estimate = |estimate: Option<Estimate>| {
        estimate.map(|it| {
            let ci95 = it.ci95.map(|(low, high)| [low.as_nanos(), high.as_nanos()]);
            json!({ "value_ns": it.value.as_nanos(), "ci95_ns": ci95 })
        })
    };
    let times = profile.times.iter().map(|row| {
        json!({
            "layer": row.layer,
            "processor": row.processor,
            "compute": estimate(Some(row.time.compute)),
            "compute_includes_to_processor": row.time.compute_includes.to_processor,
            "compute_includes_from_processor": row.time.compute_includes.from_processor,
            "to_processor": estimate(row.time.to_processor),
            "from_processor": estimate(row.time.from_processor),
        })
    });
    let wholes = profile.whole_model_times().into_iter();
    let wholes = header.processors.iter().zip(wholes).map(|(processor, time)| {
        json!({ "processor": processor.name, "time_ns": time.map(|time| time.as_nanos()) })
    });
    let left_out = left_out.iter().map(|(folder, processors)| {
        let processors = processors.iter().map(|missed| {
            json!({
                "processor": missed.processor,
                "whole_error": missed.whole,
                "layer": missed.layer,
                "layer_error_of_whole": missed.of_layer,
            })
        });
        json!({ "profile": folder, "processors": processors.collect::<Vec<_>>() })
    });
    json!({
        "model": header.model.name,
        "model_sha256": header.model.sha256,
        "device": header.device.name,
        "simulated": header.device.simulated,
        "emulated": header.emulated,
        "thermal": header.thermal,
        "sizes": dims,
        "layers": profile.layers,
        "times": times.collect::<Vec<_>>(),
        "whole": wholes.collect::<Vec<_>>(),
        "left_out": left_out.collect::<Vec<_>>(),
    })
}

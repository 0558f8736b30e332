//! `layerlab export`: profiles in other people's formats.

mod parquet;

use std::path::{Path, PathBuf};

use layerlab_planners::export::{Source, dnn_partitioning};
use layerlab_planners::profile::{processors, time_table_of};
use layerlab_profiles::document::{Method, Profile, ProfileDigest};
use layerlab_profiles::summary::Estimate;

use super::exit::{Code, ExitWith, Failure};
use super::output;
use super::processors::PlacedOnArgs;
use parquet::ParquetArgs;

#[derive(clap::Args)]
pub(super) struct ExportArgs {
    /// The profile's folder; with `--format parquet` those of several
    #[arg(value_name = "FOLDER", required_unless_present = "published")]
    profiles: Vec<PathBuf>,
    /// The format
    #[arg(long, value_enum)]
    format: Format,
    #[command(flatten)]
    placed_on: PlacedOnArgs,
    #[command(flatten)]
    parquet: ParquetArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A latency workload of dnn-partitioning (msr-fiddle), in JSON
    MsrFiddle,
    /// One row for each layer and processor: what `times.csv` says beside what `layers.csv` does
    Csv,
    /// The profile's numbers in one JSON document, as `layerlab show --json` prints them
    Json,
    /// Tables for DuckDB and pandas, one row for each layer, segment and sample, in the folder `--out`, to which each profile
    /// adds
    Parquet,
}

pub(super) async fn run(args: &ExportArgs) -> Result<(), Failure> {
    if args.format == Format::Parquet {
        return parquet::run(&args.profiles, &args.parquet).await;
    }
    args.parquet.refuse_elsewhere()?;
    match args.profiles.as_slice() {
        [profile] => print(profile, args),
        profiles => {
            let error = format!(
                "{} profiles are given, and this format is of one; `--format parquet` takes several",
                profiles.len()
            );
            Err(Failure::new(Code::Usage, anyhow::anyhow!(error)))
        }
    }
}

/// Prints the profile in `folder` in a format that is of one profile.
fn print(folder: &Path, args: &ExportArgs) -> Result<(), Failure> {
    let profile = Profile::read(folder).exit_with(Code::Input)?;
    let digest = ProfileDigest::of_folder(folder).exit_with(Code::Input)?;
    match args.format {
        Format::Parquet => Ok(()),
        Format::MsrFiddle => {
            let profile = with_one_cost_for_both_ways(profile).exit_with(Code::Input)?;
            let chosen = args.placed_on.by_digit().exit_with(Code::Input)?;
            let (cpu, accelerators) = (chosen.cpu.as_deref(), chosen.accelerators());
            let names = processors(&profile, cpu, &accelerators).exit_with(Code::Input)?;
            let times = time_table_of(&profile, &names).exit_with(Code::Input)?;
            let npu = names[1..].join("+");
            let source = Source::of(&profile, names[0], &npu).named(&digest);
            let memory = profile
                .header
                .processors
                .iter()
                .filter(|processor| processor.name == npu)
                .find_map(|processor| processor.memory_bytes);
            let json = dnn_partitioning(&profile.layers, &times, memory, &source)
                .exit_with(Code::Input)?;
            output::print(json)
        }
        Format::Csv => output::print(csv(&profile).exit_with(Code::Internal)?.trim_end()),
        Format::Json => super::show::print_json(&profile, &digest),
    }
}

/// The profile with the costs of its cuts divided evenly: dnn-partitioning has one cost for moving in and out. T(L) is the
/// same however cuts divide (docs/method.md §10).
fn with_one_cost_for_both_ways(profile: Profile) -> anyhow::Result<Profile> {
    let mut measurements = profile.header.measurements.iter();
    match measurements.any(|measurement| measurement.method == Method::Probed) {
        true => Ok(profile.rederive(Method::Graph)?),
        false => Ok(profile),
    }
}

/// One row for each layer on each processor: the layer, and what it costs there.
fn csv(profile: &Profile) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "model",
        "device",
        "simulated",
        "emulated",
        "processor",
        "layer",
        "name",
        "parameter_bytes",
        "input_bytes",
        "output_bytes",
        "additions",
        "multiplications",
        "compute_ns",
        "to_processor_ns",
        "from_processor_ns",
    ])?;
    let header = &profile.header;
    for row in &profile.times {
        let Some(layer) = profile.layers.get(row.layer as usize - 1) else {
            continue;
        };
        let nanos = |estimate: Option<Estimate>| {
            estimate.map_or_else(String::new, |e| e.value.as_nanos().to_string())
        };
        writer.write_record([
            header.model.name.clone(),
            header.device.name.clone(),
            header.simulated.to_string(),
            header.is_emulated(&row.processor).to_string(),
            row.processor.clone(),
            row.layer.to_string(),
            layer.name.clone(),
            layer.parameter_bytes.as_bytes().to_string(),
            layer.input_bytes.as_bytes().to_string(),
            layer.output_bytes.as_bytes().to_string(),
            layer.additions.to_string(),
            layer.multiplications.to_string(),
            nanos(Some(row.time.compute)),
            nanos(row.time.to_processor),
            nanos(row.time.from_processor),
        ])?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

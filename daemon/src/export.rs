//! `layerlab export`: a profile in other people's formats.

use std::path::PathBuf;

use layerlab_planners::export::{Source, dnn_partitioning};
use layerlab_planners::profile::{Pair, time_table};
use layerlab_profiles::document::{ProcessorKind, Profile};
use layerlab_profiles::summary::Estimate;

use super::exit::{Code, ExitWith, Failure};
use super::output;

#[derive(clap::Args)]
pub(super) struct ExportArgs {
    /// The profile's folder
    #[arg(value_name = "FOLDER")]
    profile: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    format: Format,
    /// The CPU [default: the profile's first]
    #[arg(long, value_name = "NAME")]
    cpu: Option<String>,
    /// The accelerator [default: the profile's first]
    #[arg(long, value_name = "NAME")]
    accelerator: Option<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// A latency workload of dnn-partitioning (msr-fiddle), in JSON
    MsrFiddle,
    /// One row for each layer and processor: what `times.csv` says beside what `layers.csv` does
    Csv,
    /// The profile's numbers in one JSON document, as `layerlab show --json` prints them
    Json,
}

pub(super) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let profile = Profile::read(&args.profile).exit_with(Code::Input)?;
    let pair = Pair {
        cpu: args.cpu.as_deref(),
        npu: args.accelerator.as_deref(),
    };
    match args.format {
        Format::MsrFiddle => {
            let times = time_table(&profile, pair).exit_with(Code::Input)?;
            let first = |kind| {
                let mut of_kind = profile
                    .header
                    .processors
                    .iter()
                    .filter(move |p| p.kind == kind);
                of_kind.next().map_or("", |p| p.name.as_str())
            };
            let cpu = pair.cpu.unwrap_or_else(|| first(ProcessorKind::Cpu));
            let npu = pair
                .npu
                .unwrap_or_else(|| first(ProcessorKind::Accelerator));
            let source = Source::of(&profile, cpu, npu);
            let processors = profile.header.processors.iter();
            let memory = processors
                .filter(|processor| processor.name == npu)
                .find_map(|processor| processor.memory_bytes);
            let json = dnn_partitioning(&profile.layers, &times, memory, &source)
                .exit_with(Code::Input)?;
            output::print(json)
        }
        Format::Csv => output::print(csv(&profile).exit_with(Code::Internal)?.trim_end()),
        Format::Json => super::show::print_json(&profile),
    }
}

/// One row for each layer on each processor: the layer, and what it costs there.
fn csv(profile: &Profile) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "model",
        "device",
        "simulated",
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

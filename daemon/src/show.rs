//! `layerlab show`: a published profile as tables or JSON.

mod energy;
mod layers;
mod phone;
mod steady;

use std::path::{Path, PathBuf};

use layerlab_profiles::document::{
    Header, LayerTimeRow, Method, Processor, ProcessorKind, Profile, ProfileDigest, Unsupported,
};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Bytes, Layer, SignedNanos};
use serde::Serialize;

use energy::EnergyView;
pub(crate) use energy::drawn;

use super::exit::{Code, ExitWith, Failure};
use super::output;
use layerlab_campaign::plot;
pub(super) use layerlab_lab::text_table::estimate;

#[derive(clap::Args)]
pub(super) struct ShowArgs {
    /// The profile's folder
    #[arg(value_name = "FOLDER")]
    profile: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Draw the profile into this SVG file instead
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    plot: Option<PathBuf>,
    /// Print all columns side by side, also where the terminal is narrower
    #[arg(long, conflicts_with_all = ["json", "plot"])]
    wide: bool,
}

pub(super) fn run(args: &ShowArgs) -> Result<(), Failure> {
    let profile = Profile::read(&args.profile).exit_with(Code::Input)?;
    if let Some(file) = &args.plot {
        let svg = plot::svg(&profile)
            .map_err(anyhow::Error::msg)
            .exit_with(Code::Internal)?;
        return std::fs::write(file, svg)
            .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", file.display()))
            .exit_with(Code::Output);
    }
    let digest = ProfileDigest::of_folder(&args.profile).exit_with(Code::Input)?;
    if args.json {
        return print_json(&profile, &digest);
    }
    let columns = output::columns().filter(|_| !args.wide);
    output::print(format_args!(
        "{}\n\ndigest: {digest}",
        tables_in(&profile, columns)
    ))
}

/// The profile's numbers as one JSON document.
pub(super) fn print_json(profile: &Profile, digest: &ProfileDigest) -> Result<(), Failure> {
    output::print_json(&ProfileView::new(profile, digest))
}

/// The whole profile for a person: what was measured and how, and what each layer costs where.
pub(super) fn tables(profile: &Profile) -> String {
    tables_in(profile, output::columns())
}

/// What each layer costs where, and all of them.
pub(super) fn layers_and_totals(profile: &Profile) -> String {
    let mut parts = layers::tables(profile, output::columns());
    parts.extend(totals(profile));
    parts.join("\n\n")
}

/// The same for so many columns of text.
fn tables_in(profile: &Profile, columns: Option<usize>) -> String {
    let mut parts = vec![title(&profile.header)];
    parts.extend(phone::about(&profile.header).map(|text| in_lines(&text, columns)));
    let methods = methods(profile);
    parts.push(in_lines(&methods, columns));
    parts.extend(layers::tables(profile, columns));
    parts.extend(unsupported(profile).map(|text| in_lines(&text, columns)));
    parts.extend(memory(profile).map(|text| in_lines(&text, columns)));
    parts.extend(totals(profile));
    parts.extend(steady::steady(profile));
    parts.extend(energy::energy(profile));
    parts.join("\n\n")
}

/// Each line of `text`, wrapped.
fn in_lines(text: &str, columns: Option<usize>) -> String {
    let lines = text.lines().map(|line| output::wrapped(line, columns, 2));
    lines.collect::<Vec<_>>().join("\n")
}

/// Model and device; a simulation says so.
pub(super) fn title(header: &Header) -> String {
    format!(
        "{} on {}: {} layers",
        header.model.name,
        device(header),
        header.model.layers
    )
}

/// The device's name, which says so if the device is simulated, one of its processors emulated, or the times are steady ones.
pub(super) fn device(header: &Header) -> String {
    let name = &header.device.name;
    let marks = header.mark().unwrap_or_default().split(", ");
    let marks = marks.filter(|mark| !mark.is_empty() && !name.contains(&format!("({mark})")));
    match marks.collect::<Vec<_>>().join(", ") {
        marks if marks.is_empty() => name.clone(),
        marks => format!("{name} ({marks})"),
    }
}

fn methods(profile: &Profile) -> String {
    let lines = profile
        .header
        .processors
        .iter()
        .zip(&profile.header.measurements)
        .map(|(processor, measurement)| {
            let method = match measurement.method {
                Method::Robust => "robust times of each layer, visit by visit",
                Method::Median => "medians",
                Method::Differencing => "derived by differencing (mlmp §4.2.2)",
                Method::Graph => {
                    "derived by least squares over all segments, taking moving in and out to cost the same"
                }
                Method::Probed => {
                    "derived by least squares over all segments, moving in and out told apart by probes"
                }
            };
            format!(
                "{}: {}, {} {}{}; design {}, {} samples per segment, {method}",
                processor.name,
                numerics(processor),
                processor.runtime,
                processor.runtime_version,
                if processor.emulated { ", emulated" } else { "" },
                measurement.design,
                measurement.samples_per_segment,
            )
        });
    lines.collect::<Vec<_>>().join("\n")
}

fn numerics(processor: &Processor) -> String {
    format!("{:?}", processor.numerics).to_lowercase()
}

/// What processors cannot run, and why.
fn unsupported(profile: &Profile) -> Option<String> {
    let line = |row: &Unsupported| {
        let Unsupported {
            processor,
            segment,
            reason,
            needed: _,
        } = row;
        let mut layers = profile.layers.iter();
        let name = layers.find(|layer| layer.number == segment.first());
        match (segment.layers(), name) {
            (1, Some(Layer { number, name, .. })) => {
                format!("{processor} cannot run layer {number} ({name}): {reason}")
            }
            _ => format!("{processor} cannot run layers {segment} as one unit: {reason}"),
        }
    };
    let is_said_apart = |row: &&Unsupported| row.needed.is_some() && row.segment.layers() > 1;
    let rows = profile.unsupported.iter();
    let lines: Vec<String> = rows.filter(|row| !is_said_apart(row)).map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What the memories of accelerators do not hold, and what of that follows.
fn memory(profile: &Profile) -> Option<String> {
    let header = &profile.header;
    let lines = header.processors.iter().filter_map(|processor| {
        let name = &processor.name;
        let rows = profile.unsupported.iter();
        let rows = rows.filter(|row| row.processor == *name && row.segment.layers() > 1);
        let needed = rows.filter_map(|row| row.needed).min()?;
        let largest = profile.supported(name).largest()?;
        let memory = processor.memory_bytes;
        let of = memory.map_or_else(String::new, |memory| format!(" of {memory}"));
        let mut measurements = header.measurements.iter();
        let sentinel = measurements.find(|one| one.processor == *name)?.sentinel;
        let sentinel = sentinel.map_or_else(String::new, |sentinel| {
            format!("; the sentinel is layers {sentinel}")
        });
        Some(format!(
            "the memory{of} of {name} does not hold the whole model: layers {largest} are the longest segment that fits, \
             the least that does not needs {needed}{sentinel}"
        ))
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What the whole model takes on the CPU, and on each accelerator.
fn totals(profile: &Profile) -> Option<String> {
    let whole = Whole::of(profile)?;
    let mut lines = vec![format!("all layers on {}: {}", whole.cpu_name, whole.cpu)];
    for (name, time) in &whole.accelerators {
        lines.push(format!("all layers on {name}: {time}"));
    }
    Some(lines.join("\n"))
}

/// The time of the whole model on each processor, by the time model of the profile.
pub(super) struct Whole {
    cpu_name: String,
    /// All layers on the CPU.
    pub(super) cpu: SignedNanos,
    /// Each accelerator's name and all layers on it.
    pub(super) accelerators: Vec<(String, SignedNanos)>,
}

impl Whole {
    /// `None` when the profile has no CPU that can run every layer.
    pub(super) fn of(profile: &Profile) -> Option<Whole> {
        let times = profile.whole_model_times();
        let mut processors = profile.header.processors.iter().zip(&times);
        let (cpu, on_cpu) = processors.find(|(one, _)| one.kind == ProcessorKind::Cpu)?;
        let processors = profile.header.processors.iter().zip(&times);
        let accelerators = processors.filter(|(one, _)| one.kind == ProcessorKind::Accelerator);
        Some(Whole {
            cpu_name: cpu.name.clone(),
            cpu: (*on_cpu)?,
            accelerators: accelerators
                .filter_map(|(one, time)| Some((one.name.clone(), (*time)?)))
                .collect(),
        })
    }

    /// All layers on the accelerator on which they take the least time.
    pub(super) fn fastest_accelerator(&self) -> Option<SignedNanos> {
        self.accelerators.iter().map(|(_, time)| *time).min()
    }
}

/// A published profile in one line of JSON, for scripts that measure.
#[derive(Serialize)]
pub(super) struct Published {
    model: String,
    device: String,
    simulated: bool,
    emulated: bool,
    layers: u32,
    samples: usize,
    path: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    all_cpu_ns: Option<SignedNanos>,
    /// Of several accelerators, that of the fastest.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_npu_ns: Option<SignedNanos>,
}

/// What was published at `path`.
pub(super) fn summary(profile: &Profile, path: &Path) -> Published {
    let whole = Whole::of(profile);
    Published {
        model: profile.header.model.name.clone(),
        device: profile.header.device.name.clone(),
        simulated: profile.header.simulated,
        emulated: profile.header.emulated,
        layers: profile.header.model.layers,
        samples: profile.samples.len(),
        path: path.to_owned(),
        all_cpu_ns: whole.as_ref().map(|whole| whole.cpu),
        all_npu_ns: whole.as_ref().and_then(Whole::fastest_accelerator),
    }
}

/// A profile without its samples, for scripts.
#[derive(Serialize)]
struct ProfileView<'a> {
    digest: &'a str,
    header: &'a Header,
    layers: &'a [Layer],
    times: Vec<TimeView<'a>>,
    unsupported: Vec<UnsupportedView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    energy: Option<EnergyView<'a>>,
}

/// Layers that a processor cannot run as one unit.
#[derive(Serialize)]
struct UnsupportedView<'a> {
    processor: &'a str,
    first_layer: u32,
    last_layer: u32,
    reason: &'a str,
    /// What they need of the processor's memory, where that does not hold them.
    needed_bytes: Option<u64>,
}

#[derive(Serialize)]
struct TimeView<'a> {
    layer: u32,
    processor: &'a str,
    compute: EstimateView,
    compute_includes_to_processor: bool,
    compute_includes_from_processor: bool,
    to_processor: Option<EstimateView>,
    from_processor: Option<EstimateView>,
    method: Method,
}

#[derive(Serialize)]
struct EstimateView {
    value_ns: SignedNanos,
    ci95_low_ns: Option<SignedNanos>,
    ci95_high_ns: Option<SignedNanos>,
}

impl From<Estimate> for EstimateView {
    fn from(estimate: Estimate) -> Self {
        let (low, high) = estimate.ci95.unzip();
        EstimateView {
            value_ns: estimate.value,
            ci95_low_ns: low,
            ci95_high_ns: high,
        }
    }
}

impl<'a> ProfileView<'a> {
    fn new(profile: &'a Profile, digest: &'a ProfileDigest) -> ProfileView<'a> {
        let view = |row: &'a LayerTimeRow| TimeView {
            layer: row.layer,
            processor: &row.processor,
            compute: row.time.compute.into(),
            compute_includes_to_processor: row.time.compute_includes.to_processor,
            compute_includes_from_processor: row.time.compute_includes.from_processor,
            to_processor: row.time.to_processor.map(Into::into),
            from_processor: row.time.from_processor.map(Into::into),
            method: row.method,
        };
        let unsupported = |row: &'a Unsupported| UnsupportedView {
            processor: &row.processor,
            first_layer: row.segment.first(),
            last_layer: row.segment.last(),
            reason: &row.reason,
            needed_bytes: row.needed.map(Bytes::as_bytes),
        };
        ProfileView {
            digest: digest.as_str(),
            header: &profile.header,
            layers: &profile.layers,
            times: profile.times.iter().map(view).collect(),
            unsupported: profile.unsupported.iter().map(unsupported).collect(),
            energy: EnergyView::of(profile),
        }
    }
}

//! `layerlab profile`: measures a model on a device and publishes its profile.

use std::path::{Path, PathBuf};

use layerlab_profiles::check::Finding;
use layerlab_profiles::design::Design;
use layerlab_profiles::document::Profile;
use layerlab_profiles::units::Nanos;
use layerlab_protocol::Hygiene;

use super::adb::{self, AdbArgs, PhoneArgs};
use super::exit::{Code, ExitWith, Failure};
use super::model::DimArgs;
use super::progress::Bars;
use super::{evaluate, output, percent, show};
use crate::device::adb::{AdbError, Printable};
use crate::device::discovery;
use crate::device::{ConnectionError, Link, LinkError};
use crate::measure::{MeasureError, ModelFile, RunError, Settings, measure};
use crate::publish::{PublishError, Staging, folder_name};

/// Below six samples no two of them enclose the median with 95 % confidence, and a profile without
/// intervals is no use; thirty are the papers' habit.
const DEFAULT_SAMPLES: u64 = 30;

#[derive(clap::Args)]
pub(super) struct Args {
    /// The ONNX model
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// The device: a name that `layerlab devices` lists, or a simulated device's file
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// Where to publish the profile [default: layerlab-profiles/DEVICE/MODEL]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Replace a profile that is already there
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    phone: PhoneArgs,
    #[command(flatten)]
    dims: DimArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    /// An evaluation set, as `layerlab set` makes it: measure accuracy, too
    #[arg(long, value_name = "FILE")]
    set: Option<PathBuf>,
    #[command(flatten)]
    accuracy: evaluate::ChoiceArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The choices that every measurement has.
#[derive(clap::Args)]
pub(super) struct SettingsArgs {
    /// The processors to measure, such as npu or cpu,npu [default: all that the device has]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    processors: Vec<String>,
    /// Which segments to measure on an accelerator: adaptive (until the intervals are narrow enough), local
    /// (layers and neighbours), prefix-suffix (the papers' 2n-1) or grouped (all)
    #[arg(long, default_value_t = Design::Adaptive)]
    design: Design,
    /// With the design adaptive: how wide a 95 % interval may be on either side, as a share of its number
    #[arg(long, default_value = "2%", value_name = "PERCENT", value_parser = percent)]
    target_ci: f64,
    /// With the design adaptive: the most device time to spend on each accelerator, such as 90s or 10m
    #[arg(long, default_value = "10m", value_name = "DURATION")]
    budget: humantime::Duration,
    /// How many samples each segment gets, with designs other than adaptive; below 6 there are no
    /// confidence intervals
    #[arg(long, default_value_t = DEFAULT_SAMPLES, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// The idle time before each inference, in microseconds
    #[arg(long, default_value_t = 1000, value_name = "MICROSECONDS")]
    gap_us: u64,
    /// Seeds the models' inputs and the order in which segments are run
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl SettingsArgs {
    pub(super) fn settings(&self) -> Settings {
        Settings {
            processors: self.processors.clone(),
            design: self.design,
            samples_per_segment: self.samples,
            gap: Nanos::from_micros(self.gap_us),
            seed: self.seed,
            hygiene: Hygiene::default(),
            target: self.target_ci,
            budget: std::time::Duration::from(self.budget).into(),
        }
    }
}

pub(super) async fn run(args: &Args, agent: Option<PathBuf>, adb: &AdbArgs) -> Result<(), Failure> {
    let model = ModelFile::open(&args.model, &args.dims.map()).exit_with(Code::Input)?;
    let set = match &args.set {
        Some(file) => Some(evaluate::fitting_set(file, &model)?),
        None => None,
    };
    let program = agent_program(agent)?;
    let link = adb::open(&args.device, program, adb, &args.phone).await?;
    let device = match discovery::choose(&args.device) {
        Ok(choice) => choice.name(),
        Err(_) => args.device.clone(),
    };
    let out = match &args.out {
        Some(out) => out.clone(),
        None => Path::new("layerlab-profiles")
            .join(folder_name(&device))
            .join(folder_name(model.network.name())),
    };
    let settings = args.settings.settings();
    let staging = Staging::prepare(&out, args.replace).map_err(publish_failure)?;
    let mut profile = times(&link, &device, &model, settings, &Bars::new()).await?;
    if let Some(set) = &set {
        let evaluated =
            evaluate::accuracy(&link, &device, &model, set, &args.accuracy, |_| {}).await?;
        profile = profile
            .with_evaluation(evaluated.evaluation, &evaluated.judged)
            .map_err(evaluate::evaluation_failure)?;
    }
    let findings = staging.publish(&profile).map_err(publish_failure)?;
    if args.json {
        return output::print_json(&show::summary(&profile, &out));
    }
    output::print(show::tables(&profile))?;
    for finding in findings {
        output::note(format_args!("\n{finding}"));
    }
    output::print(format_args!("\nPublished in {}", out.display()))
}

/// Measures `model` on the device behind `link`, called `device`, and publishes the profile at `out`.
pub(super) async fn profile(
    link: &impl Link,
    device: &str,
    model: &ModelFile,
    settings: Settings,
    out: &Path,
    replace: bool,
    bars: &Bars,
) -> Result<(Profile, Vec<Finding>), Failure> {
    let staging = Staging::prepare(out, replace).map_err(publish_failure)?;
    let profile = times(link, device, model, settings, bars).await?;
    let findings = staging.publish(&profile).map_err(publish_failure)?;
    Ok((profile, findings))
}

/// Measures `model` on the device behind `link`, called `device`.
async fn times(
    link: &impl Link,
    device: &str,
    model: &ModelFile,
    settings: Settings,
    bars: &Bars,
) -> Result<Profile, Failure> {
    let mut bar = bars.add(format!("{} on {}", model.network.name(), Printable(device)));
    measure(link, model, settings, &mut |progress| bar.update(progress))
        .await
        .map_err(measure_failure)
}

/// The agent's program: the one named, or the one beside this program.
pub(super) fn agent_program(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(program) = named {
        return Ok(program);
    }
    let this = std::env::current_exe().exit_with(Code::Internal)?;
    Ok(this.with_file_name("layerlab-agent"))
}

pub(super) fn measure_failure(error: MeasureError) -> Failure {
    let code = match &error {
        MeasureError::Plan(_) => Code::Input,
        MeasureError::Run(RunError::Link(
            LinkError::Refused { .. } | LinkError::Adb(AdbError::AgentRefused { .. }),
        )) => Code::Input,
        MeasureError::Run(RunError::Link(LinkError::Connection(ConnectionError::Refused {
            ..
        }))) => Code::Device,
        MeasureError::Run(RunError::Planner(_)) | MeasureError::Build(_) => Code::Internal,
        MeasureError::Run(_) => Code::Device,
    };
    Failure::new(code, error)
}

pub(super) fn publish_failure(error: PublishError) -> Failure {
    let code = match &error {
        PublishError::Unfit { .. } => Code::Check,
        _ => Code::Output,
    };
    Failure::new(code, error)
}

//! `layerlab profile`: measures a model on a device and publishes its profile.

use std::path::{Path, PathBuf};

use layerlab_profiles::design::Design;
use layerlab_profiles::design::over_budget::OverBudget;
use layerlab_profiles::units::Nanos;
use layerlab_protocol::{Hygiene, MeterChoice};
use time::OffsetDateTime;

use super::adb::{self, AdbArgs, Opened, PhoneArgs};
use super::campaign::{agent_program, campaign_failure, publish_failure};
use super::exit::{Code, ExitWith, Failure};
use super::fitness::{FitnessArgs, make_fit};
use super::model_options::{DimSizesArgs, open_with_twin};
use super::percent::Percent;
use super::progress::{Bars, CampaignBars};
use super::{evaluate, output, show};
use layerlab_campaign::publish::{PublishError, folder_name};
use layerlab_campaign::{
    Campaign, CampaignAccuracy, CampaignError, EnergySettings, InOut, ModelFile, Published,
    SteadySettings, TimesSettings, UnfitDuration, UnfitWindow,
};
use layerlab_farm::artifacts::{self, Artifacts};
use layerlab_farm::discovery;

#[derive(clap::Args)]
pub(super) struct ProfileArgs {
    /// The ONNX model
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// The device: a name that `layerlab devices` lists, the network address of a phone, or a simulated device's file
    #[arg(long, value_name = "DEVICE")]
    device: String,
    /// The model's quantised twin, which 8-bit processors of ONNX Runtime run; `layerlab quantise` makes one
    #[arg(long, value_name = "FILE")]
    quantised: Option<PathBuf>,
    /// Where to publish the profile [default: layerlab-profiles/DEVICE/MODEL]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Replace a profile that is already there
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    phone: PhoneArgs,
    #[command(flatten)]
    fitness: FitnessArgs,
    #[command(flatten)]
    dims: DimSizesArgs,
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
    #[arg(long, default_value_t = TimesSettings::DESIGN)]
    design: Design,
    /// With the design adaptive: how wide a 95 % interval may be on either side, as a share of its number
    #[arg(long, default_value_t = Percent(TimesSettings::TARGET_PERCENT), value_name = "PERCENT")]
    target_ci: Percent,
    /// With the design adaptive: the most device time to spend on each accelerator, such as 90s or 10m
    #[arg(long, default_value_t = TimesSettings::BUDGET.into(), value_name = "DURATION")]
    budget: humantime::Duration,
    /// With the design adaptive, where the budget is not enough to measure every layer: extend (measure them all the
    /// same, and nothing else) or refuse (say how much is needed, and publish nothing)
    #[arg(long, default_value_t = OverBudget::default(), value_name = "HOW")]
    over_budget: OverBudget,
    /// What divides the cost of a cut into moving in and moving out: probes, which are measured with the model and count
    /// towards the budget, or the papers' assumption that both cost the same
    #[arg(long, value_enum, default_value_t = AssumeName::Probed)]
    assume: AssumeName,
    /// How many samples each segment gets, with designs other than adaptive; with fewer than 3 there are no
    /// confidence intervals
    #[arg(long, default_value_t = TimesSettings::SAMPLES, value_parser = clap::value_parser!(u64).range(1..))]
    samples: u64,
    /// In how many visits they are taken, for each of which segments are loaded anew; intervals hold what
    /// differs between visits. Adaptive plans its own
    #[arg(long, default_value_t = TimesSettings::VISITS, value_parser = clap::value_parser!(u64).range(3..))]
    visits: u64,
    /// Measure steady times beside the cold ones: keep each processor busy for so long, such as 30m, see how its times change
    /// minute by minute, and measure the layers again while it is hot. Of a device that does not get cool, these alone
    #[arg(long, value_name = "DURATION", value_parser = steady)]
    steady: Option<SteadySettings>,
    /// Measure what inferences draw, too: run each segment for so long, such as 30s, and let the device idle as long between,
    /// while a power meter is read. Takes a minute for each segment, processor and visit
    #[arg(long, value_name = "DURATION", value_parser = energy_window)]
    energy: Option<Nanos>,
    /// With --energy: how often each segment is run so
    #[arg(long, default_value_t = EnergySettings::VISITS, value_name = "COUNT", requires = "energy",
          value_parser = clap::value_parser!(u32).range(3..))]
    energy_visits: u32,
    /// With --energy: the power meter: auto, rails, rapl, fuel-gauge, tcp:HOST:PORT or the path of a serial port, as the
    /// device reaches it (docs/phones.md)
    #[arg(long, default_value_t = MeterChoice::Any, value_name = "METER", requires = "energy")]
    meter: MeterChoice,
    /// The idle time before each inference, in microseconds
    #[arg(long, default_value_t = TimesSettings::GAP_US, value_name = "MICROSECONDS")]
    gap_us: u64,
    /// How long a device that became slower may rest, in all, until it is as fast as it was; then the run ends as throttled.
    /// A phone gets cool, a computer with other work may not
    #[arg(long, default_value_t = Hygiene::COOL_DOWN.into(), value_name = "DURATION")]
    cool_down: humantime::Duration,
    /// Seeds the models' inputs and the order in which segments are run
    #[arg(long, default_value_t = TimesSettings::SEED)]
    seed: u64,
}

/// What is assumed of moving in and out.
#[derive(Clone, Copy, clap::ValueEnum)]
enum AssumeName {
    /// Nothing where probes tell them apart; with designs derived by differencing, that they cost the same
    Probed,
    /// That they cost the same
    Symmetric,
}

/// How long to keep a device busy.
fn steady(text: &str) -> Result<SteadySettings, String> {
    let duration: humantime::Duration = text.parse().map_err(|_| UnfitDuration.to_string())?;
    let duration = std::time::Duration::from(duration).into();
    SteadySettings::of(duration).map_err(|error| error.to_string())
}

/// How long windows of energy are.
pub(super) fn energy_window(text: &str) -> Result<Nanos, String> {
    let duration: humantime::Duration = text.parse().map_err(|_| UnfitWindow.to_string())?;
    let duration = std::time::Duration::from(duration).into();
    EnergySettings::fit_window(duration).map_err(|error| error.to_string())
}

impl SettingsArgs {
    pub(super) fn settings(&self) -> TimesSettings {
        TimesSettings {
            processors: self.processors.clone(),
            design: self.design,
            samples_per_segment: self.samples,
            visits: self.visits,
            gap: Nanos::from_micros(self.gap_us),
            seed: self.seed,
            hygiene: Hygiene::default()
                .resting_for(std::time::Duration::from(self.cool_down).into()),
            target: self.target_ci.share(),
            budget: std::time::Duration::from(self.budget).into(),
            over_budget: self.over_budget,
            in_out: match self.assume {
                AssumeName::Probed => InOut::Probed,
                AssumeName::Symmetric => InOut::Symmetric,
            },
            steady: self.steady,
            energy: self.energy.map(|window| EnergySettings {
                window,
                visits: self.energy_visits,
                meter: self.meter.clone(),
            }),
        }
    }
}

pub(super) async fn run(
    args: &ProfileArgs,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    let choices = args.dims.choices().exit_with(Code::Usage)?;
    if choices.len() > 1 {
        // What is known to fail does so before hours were measured.
        for choice in &choices {
            let model = open_with_twin(&args.model, args.quantised.as_deref(), &choice.dims)?;
            if let Some(file) = &args.set {
                evaluate::fitting_set(file, &model)?;
            }
            let path = args.out.iter().zip(&choice.folder);
            for path in path.map(|(out, folder)| out.join(folder)) {
                if path.exists() && !args.replace {
                    return Err(publish_failure(PublishError::Exists { path }));
                }
            }
        }
    }
    let mut summaries = Vec::new();
    // A device that becomes unsteady at one size may be steady at the next.
    let mut not_steady = None;
    for choice in choices {
        let model = open_with_twin(&args.model, args.quantised.as_deref(), &choice.dims)?;
        let profiled = profile(args, &model, choice.folder.as_deref(), agent.clone(), adb).await?;
        summaries.push(profiled.summary);
        not_steady = not_steady.or(profiled.not_steady);
    }
    if args.json {
        match &summaries[..] {
            [one] => output::print_json(one)?,
            several => output::print_json(&several)?,
        }
    }
    not_steady.map_or(Ok(()), Err)
}

/// A profile that was published.
struct Profiled {
    summary: show::Published,
    /// Why steady times are not part of it, if they should be.
    not_steady: Option<Failure>,
}

/// Profiles one model, into a folder of this name if there are several.
async fn profile(
    args: &ProfileArgs,
    model: &ModelFile,
    folder: Option<&str>,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<Profiled, Failure> {
    let set = match &args.set {
        Some(file) => Some(evaluate::fitting_set(file, model)?),
        None => None,
    };
    let program = agent_program(agent)?;
    let link = adb::open(&args.device, program, adb, &args.phone).await?;
    let device = match (discovery::choose(&args.device), &link) {
        (Ok(choice), _) => choice.name(),
        (Err(_), Opened::Adb(phone)) => phone.name(),
        (Err(_), Opened::Local(_)) => args.device.clone(),
    };
    let out = match &args.out {
        Some(out) => out.clone(),
        None => Path::new("layerlab-profiles")
            .join(folder_name(&device))
            .join(folder_name(model.network.name())),
    };
    let out = folder.map_or(out.clone(), |folder| out.join(folder));
    let fit = make_fit(&link, &args.fitness, args.phone.patience().into()).await?;
    let campaign = Campaign {
        model,
        times: args.settings.settings(),
        accuracy: set.as_ref().map(|set| CampaignAccuracy {
            set,
            settings: args.accuracy.settings(),
        }),
        target: out.clone(),
        replace: args.replace,
        signing_key: None,
        fitness: fit.fitness.clone(),
    };
    let bars = Bars::new();
    let mut follower = CampaignBars::new(&bars, model.network.name(), &device);
    let began = OffsetDateTime::now_utc();
    let published = match campaign.run(&link, &mut follower).await {
        Ok(published) => published,
        Err(error) => {
            if let Some(artifacts) = keep_artifacts(&link, began, &error, &out).await {
                output::note(format_args!("layerlab: {}", artifacts.in_words()));
            }
            return Err(campaign_failure(error));
        }
    };
    let Published {
        profile,
        findings,
        not_steady,
    } = published;
    let not_steady = not_steady.map(|reason| {
        let sentence = format!(
            "the cold times are published in {}; {reason}",
            out.display()
        );
        Failure::new(Code::Device, anyhow::anyhow!(sentence))
    });
    let profiled = Profiled {
        summary: show::summary(&profile, &out),
        not_steady,
    };
    if args.json {
        return Ok(profiled);
    }
    output::print(show::tables(&profile))?;
    for finding in findings {
        output::note(format_args!("\n{finding}"));
    }
    output::print(format_args!("\nPublished in {}", out.display()))?;
    Ok(profiled)
}

/// What the phone knows of a failure, in a folder beside the one that the profile would have become.
async fn keep_artifacts(
    link: &Opened,
    began: OffsetDateTime,
    error: &CampaignError,
    out: &Path,
) -> Option<Artifacts> {
    let (Opened::Adb(phone), CampaignError::Run(failure)) = (link, error) else {
        return None;
    };
    if !failure.may_be_in_logs() {
        return None;
    }
    let mut folder = out.as_os_str().to_owned();
    folder.push(".failure");
    artifacts::keep(phone, began, &failure.to_string(), Path::new(&folder)).await
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use layerlab_campaign::AccuracySettings;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ProfileArgs,
    }

    #[test]
    fn a_command_line_that_chooses_nothing_means_the_defaults_of_campaigns() {
        let line = "layerlab --model m --device d --set s";
        let Line { args } = Line::try_parse_from(line.split(' ')).expect("a command line");
        assert_eq!(args.settings.settings(), TimesSettings::default());
        assert_eq!(args.accuracy.settings(), AccuracySettings::default());
    }
}

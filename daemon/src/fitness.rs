//! `layerlab profile` does what the lab does before it measures a phone: it makes the phone quiet and looks at the gates. It
//! waits until the phone is fit to be measured, or measures it as it is, and the profile says so.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use layerlab_farm::AdbLink;
use layerlab_farm::adb::Printable;
use layerlab_lab::config::{Config, Gates};
use layerlab_lab::gates::{Gate, Patience, Verdict, check};
use layerlab_lab::readings;
use layerlab_profiles::document::Fitness;
use tokio::time::{Instant, sleep_until};

use super::adb::Opened;
use super::exit::{Code, ExitWith, Failure};
use super::output;
use super::quiet::Quiet;

#[derive(clap::Args)]
#[command(next_help_heading = "Phones")]
pub(super) struct FitnessArgs {
    /// Measure a phone even if it is not fit to be measured (hot, throttling, nearly empty, busy), and say so in the profile
    #[arg(long)]
    not_fit: bool,
    /// The configuration whose [gates] say which phone is fit [default: layerlab/config.toml in ~/.config, else in /etc]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// A phone that may be measured. Once it is dropped, the phone is no quieter than before.
pub(super) struct Fit<'a> {
    /// How fit it was found; nothing where there is no phone.
    pub(super) fitness: Option<Fitness>,
    _quiet: Option<Quiet<'a>>,
}

/// Makes the phone behind `link` quiet and waits until it is fit to be measured, at most as long as `patience` lasts; says
/// what it waits for.
pub(super) async fn make_fit<'a>(
    link: &'a Opened,
    args: &FitnessArgs,
    patience: Duration,
) -> Result<Fit<'a>, Failure> {
    let Opened::Adb(link) = link else {
        return Ok(Fit {
            fitness: None,
            _quiet: None,
        });
    };
    let variable = |name: &str| std::env::var_os(name);
    let loaded = Config::load(args.config.as_deref(), variable).exit_with(Code::Input)?;
    let quiet = match loaded.config.phones.quiet {
        true => Some(Quiet::make(link).await?),
        false => None,
    };
    let fitness = wait_until_fit(link, args, &loaded.config.gates, patience).await?;
    Ok(Fit {
        fitness: Some(fitness),
        _quiet: quiet,
    })
}

async fn wait_until_fit(
    link: &AdbLink,
    args: &FitnessArgs,
    gates: &Gates,
    patience: Duration,
) -> Result<Fitness, Failure> {
    let thresholds = gates.thresholds();
    let name = link.name();
    if args.not_fit {
        let phone = link.phone().await.exit_with(Code::Device)?;
        let read = readings::of_phone(&phone).await.exit_with(Code::Device)?;
        let reasons = check(&read, &thresholds);
        let fitness = Fitness {
            overridden: true,
            not_fit: reasons.iter().map(ToString::to_string).collect(),
            not_told: in_words(&read.unknown()),
        };
        if !fitness.not_fit.is_empty() {
            let reasons = fitness.not_fit.join("; ");
            output::note(format_args!(
                "layerlab: {} is not fit to be measured ({reasons}), and is measured as it is; its profile says so",
                Printable(&name)
            ));
        }
        return Ok(fitness);
    }
    let patience = Patience {
        poll: gates.poll,
        deadline: patience,
    };
    let began = Instant::now();
    let mut gate = Gate::new(thresholds, patience, Duration::ZERO);
    let mut told = None;
    loop {
        // The phone may be unplugged meanwhile, or have another address: a look in vain is one that did not pass.
        let read = match link.phone().await {
            Ok(phone) => readings::of_phone(&phone).await,
            Err(error) => Err(error),
        };
        let verdict = match read {
            Ok(read) => gate.look(&read, began.elapsed()),
            Err(error) => gate.unread(error.to_string(), began.elapsed()),
        };
        let until = match verdict {
            Verdict::Ready { unknown, .. } => {
                return Ok(Fitness {
                    not_told: in_words(&unknown),
                    ..Fitness::default()
                });
            }
            Verdict::GaveUp(gave_up) => {
                let error = anyhow!(
                    "{} is {gave_up}; wait longer with --patience, or measure it as it is with --not-fit",
                    Printable(&name)
                );
                return Err(Failure::new(Code::Device, error));
            }
            Verdict::Wait { until } => until,
        };
        let obstacles = gate.obstacles();
        if obstacles != told {
            if let Some(obstacles) = &obstacles {
                output::note(format_args!(
                    "layerlab: waiting for {} to be fit to be measured: {obstacles} (--not-fit measures it as it is)",
                    Printable(&name)
                ));
            }
            told = obstacles;
        }
        sleep_until(began + until).await;
    }
}

fn in_words(unknown: &[&str]) -> Vec<String> {
    unknown.iter().map(|name| (*name).to_owned()).collect()
}

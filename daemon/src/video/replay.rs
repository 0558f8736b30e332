//! `layerlab video replay`: what policies make of a video in the replay simulator.

mod output_files;
pub(super) mod worlds;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use layerlab_campaign::bits_per_second;
use layerlab_lab::text_table::table;
use layerlab_planners::video::fastva::Scheduled;
use layerlab_planners::video::replay::{ReplayResults, ReplayWorld, VideoPolicy, replay_policy};
use layerlab_profiles::Nanos;
use serde::Serialize;

use crate::exit::{Code, ExitWith, Failure};
use crate::output;
use crate::video::decision::{DecisionArgs, frame_rate, weight};
use worlds::{WorldArgs, Worlds};

#[derive(clap::Args)]
pub(crate) struct ReplayArgs {
    /// Which policies: cbo, cbo-uncalibrated, cbo-by-class (a threshold for each class), cbo-placements (the phone answers each frame
    /// in one of several ways), cbo-optimal, cbo-local, server, max-accuracy (FastVA), max-utility, offload, local, deep-decision,
    /// fastva-optimal, or compress (FastVA with a compressed model on the phone's CPU)
    #[arg(
        long = "policy",
        value_name = "NAMES",
        value_delimiter = ',',
        required = true
    )]
    policies: Vec<PolicyArg>,
    #[command(flatten)]
    worlds: WorldArgs,
    /// The bandwidth of the link to the server; several to compare, and 0 for none
    #[arg(
        long,
        value_name = "BANDWIDTHS",
        value_delimiter = ',',
        default_value = "5mbit",
        value_parser = bandwidth
    )]
    bandwidth: Vec<u64>,
    /// The round trip of the link; several to compare
    #[arg(
        long,
        value_name = "TIMES",
        value_delimiter = ',',
        default_value = "100ms"
    )]
    round_trip: Vec<humantime::Duration>,
    /// Frames per second; several to compare
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "30", value_parser = frame_rate)]
    fps: Vec<f64>,
    /// What FastVA's policies maximise: frames per second plus so many times the accuracy; several to compare
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = weight)]
    alpha: Vec<f64>,
    /// How many frames the video has
    #[arg(long, value_name = "COUNT", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    frames: u32,
    /// What is drawn is drawn from this
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    decision: DecisionArgs,
    /// Write what became of each frame into this CSV file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw accuracy, with --alpha utility, over what has several values into this SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A policy, or FastVA in a world where a compressed model answers on the phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicyArg {
    Policy(VideoPolicy),
    Compress,
}

impl std::str::FromStr for PolicyArg {
    type Err = String;

    fn from_str(name: &str) -> Result<PolicyArg, String> {
        match name {
            "compress" => Ok(PolicyArg::Compress),
            name => {
                let policy = name.parse().map(PolicyArg::Policy);
                policy.map_err(|bad: layerlab_planners::video::replay::BadPolicy| {
                    format!("{bad} and compress")
                })
            }
        }
    }
}

impl PolicyArg {
    pub(super) fn name(self) -> &'static str {
        match self {
            PolicyArg::Policy(policy) => policy.name(),
            PolicyArg::Compress => "compress",
        }
    }

    fn policy(self) -> VideoPolicy {
        match self {
            PolicyArg::Policy(policy) => policy,
            PolicyArg::Compress => VideoPolicy::MaxAccuracy,
        }
    }
}

fn bandwidth(text: &str) -> Result<u64, String> {
    match text {
        "0" => Ok(0),
        text => bits_per_second(text).ok_or_else(|| {
            "a bandwidth is 0, or from 64kbit to 1gbit: write a number and kbit, mbit or gbit, such as 5mbit".to_owned()
        }),
    }
}

/// What is the same for all frames of one replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setting {
    pub(super) bandwidth_bps: u64,
    pub(super) round_trip: Duration,
    pub(super) frames_per_second: f64,
    pub(super) alpha: Option<f64>,
}

/// What a policy made of one setting.
pub(super) struct Replayed {
    pub(super) policy: PolicyArg,
    pub(super) setting: Setting,
    pub(super) world: ReplayWorld,
    pub(super) results: Scheduled<ReplayResults>,
}

/// One row of what is printed.
#[derive(Serialize)]
pub(super) struct Row {
    policy: &'static str,
    bandwidth_bps: u64,
    round_trip_ns: Nanos,
    frames_per_second: f64,
    alpha: Option<f64>,
    /// Nothing of it where the policy must answer every frame and cannot.
    pub(super) accuracy: Option<f64>,
    pub(super) utility: Option<f64>,
    pub(super) offloaded_share: Option<f64>,
    pub(super) missed_share: Option<f64>,
    pub(super) bytes_sent: Option<u64>,
    infeasible_from_frame: Option<usize>,
}

impl Replayed {
    pub(super) fn results(&self) -> Option<&ReplayResults> {
        match &self.results {
            Scheduled::Planned(results) => Some(results),
            Scheduled::Infeasible { .. } => None,
        }
    }

    /// The share of right answers where it was measured which are, else the mean of their probabilities.
    fn accuracy(&self) -> Option<f64> {
        let results = self.results()?;
        let measured = self.world.frames.iter().all(|frame| frame.right.is_some());
        Some(match measured {
            true => results.right_share(),
            false => results.accuracy(),
        })
    }

    fn utility(&self) -> Option<f64> {
        let (results, alpha) = (self.results()?, self.setting.alpha?);
        Some(results.utility(self.world.stream.interval(), alpha))
    }

    pub(super) fn row(&self) -> Row {
        let results = self.results();
        Row {
            policy: self.policy.name(),
            bandwidth_bps: self.setting.bandwidth_bps,
            round_trip_ns: self.setting.round_trip.into(),
            frames_per_second: self.setting.frames_per_second,
            alpha: self.setting.alpha,
            accuracy: self.accuracy(),
            utility: self.utility(),
            offloaded_share: results.map(ReplayResults::offloaded_share),
            missed_share: results.map(ReplayResults::missed_share),
            bytes_sent: results.map(|it| it.bytes_sent(&self.world).as_bytes()),
            infeasible_from_frame: match self.results {
                Scheduled::Infeasible { frame } => Some(frame),
                Scheduled::Planned(_) => None,
            },
        }
    }
}

impl ReplayArgs {
    /// Every combination of what has several values.
    fn settings(&self) -> Vec<Setting> {
        let alphas: Vec<Option<f64>> = match self.alpha.as_slice() {
            [] => vec![None],
            alphas => alphas.iter().copied().map(Some).collect(),
        };
        let mut settings = Vec::new();
        for &bandwidth_bps in &self.bandwidth {
            for round_trip in &self.round_trip {
                for &frames_per_second in &self.fps {
                    for &alpha in &alphas {
                        settings.push(Setting {
                            bandwidth_bps,
                            round_trip: (*round_trip).into(),
                            frames_per_second,
                            alpha,
                        });
                    }
                }
            }
        }
        settings
    }
}

pub(super) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let usage = |error| Failure::new(Code::Usage, error);
    let needs_weight = PolicyArg::Policy(VideoPolicy::MaxUtility);
    if args.alpha.is_empty() && args.policies.contains(&needs_weight) {
        return Err(usage(anyhow!(
            "max-utility weighs accuracy against frames per second: give --alpha, such as --alpha 50"
        )));
    }
    let worlds = args.worlds.read(&args.policies)?;
    if let Some(plot) = &args.plot {
        output_files::varied(args)
            .map_err(|error| usage(anyhow!("{}: {error}", plot.display())))?;
    }
    let mut all = Vec::new();
    for setting in args.settings() {
        for &policy in &args.policies {
            let world = worlds.world(policy, setting, args)?;
            let settings = args.decision.settings(setting.alpha);
            let results = replay_policy(&world, policy.policy(), &settings);
            let results = results.exit_with(Code::Input)?;
            all.push(Replayed {
                policy,
                setting,
                world,
                results,
            });
        }
    }
    let answered = |one: &Replayed| one.results().is_some_and(|it| it.missed_share() < 1.0);
    if !all.iter().any(answered) {
        let error = anyhow!(
            "nothing answers a frame within {}: give a longer --deadline, or a faster model",
            args.decision.deadline
        );
        return Err(Failure::new(Code::NoPlan, error));
    }
    if let Some(file) = &args.csv {
        output_files::write_csv(file, &all)?;
    }
    if let Some(file) = &args.plot {
        output_files::write_plot(file, args, &worlds, &all)?;
    }
    let rows: Vec<Row> = all.iter().map(Replayed::row).collect();
    match args.json {
        true => output::print_json(&rows),
        false => output::print(text(&worlds, &rows)),
    }
}

fn text(worlds: &Worlds, rows: &[Row]) -> String {
    let cells = rows.iter().map(|row| {
        let number = |value: Option<f64>, scale: f64, digits: usize, unit: &str| match value {
            Some(value) => format!("{:.digits$}{unit}", scale * value),
            None => String::new(),
        };
        vec![
            row.policy.to_owned(),
            format!("{} Mbit/s", row.bandwidth_bps as f64 / 1e6),
            row.round_trip_ns.to_string(),
            row.frames_per_second.to_string(),
            number(row.alpha, 1.0, 0, ""),
            match row.infeasible_from_frame {
                Some(frame) => format!("none: late from frame {frame} on"),
                None => number(row.accuracy, 1.0, 4, ""),
            },
            number(row.utility, 1.0, 2, ""),
            number(row.offloaded_share, 100.0, 1, " %"),
            number(row.missed_share, 100.0, 1, " %"),
        ]
    });
    let heads = [
        "policy",
        "bandwidth",
        "round trip",
        "fps",
        "alpha",
        "accuracy",
        "utility",
        "sent",
        "missed",
    ];
    format!(
        "{}\n{}",
        worlds.title(),
        table(&heads, &[1, 2, 3, 4, 5, 6, 7, 8], cells)
    )
}

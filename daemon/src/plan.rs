//! `layerlab plan`: which layer to run on which processor, from a published profile (mlmp §3, §4).

mod describe;
mod learnt;

use std::path::PathBuf;

use describe::describe;
use layerlab_planners::export::{outcomes_csv, outcomes_json, tried_csv};
use layerlab_planners::sweep::{accuracy_limits, sweep, time_limits};
use layerlab_planners::{Algorithm, Goal, Outcome, Plan, plan_keeping};
use layerlab_profiles::document::Evaluation;
use layerlab_profiles::summary::Summary;
use layerlab_protocol::Entry;
use learnt::{Input, Learnt};

use super::adb::{self, AdbArgs, PhoneArgs};
use super::campaign::{agent_program, campaign_failure};
use super::exit::{Code, ExitWith, Failure};
use super::model_options::{parse_dim, refuse_other_twin};
use super::{evaluate, output};
use crate::sweep_plot;
use layerlab_campaign::plot::title_mark;
use layerlab_campaign::{ModelFile, Passes, Verification, VerificationSet, Verified};
use layerlab_lab::text_table::table;

#[derive(clap::Subcommand)]
pub(super) enum PlanCommand {
    /// The most accurate placement that takes no longer than a time
    MaxAccuracy(MaxAccuracy),
    /// The fastest placement that is at least so accurate
    MinTime(MinTime),
    /// All algorithms over many limits, as CSV: accuracy over time limits, then time over accuracy limits
    Sweep(Sweep),
}

#[derive(clap::Args)]
pub(super) struct MaxAccuracy {
    /// The time that one inference may take, such as 550ms or 1.2s
    #[arg(long, value_name = "DURATION")]
    time: humantime::Duration,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
pub(super) struct MinTime {
    /// The accuracy that is required, a fraction such as 0.6
    #[arg(long, value_name = "FRACTION")]
    accuracy: f64,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    input: Input,
    /// all-cpu, all-npu, heuristic or mlmp; fastest or exhaustive (few layers only), which take up to four
    /// processors
    #[arg(long, default_value = "mlmp", value_name = "NAME")]
    algorithm: Algorithm,
    /// How many placements mlmp keeps in each step [default: 50 for max-accuracy, 100 for min-time]
    #[arg(long, value_name = "COUNT")]
    k: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Run the plan on this device and put what was measured beside what was predicted
    #[arg(
        long,
        value_name = "DEVICE",
        requires = "model",
        conflicts_with = "json"
    )]
    verify: Option<String>,
    /// With --verify: the ONNX model
    #[arg(long, value_name = "FILE", requires = "verify")]
    model: Option<PathBuf>,
    /// With --verify: the model's quantised twin, for processors that compute in 8 bits
    #[arg(long, value_name = "FILE", requires = "verify")]
    quantised: Option<PathBuf>,
    /// With --verify: the evaluation set; without it the time alone is measured
    #[arg(long, value_name = "FILE", requires = "verify")]
    set: Option<PathBuf>,
    #[command(flatten)]
    phone: PhoneArgs,
    /// With --verify: the size of a symbolic dimension of the model; may be repeated
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = parse_dim, requires = "verify")]
    dims: Vec<(String, u64)>,
}

#[derive(clap::Args)]
pub(super) struct Sweep {
    #[command(flatten)]
    input: Input,
    /// How many limits of each kind
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    steps: usize,
    /// Draw the sweep into this SVG file, too
    #[arg(long, value_name = "FILE", conflicts_with = "regressors")]
    plot: Option<PathBuf>,
    /// Print how the regressors did instead (the paper's Table 2)
    #[arg(long)]
    regressors: bool,
}

pub(super) async fn run(
    command: &PlanCommand,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    match command {
        PlanCommand::MaxAccuracy(args) => {
            let within = std::time::Duration::from(args.time).into();
            one(&args.common, Goal::MaxAccuracy { within }, agent, adb).await
        }
        PlanCommand::MinTime(args) => {
            let at_least = args.accuracy;
            one(&args.common, Goal::MinTime { at_least }, agent, adb).await
        }
        PlanCommand::Sweep(args) => all(args),
    }
}

async fn one(
    args: &Common,
    goal: Goal,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    let algorithm = args.algorithm;
    let refuse = |processors| algorithm.refuse_processors(processors);
    let learnt = args.input.learn(refuse)?;
    let outcome = plan_keeping(&learnt.problem, goal, algorithm, args.k).exit_with(Code::Input)?;
    if args.json {
        let json = outcomes_json(&learnt.source, &[outcome]).exit_with(Code::Internal)?;
        return output::print(json);
    }
    let planned = match &outcome {
        Outcome::Planned(planned) => planned,
        Outcome::Infeasible(infeasible) => return output::print(infeasible),
    };
    output::print(describe(planned, &learnt))?;
    match &args.verify {
        Some(device) => verify(args, device, planned, &learnt, agent, adb).await,
        None => Ok(()),
    }
}

/// Runs the plan on a device.
async fn verify(
    args: &Common,
    device: &str,
    planned: &Plan,
    learnt: &Learnt,
    agent: Option<PathBuf>,
    adb: &AdbArgs,
) -> Result<(), Failure> {
    let Some(model) = &args.model else {
        return Ok(());
    };
    let dims = args.dims.iter().cloned().collect();
    let model = ModelFile::open(model, &dims)
        .and_then(|model| model.with_quantised(args.quantised.as_deref(), &dims))
        .exit_with(Code::Input)?;
    if model.source_sha256 != learnt.profile.header.model.sha256 {
        let message = "--model is another model than the profile's";
        return Err(Failure::new(Code::Input, anyhow::anyhow!(message)));
    }
    let of_profile = &learnt.profile.header.model;
    refuse_other_twin(of_profile, &model).exit_with(Code::Input)?;
    let set = match &args.set {
        Some(file) => Some(evaluate::fitting_set(file, &model)?),
        None => None,
    };
    let link = adb::open(device, agent_program(agent)?, adb, &args.phone).await?;
    let Evaluation { seed, answers, .. } = &learnt.evaluation;
    let verification = Verification {
        model: &model,
        placement: planned.combination().clone(),
        passes: Passes::on(learnt.processors.clone()),
        set: set.as_ref().map(|set| VerificationSet {
            set,
            seed: *seed,
            answers: *answers as usize,
        }),
    };
    let verified = verification.run(&link, &mut |_: &Entry| {}).await;
    let Verified { time, accuracy } = verified.map_err(campaign_failure)?;
    let passes = time.first();
    let measured = passes.and_then(|placement| Summary::of(&placement.passes));
    let mut rows = Vec::new();
    if let Some(measured) = measured {
        let interval = |ci95: Option<(String, String)>| {
            ci95.map_or_else(String::new, |(low, high)| format!("{low} to {high}"))
        };
        let predicted = planned.time_ci95();
        rows.push(vec![
            "time".to_owned(),
            planned.time().total().to_string(),
            interval(predicted.map(|(low, high)| (low.to_string(), high.to_string()))),
            measured.median.to_string(),
            interval(
                measured
                    .median_ci95
                    .map(|(low, high)| (low.to_string(), high.to_string())),
            ),
        ]);
    }
    if let Some(evaluated) = accuracy {
        let found = evaluate::rows(&evaluated)?;
        if let Some(row) = found.last() {
            let (low, high) = (
                row.score - half(row.loss_ci95),
                row.score + half(row.loss_ci95),
            );
            let around = learnt.model.test().map_or_else(String::new, |score| {
                let value = planned.accuracy().value;
                format!(
                    "{:.4} to {:.4}",
                    value - 2.0 * score.mse.sqrt(),
                    value + 2.0 * score.mse.sqrt()
                )
            });
            rows.push(vec![
                "accuracy".to_owned(),
                format!("{:.4}", planned.accuracy().value),
                around,
                format!("{:.4}", row.score),
                format!("{low:.4} to {high:.4}"),
            ]);
        }
    }
    let heads = [
        "",
        "predicted",
        "95 % interval",
        "measured",
        "95 % interval",
    ];
    output::print(format_args!("\n{}", table(&heads, &[1, 2, 3, 4], rows)))
}

fn half((low, high): (f64, f64)) -> f64 {
    (high - low) / 2.0
}

fn all(args: &Sweep) -> Result<(), Failure> {
    let learnt = args.input.learn(|_| Ok(()))?;
    if args.regressors {
        let csv = tried_csv(&learnt.source, learnt.model.tried()).exit_with(Code::Internal)?;
        return output::print(csv.trim_end());
    }
    let mut goals = time_limits(&learnt.problem, args.steps);
    goals.extend(accuracy_limits(&learnt.problem, args.steps));
    let layers = learnt.profile.layers.len();
    let algorithms = Algorithm::to_compare(layers, learnt.processors.len());
    let outcomes = sweep(&learnt.problem, &goals, &algorithms).exit_with(Code::Input)?;
    if let Some(file) = &args.plot {
        let source = &learnt.source;
        let mark = title_mark(source.simulated, source.emulated);
        let title = format!("{} on {}{mark}", source.model, source.device);
        let svg = sweep_plot::svg(&title, &algorithms, &outcomes)
            .map_err(anyhow::Error::msg)
            .exit_with(Code::Internal)?;
        std::fs::write(file, svg)
            .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", file.display()))
            .exit_with(Code::Output)?;
    }
    let csv = outcomes_csv(&learnt.source, &outcomes).exit_with(Code::Internal)?;
    output::print(csv.trim_end())
}

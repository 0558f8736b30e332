//! `layerlab plan`: which layer to run on which processor, from a published profile (mlmp §3, §4).

mod alone;
mod beside;
mod cache;
pub(super) mod describe;
mod edge;
mod energy;
pub(super) mod learnt;
mod refine;
pub(super) mod verify;

use std::collections::BTreeSet;
use std::path::PathBuf;

pub(super) use beside::{BESIDE, Predicted, beside, beside_table};
use describe::describe;
use layerlab_planners::export::{outcomes_csv, outcomes_csv_with_energy, outcomes_json, tried_csv};
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::sweep::{KeepingAlgorithm, accuracy_limits, sweep_keeping, time_limits};
use layerlab_planners::{Algorithm, Goal, Outcome, plan_keeping};
use layerlab_profiles::Placement;
use learnt::{Input, Learnt};
use refine::{RefineArgs, refine};
use verify::VerifyArgs;

use super::exit::{Code, ExitWith, Failure};
use super::output;
use crate::sweep_plot::{self, OnOneProcessor};
use layerlab_campaign::plot::title_mark;

#[derive(clap::Subcommand)]
pub(super) enum PlanCommand {
    /// The most accurate placement that takes no longer than a time
    MaxAccuracy(MaxAccuracy),
    /// The fastest placement that is at least so accurate, or the fastest of all
    MinTime(MinTime),
    /// The placement that draws least within a time, at an accuracy, or of all
    MinEnergy(energy::MinEnergy),
    /// All algorithms over many limits, as CSV: accuracy over time limits, then time over accuracy limits
    Sweep(Sweep),
    /// Which layers to run on a phone and which on a server beside it, over a measured link
    Edge(Box<edge::EdgeArgs>),
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
    /// The accuracy that is required, a fraction such as 0.6; without it the plan is the fastest placement, whatever its accuracy,
    /// also where accuracy was not measured
    #[arg(long, value_name = "FRACTION")]
    accuracy: Option<f64>,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    input: Input,
    /// mlmp, which answers from the front of time and accuracy; the papers' all-cpu, all-npu, heuristic and mlmp-paper;
    /// fastest or exhaustive (few layers only), which take up to four processors [default: mlmp, or fastest where no accuracy
    /// is required]
    #[arg(long, value_name = "NAME")]
    algorithm: Option<Algorithm>,
    /// How many placements mlmp-paper keeps in each step [default: 50 for max-accuracy, 100 for min-time]
    #[arg(long, value_name = "COUNT")]
    k: Option<usize>,
    /// Print JSON
    #[arg(long, conflicts_with = "verify")]
    json: bool,
    #[command(flatten)]
    verify: VerifyArgs,
    #[command(flatten)]
    refine: RefineArgs,
}

#[derive(clap::Args)]
pub(super) struct Sweep {
    #[command(flatten)]
    input: Input,
    /// How many limits of each kind
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    steps: usize,
    /// How many placements mlmp-paper keeps in each step, such as 1,5,20,50: a line for each (the paper's Figure 6)
    #[arg(long, value_name = "COUNTS", value_delimiter = ',')]
    k: Vec<usize>,
    /// Draw the sweep into this SVG file, too
    #[arg(long, value_name = "FILE", conflicts_with = "regressors")]
    plot: Option<PathBuf>,
    /// Print how the regressors did instead (the paper's Table 2)
    #[arg(long, conflicts_with = "verify")]
    regressors: bool,
    #[command(flatten)]
    verify: VerifyArgs,
}

pub(super) async fn run(command: &PlanCommand, agent: Option<PathBuf>) -> Result<(), Failure> {
    match command {
        PlanCommand::MaxAccuracy(args) => {
            let within = std::time::Duration::from(args.time).into();
            let goal = Goal::MaxAccuracy { within };
            one(&args.common, goal, Algorithm::Mlmp, agent).await
        }
        PlanCommand::MinTime(args) => match args.accuracy {
            Some(at_least) => {
                let goal = Goal::MinTime { at_least };
                one(&args.common, goal, Algorithm::Mlmp, agent).await
            }
            None => alone::min_time(&args.common, agent).await,
        },
        PlanCommand::MinEnergy(args) => energy::run(args, agent).await,
        PlanCommand::Sweep(args) => all(args, agent).await,
        PlanCommand::Edge(args) => edge::run(args, agent).await,
    }
}

/// Plans for a goal by the algorithm that is named, or else by `usual`.
async fn one(
    args: &Common,
    goal: Goal,
    usual: Algorithm,
    agent: Option<PathBuf>,
) -> Result<(), Failure> {
    let algorithm = args.algorithm.unwrap_or(usual);
    args.refine.refuse_unless_sure(algorithm)?;
    let refuse = |processors, baseline| {
        goal.refuse_unless_sensible(baseline)?;
        algorithm.refuse_processors(processors)
    };
    let most = args.refine.most();
    let mut learnt = args.input.learn(refuse, most.is_some())?;
    let mut refined = None;
    if let Some(most) = most
        && let Some(device) = args.verify.open(learnt.subject(), agent.clone()).await?
    {
        let (known, refinement, outcome) = refine(&args.input, learnt, goal, &device, most).await?;
        learnt = known;
        let said = refine::describe(&refinement, &outcome, &args.input, &learnt);
        refined = Some(outcome);
        output::print(format_args!("{said}\n"))?;
    }
    let outcome = match refined {
        Some(outcome) => outcome,
        None => plan_keeping(&learnt.problem, goal, algorithm, args.k).exit_with(Code::Input)?,
    };
    if args.json {
        let outcomes = std::slice::from_ref(&outcome);
        output::print(outcomes_json(&learnt.source, outcomes).exit_with(Code::Internal)?)?;
    }
    let planned = match &outcome {
        Outcome::Planned(_) if args.json => return Ok(()),
        Outcome::Planned(planned) => planned,
        Outcome::Infeasible(infeasible) => {
            return Err(Failure::new(Code::NoPlan, anyhow::anyhow!("{infeasible}")));
        }
    };
    let subject = learnt.subject();
    let energy = (args.verify).predicted_energy(planned.combination(), subject)?;
    output::print(describe(planned, &learnt))?;
    let predicted = Predicted::from(&**planned).with_energy(energy);
    let verifying = (args.verify).measure_beside(predicted, planned.combination(), subject, agent);
    verifying.await
}

async fn all(args: &Sweep, agent: Option<PathBuf>) -> Result<(), Failure> {
    args.verify.refuse_energy()?;
    let learnt = args.input.learn(|_, _| Ok(()), false)?;
    if args.regressors {
        let csv = tried_csv(&learnt.source, learnt.model.tried()).exit_with(Code::Internal)?;
        return output::print(csv.trim_end());
    }
    let mut goals = time_limits(&learnt.problem, args.steps);
    goals.extend(accuracy_limits(&learnt.problem, args.steps));
    let layers = learnt.profile.layers.len();
    let algorithms = Algorithm::to_compare(layers, learnt.processors.len()).into_iter();
    let mut algorithms: Vec<KeepingAlgorithm> = algorithms.map(|one| (one, None)).collect();
    if !args.k.is_empty() {
        // Its usual K is one of many then.
        algorithms.retain(|(algorithm, _)| *algorithm != Algorithm::MlmpPaper);
        let kept = args.k.iter().map(|&k| (Algorithm::MlmpPaper, Some(k)));
        algorithms.extend(kept);
    }
    let outcomes = sweep_keeping(&learnt.problem, &goals, &algorithms).exit_with(Code::Input)?;
    let plans = outcomes.iter().filter_map(Outcome::plan);
    let placements: BTreeSet<Placement> = plans.map(|plan| plan.combination().clone()).collect();
    let placements = placements.into_iter().collect();
    let subject = learnt.subject();
    let verified = args.verify.measure(placements, subject, agent).await?;
    if let Some(file) = &args.plot {
        let source = &learnt.source;
        let mark = title_mark(source.simulated, source.emulated);
        let title = format!("{} on {}{mark}", source.model, source.device);
        let on_one = on_one_processor(&learnt);
        let svg = sweep_plot::svg(&title, &algorithms, &outcomes, &verified, &on_one)
            .map_err(anyhow::Error::msg)
            .exit_with(Code::Internal)?;
        std::fs::write(file, svg)
            .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", file.display()))
            .exit_with(Code::Output)?;
    }
    let (source, problem) = (&learnt.source, &learnt.problem);
    let csv = match &learnt.profile.energy {
        None => outcomes_csv(source, &outcomes, &verified),
        Some(_) => {
            let energies = subject.energies()?;
            let least = energy::least_within(problem, &energies, &goals)?;
            outcomes_csv_with_energy(source, &outcomes, &verified, &energies, &least)
        }
    };
    let csv = csv.exit_with(Code::Internal)?;
    output::print(csv.trim_end())
}

/// All layers on each processor that can run all and whose memory holds them.
pub(super) fn on_one_processor(learnt: &Learnt) -> Vec<OnOneProcessor> {
    let layers = learnt.profile.layers.len();
    let one = |(processor, name): (usize, &String)| {
        let all = Placement::all_on(u8::try_from(processor).ok()?, layers);
        let all = PackedPlacement::of(&all).ok();
        let all = all.filter(|all| learnt.problem.times().allows(all))?;
        Some(OnOneProcessor {
            name: name.clone(),
            time_ns: learnt.problem.time(&all).as_nanos() as f64,
            accuracy: learnt.problem.accuracies(&[all]).first()?.value,
        })
    };
    learnt
        .processors
        .iter()
        .enumerate()
        .filter_map(one)
        .collect()
}

//! `layerlab plan min-energy`: which placement draws least of those that keep a time or an accuracy (docs/method.md §13).

use layerlab_planners::export::energy_plan_json;
use layerlab_planners::placement::PackedPlacement;
use layerlab_planners::profile::energy_table;
use layerlab_planners::{EnergyLimit, EnergyPlan, Goal, Problem, TimeTable, least_energy};
use layerlab_profiles::summary::Estimate;
use layerlab_profiles::{Placement, SignedNanos};

use super::describe::{planned_from, strip, surely};
use super::learnt::{Input, Learnt};
use crate::exit::{Code, ExitWith, Failure};
use crate::output;
use crate::show::drawn;

#[derive(clap::Args)]
#[group(id = "limit", required = true, multiple = false, args = ["time", "accuracy"])]
pub(crate) struct MinEnergy {
    /// The time that one inference may take, such as 550ms or 1.2s
    #[arg(long, value_name = "DURATION")]
    time: Option<humantime::Duration>,
    /// The accuracy that is required, a fraction such as 0.6
    #[arg(long, value_name = "FRACTION")]
    accuracy: Option<f64>,
    #[command(flatten)]
    input: Input,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &MinEnergy) -> Result<(), Failure> {
    let limit = match (args.time, args.accuracy) {
        (Some(time), _) => EnergyLimit::Time {
            within: std::time::Duration::from(time).into(),
        },
        (None, accuracy) => EnergyLimit::Accuracy {
            at_least: accuracy.unwrap_or(f64::NAN),
        },
    };
    let refuse = |_, baseline| Ok(limit.refuse_unless_sensible(baseline)?);
    let learnt = args.input.learn(refuse, false)?;
    let energies = energies(&learnt)?;
    let planned = least_energy(&learnt.problem, &energies, limit).exit_with(Code::Input)?;
    if args.json {
        let confidence = learnt.problem.confidence();
        let json = energy_plan_json(&learnt.source, limit, confidence, planned.as_ref());
        output::print(json.exit_with(Code::Internal)?.trim_end())?;
    }
    match planned {
        None => Err(Failure::new(
            Code::NoPlan,
            anyhow::anyhow!(
                "min-energy has no plan {limit}: no placement is fast enough; allow more time"
            ),
        )),
        Some(_) if args.json => Ok(()),
        Some(plan) => output::print(describe(&plan, &learnt, &energies)),
    }
}

/// What each layer draws on the processors that plans are about, in nJ.
pub(super) fn energies(learnt: &Learnt) -> Result<TimeTable, Failure> {
    let names: Vec<&str> = learnt.processors.iter().map(String::as_str).collect();
    energy_table(&learnt.profile, &names, learnt.problem.times()).exit_with(Code::Input)
}

/// The placements that draw least within the limits of these goals.
pub(super) fn least_within(
    problem: &Problem,
    energies: &TimeTable,
    goals: &[Goal],
) -> Result<Vec<(EnergyLimit, Option<EnergyPlan>)>, Failure> {
    let limit = |goal: &Goal| match *goal {
        Goal::MaxAccuracy { within } => EnergyLimit::Time { within },
        Goal::MinTime { at_least } => EnergyLimit::Accuracy { at_least },
    };
    let least = |limit| Ok((limit, least_energy(problem, energies, limit)?));
    let all: Result<_, layerlab_planners::least_energy::EnergyPlanError> =
        goals.iter().map(limit).map(least).collect();
    all.exit_with(Code::Input)
}

fn describe(plan: &EnergyPlan, learnt: &Learnt, energies: &TimeTable) -> String {
    let in_nj = SignedNanos::from_nanos;
    let energy = Estimate {
        value: in_nj(plan.energy_nj),
        ci95: plan
            .energy_ci95_nj
            .map(|(low, high)| (in_nj(low), in_nj(high))),
    };
    let names = &learnt.processors;
    let interval = plan
        .time_ci95
        .map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
    let mut text = format!(
        "{}\n{}\n\nenergy    {}, above what the idle device draws\n",
        strip(&plan.combination, names),
        plan.combination,
        drawn(energy),
    );
    for (place, name) in (0..).zip(names) {
        let all = Placement::all_on(place, learnt.profile.layers.len());
        if let Ok(all) = PackedPlacement::of(&all)
            && energies.allows(&all)
        {
            let value = energies.time(&all).total();
            let all = drawn(Estimate { value, ci95: None });
            text.push_str(&format!("          {all} with all layers on {name}\n"));
        }
    }
    text.push_str(&format!(
        "time      {}{interval}\naccuracy  {:.4}{}\n",
        plan.time,
        plan.accuracy.value,
        surely(&plan.accuracy)
    ));
    if !plan.keeps_limit {
        let confidence = learnt.problem.confidence();
        let percent = confidence.map_or(0.0, |one| one.share() * 100.0);
        text.push_str(&format!(
            "\n- no placement is known to keep the limit with a confidence of {percent} %: this one keeps it by estimates"
        ));
    }
    if !plan.is_optimum {
        text.push_str(
            "\n- there are too many placements to try them all: another one may draw less",
        );
    }
    text.push_str(&planned_from(learnt));
    text
}
